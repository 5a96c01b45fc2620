"""CReSt: complex reasoning over structured documents, with refusals and citations.

Paper: Khang, Park, Hong, Jung, "CReSt: A Comprehensive Benchmark for Retrieval-Augmented Generation with Complex
Reasoning over Structured Documents", arXiv:2505.17503. Code: github.com/UpstageAI/CReSt. Data: `upstage/CReSt` on the
Hugging Face hub, CC BY-NC 4.0, not included in this project. Two splits, `refusal` and `non_refusal`.

One invented row in the published format (`documents`, `citation_ids` and `meta` are JSON *text*):

    {"id": 7, "query": "How many parcels left the Aster depot in 2021?", "answer": "1,577 parcels",
     "documents": "[{"docid": 40, "content": "<table><tr><td>2021</td><td>1,577</td></tr></table>",
       "type": "html", "source_path": "aster/report.html", "ground": true, "citation_idx": null},
      {"docid": 12, "content": "The Aster depot opened in 1998.", "type": "text",
       "source_path": "aster/history.txt", "ground": false, "citation_idx": null}]",
     "citation_ids": "[40]", "meta": "{"language": "en", "difficulty_type": "SimpleQA"}",
     "reasoning_type": ["numerical reasoning", "tabular reasoning"]}
"""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from ragbed.documents.errors import BenchmarkError
from ragbed.documents.rows import Row, convert_records, read_rows
from ragbed.documents.types import Chunk, Document, digest
from ragbed.experiments.benchmarks.base import About, Loaded, Selection, collect_questions, interleave
from ragbed.experiments.benchmarks.fields import choices, gold_chunk, make_tags, unique_id
from ragbed.experiments.benchmarks.hub import fetch_files
from ragbed.experiments.guests.datasets.splits import last_matches
from ragbed.experiments.question import Benchmark, Gold, Question, Scheme

Split = Literal["non_refusal", "refusal"]
_SPLITS: tuple[Split, ...] = ("non_refusal", "refusal")
_SPLIT = re.compile(r"non[_-]?refusal|refusal")


def _files(path: Path) -> dict[Split, list[Path]]:
    """Return the files of each split: a single file, or all files below a folder whose paths name the split."""
    named = {file: _SPLITS[word == "refusal"] for file, word in last_matches(path, _SPLIT).items() if word}
    if path.is_file() and not named:
        raise BenchmarkError(f"{path}: expected a .parquet or .jsonl file with refusal or non_refusal in its name")
    missing = [split for split in _SPLITS if split not in named.values()]
    if missing and path.is_dir():
        raise BenchmarkError(f"{path}: no .parquet or .jsonl file has {' or '.join(missing)} in its name")
    return {split: [file for file in named if named[file] == split] for split in _SPLITS}


class Crest(Selection):
    """CReSt from local files or the hub.

    Attributes:
        path: a Parquet or JSON Lines file named after its split, a folder with both splits, or `hub:OWNER/NAME`, with
            an optional `@REVISION`.
    """

    about = About(
        paper="CReSt: A Comprehensive Benchmark for Retrieval-Augmented Generation with Complex Reasoning over "
              "Structured Documents (2025), https://github.com/UpstageAI/CReSt",
        licence="CC BY-NC 4.0", size="2,245 questions, English and Korean, ten chunks each",
        get="hub:upstage/CReSt, or a folder with its two splits",
        settings={"reasoning": "chain_of_thought", "layout": "as_published", "rules": "grounded",
                  "conditions": "provided"})
    # Tables 3 (models), 4 (citations), 5 (difficulty) and 6 (strategies).
    scheme = Scheme(
        groups=("answers", "overlap", "ranking", "form"), rubric="grades",
        columns=("unified", "correct / partial / wrong", "refusal_accuracy", "citation_f1"),
        views=("by:language", "by:difficulty_type", "by:reasoning_type", "by:format"),
        published=("crest_3", "crest_4", "crest_5", "crest_6"))

    kind: Literal["crest"] = "crest"
    path: str = "hub:upstage/CReSt"

    def whole(self) -> Benchmark:
        """Return all questions. The two splits alternate, so that a limit includes both."""
        splits = []
        for split, files in _files(fetch_files(self.path)).items():
            seen: Counter[str] = Counter()  # ids may repeat within a split, since each language may count from 1
            splits.append(list(convert_records(partial(_question, split=split, seen=seen),
                                       chain.from_iterable(map(read_rows, files)))))
        return Benchmark("crest", *collect_questions(interleave(splits)))


