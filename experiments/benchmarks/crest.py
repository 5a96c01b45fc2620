"""CReSt: complex reasoning over structured documents, with refusals and citations.

Paper: Khang, Park, Hong, Jung, "CReSt: A Comprehensive Benchmark for Retrieval-Augmented Generation with Complex
Reasoning over Structured Documents", arXiv:2505.17503. Code: github.com/UpstageAI/CReSt. Data: `upstage/CReSt` on the
Hugging Face hub, CC BY-NC 4.0; nothing of it is in this project. Two splits, `refusal` and `non_refusal`.

One row, of the published shape and made up (`documents`, `citation_ids` and `meta` are JSON *text*):

    {"id": 7, "query": "How many parcels left the Aster depot in 2021?", "answer": "1,577 parcels",
     "documents": "[{"docid": 40, "content": "<table><tr><td>2021</td><td>1,577</td></tr></table>",
       "type": "html", "source_path": "aster/report.html", "ground": true, "citation_idx": null},
      {"docid": 12, "content": "The Aster depot opened in 1998.", "type": "text",
       "source_path": "aster/history.txt", "ground": false, "citation_idx": null}]",
     "citation_ids": "[40]", "meta": "{"language": "en", "difficulty_type": "SimpleQA"}",
     "reasoning_type": ["numerical reasoning", "tabular reasoning"]}

CReSt's two splits, and which files hold which.
"""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from documents.errors import BenchmarkError
from documents.rows import Row, read_rows
from documents.types import Chunk, Document, Format, digest
from experiments.benchmarks.base import About, Selection, alternating, files_in
from experiments.benchmarks.fields import MOST_LETTERS, distinct, gold_chunk, lettered
from experiments.benchmarks.hub import fetched
from experiments.question import Benchmark, Gold, Question, Scheme

Split = Literal["non_refusal", "refusal"]
SPLITS: tuple[Split, ...] = ("non_refusal", "refusal")
_SUFFIXES = (".parquet", ".jsonl", ".json")
_SPLIT = re.compile(r"(non[_-]?)?refusal", re.IGNORECASE)


def files_of_splits(path: Path) -> dict[Split, list[Path]]:
    """List the files of each split, in order of name: one file, or all below a folder.

    A file belongs to the split that its name, or the name of a folder below `path`, says.

    Raises:
        BenchmarkError: nothing is there, a file names no split, or a folder lacks a split.
    """
    if not path.exists():
        raise BenchmarkError(f"{path}: no such file or folder")
    if path.is_file():
        split = _split(path.name)
        if split is None or path.suffix not in _SUFFIXES:
            raise BenchmarkError(f"{path}: expected a .parquet or .jsonl file with refusal or non_refusal in its name")
        return {split: [path]}
    found: dict[Split, list[Path]] = {}
    for file in files_in(path, _SUFFIXES):
        split = _split(file.relative_to(path).as_posix())
        if split is not None:
            found.setdefault(split, []).append(file)
    missing = [split for split in SPLITS if split not in found]
    if missing:
        raise BenchmarkError(f"{path}: no .parquet or .jsonl file with {' nor '.join(missing)} in its name")
    return found


def _split(name: str) -> Split | None:
    """The last mention decides, so that a file's own name goes before its folder's."""
    mentions = list(_SPLIT.finditer(name))
    if not mentions:
        return None
    return "non_refusal" if mentions[-1][1] else "refusal"


Loaded = tuple[Question, tuple[Document, ...]]


class Crest(Selection):
    """CReSt from local files or the hub.

    Attributes:
        path: a Parquet or JSON Lines file named after its split, a folder that holds both splits, or
            `hub:OWNER/NAME`, with `@REVISION` where one is wanted.
    """

    about = About(
        paper="CReSt: A Comprehensive Benchmark for Retrieval-Augmented Generation with Complex Reasoning over "
              "Structured Documents (2025), https://github.com/UpstageAI/CReSt",
        licence="CC BY-NC 4.0", size="2,245 questions, English and Korean, ten chunks each",
        get="hub:upstage/CReSt, or a folder with its two splits",
        settings={"reasoning": "chain_of_thought", "layout": "as_published", "rules": "grounded",
                  "conditions": "given"})
    # Tables 3 (models), 4 (citations), 5 (difficulty) and 6 (strategies).
    scheme = Scheme(
        groups=("answers", "overlap", "ranking", "form"), rubric="grades",
        columns=("unified", "correct / partial / wrong", "refusal_accuracy", "citation_f1"),
        views=("by:language", "by:difficulty_type", "by:reasoning_type", "by:format"),
        published=("crest_3", "crest_4", "crest_5", "crest_6"))

    kind: Literal["crest"] = "crest"
    path: str = "hub:upstage/CReSt"

    def load(self) -> Benchmark:
        """Load the chosen questions; those of the two splits alternate, so that a limit sees both.

        Raises:
            BenchmarkError: the files are not there, or a record does not fit.
        """
        files = files_of_splits(fetched(self.path))
        splits = []
        for split in (split for split in SPLITS if split in files):
            seen: Counter[str] = Counter()  # ids may repeat within a split: each language may count from 1
            splits.append([to_question(row, split, distinct(_id(row, split), seen))
                           for row in chain.from_iterable(map(read_rows, files[split]))])
        loaded = list(alternating(splits))
        documents = {document.id: document for _, given in loaded for document in given}
        return self.select(Benchmark("crest", tuple(question for question, _ in loaded), documents))