def _question(row: Row, split: Split, seen: Counter[str]) -> Loaded:
    listed = row.decoded("documents", list, "a list of documents")
    records = [row.part(f"documents[{at}]", record) for at, record in enumerate(listed)]
    docids, same = [record.number("docid") for record in records], Counter[str]()
    id = unique_id(_id(row, split), seen)
    made = [_document(record, unique_id(f"{id}/{docid}", same)) for docid, record in zip(docids, records, strict=True)]
    chunks = tuple(chunk for _, chunk in made)
    by_docid = dict(zip(docids, chunks, strict=True))  # the last of several chunks with the same docid counts
    cited = _citations(row, docids, split)
    gold = [gold_chunk(by_docid[docid]) if docid in by_docid else Gold(f"{id}/{docid}")
            for docid in dict.fromkeys(cited)]
    # `citation_ids` are the gold, because people checked them. The field `ground` of documents may differ.
    grounds = {docid for docid, record in zip(docids, records, strict=True) if record.fields.get("ground")}
    ground = "agrees" if grounds == set(cited) else "differs"
    answer = row.optional("answer") if split == "refusal" else row.filled("answer")
    return Question(
        id=id, text=row.filled("query"), answers=(answer,) if answer.strip() else (),
        answerable=split == "non_refusal", gold=tuple(gold), gold_repeats=len(cited) - len(gold), provided=chunks,
        options=choices(row, "options") if row.fields.get("options") else (),
        tags={**_tags(row, split), "ground": (ground,), **_format(gold)}), [document for document, _ in made]


def _id(row: Row, split: Split) -> str:
    id = row.stated_id()
    if id is None:
        content = (row.text("query"), str(row.fields.get("answer")), str(row.fields.get("documents")))
        id = digest(*content)[:12]
    return f"{split}-{id}"


def _document(row: Row, id: str) -> tuple[Document, Chunk]:
    content, kind, source = row.text("content"), row.text("type"), str(row.fields.get("source_path") or id)
    if kind not in ("html", "text"):
        row.fail("type", "'html' or 'text'", kind)
    html, plain = (content, "") if kind == "html" else ("", content)
    document = Document(id, source, source.rsplit("/", 1)[-1], html, plain)
    return document, Chunk.of(document, "html" if kind == "html" else "plain", 0, len(content))


def _citations(row: Row, docids: Sequence[int], split: Split) -> list[int]:
    """Return the gold docids, with duplicates. If the question is unanswerable, their documents may be missing."""
    if row.fields.get("citation_ids") is None:
        return []
    cited: list[int] = row.decoded("citation_ids", list, "a list of docids")
    for docid in cited:
        if isinstance(docid, bool) or not isinstance(docid, int) or (split == "non_refusal" and docid not in docids):
            row.fail("citation_ids", f"docids out of {list(docids)}", docid)
    return cited


def _format(gold: Sequence[Gold]) -> dict[str, tuple[str, ...]]:
    formats = sorted({"html" if item.format == "html" else "text" for item in gold if item.format})
    return {"format": (formats[0] if len(formats) == 1 else "mixed",)} if formats else {}


def _tags(row: Row, split: Split) -> dict[str, tuple[str, ...]]:
    meta = row.part("meta", row.decoded("meta", dict, "a dictionary"))
    tags = make_tags(split=split) | {name: (meta.text(name),) for name in ("language", "difficulty_type")}
    tags |= {name: (value,) for name, value in meta.fields.items() if isinstance(value, str)}
    if reasoning := tuple(dict.fromkeys(_flat(row, row.fields.get("reasoning_type") or []))):
        tags["reasoning_type"] = reasoning
    if isinstance(row.fields.get("question_type"), str):
        tags["question_type"] = (row.fields["question_type"],)
    return tags


def _flat(row: Row, value: Any) -> list[str]:
    items = value if isinstance(value, list) else [value]
    texts = [text for item in items for text in (item if isinstance(item, list) else [item])]
    if not all(isinstance(text, str) for text in texts):
        row.fail("reasoning_type", "a list of texts, or a list of lists of texts", value)
    return texts