def to_question(row: Row, split: Split, id: str) -> Loaded:
    """Return the question of one record, and its documents.

    Raises:
        BenchmarkError: the record does not fit: file, line, field, expected.
    """
    records = row.decoded("documents", list, "a list of documents")
    documents = _documents(row, records, id)
    formats: list[Format] = ["html" if record["type"] == "html" else "plain" for record in records]
    chunks = tuple(Chunk.of(document, format, 0, len(document.text(format)))  # the content is one chunk already
                   for document, format in zip(documents, formats, strict=True))
    docids = [record["docid"] for record in records]
    by_docid = dict(zip(reversed(docids), reversed(chunks), strict=True))  # the first of a docid that repeats
    cited = _citations(row, docids, split)
    gold = [gold_chunk(by_docid[docid]) if docid in by_docid else Gold(f"{id}/{docid}")
            for docid in dict.fromkeys(cited)]
    # `citation_ids`, which people checked, are the gold; the documents say theirs in `ground`.
    grounds = {record["docid"] for record in records if record.get("ground")}
    ground = "agrees" if grounds == set(cited) else "differs"
    answer = row.fields.get("answer") if split == "refusal" else row.filled("answer")
    return Question(
        id=id, text=row.filled("query"), answers=(answer,) if isinstance(answer, str) and answer.strip() else (),
        answerable=split == "non_refusal", gold=tuple(gold), gold_repeats=len(cited) - len(gold), given=chunks,
        options=_options(row), tags={**_tags(row, split), "ground": (ground,), **_format(gold)},
    ), documents


def _id(row: Row, split: Split) -> str:
    id = row.stated_id()
    if id is None:
        content = (row.text("query"), str(row.fields.get("answer")), str(row.fields.get("documents")))
        id = digest(*content)[:12]
    return f"{split}-{id}"


def _documents(row: Row, records: Sequence[Any], question: str) -> tuple[Document, ...]:
    seen: Counter[str] = Counter()
    documents = (_document(row, at, record, question) for at, record in enumerate(records))
    return tuple(replace(document, id=distinct(document.id, seen)) for document in documents)


def _document(row: Row, at: int, record: Any, question: str) -> Document:
    field = f"documents[{at}]"
    if not isinstance(record, dict):
        row.fail(field, "a dictionary with docid, content, type, source_path, ground", record)
    if isinstance(record.get("docid"), bool) or not isinstance(record.get("docid"), int):
        row.fail(f"{field}.docid", "a whole number", record.get("docid"))
    content, kind = record.get("content"), record.get("type")
    if not isinstance(content, str):
        row.fail(f"{field}.content", "text", content)
    if kind not in ("html", "text"):
        row.fail(f"{field}.type", "'html' or 'text'", kind)
    id = f"{question}/{record['docid']}"
    source = str(record.get("source_path") or id)
    html, plain = (content, "") if kind == "html" else ("", content)
    return Document(id, source, source.rsplit("/", 1)[-1], html, plain)


def _citations(row: Row, docids: Sequence[int], split: Split) -> list[int]:
    """The gold docids as stated, repeats included. Those of an unanswerable question may have been left out."""
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


def _options(row: Row) -> tuple[tuple[str, str], ...]:
    options = row.fields.get("options")
    if not options:
        return ()
    if not isinstance(options, list) or not all(isinstance(option, str) for option in options):
        row.fail("options", "a list of texts", options)
    if len(options) > MOST_LETTERS:
        row.fail("options", f"at most {MOST_LETTERS} texts", len(options))
    return lettered(options)


def _tags(row: Row, split: Split) -> dict[str, tuple[str, ...]]:
    meta = row.decoded("meta", dict, "a dictionary")
    for field in ("language", "difficulty_type"):
        if not isinstance(meta.get(field), str):
            row.fail(f"meta.{field}", "text", meta.get(field))
    tags: dict[str, tuple[str, ...]] = {"split": (split,)}
    tags |= {name: (value,) for name, value in meta.items() if isinstance(value, str)}
    reasoning = tuple(dict.fromkeys(_flat(row, row.fields.get("reasoning_type") or [])))
    if reasoning:
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
