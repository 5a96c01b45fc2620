"""Chunking evaluation: questions whose gold is spans of characters, for judging chunkers by what is retrieved.

Paper: Smith, Troynikov, "Evaluating Chunking Strategies for Retrieval", Chroma technical report, 2024,
research.trychroma.com/evaluating-chunking. Code and data: github.com/brandonstarxel/chunking_evaluation, MIT licence.

A folder with `questions_df.csv` and `corpora/NAME.md`; one made-up row:

    question,references,corpus_id
    How fast do reefs grow?,"[{""content"": ""two centimetres"", ""start_index"": 31, ""end_index"": 46}]",esk

Positions count code points of the corpus as it is read. So its text is used as it is, and its Markdown is not parsed.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Literal

from ragbed.documents.chunkers import ChunkerSettings, Recursive
from ragbed.documents.errors import BenchmarkError
from ragbed.documents.paths import expand_path
from ragbed.documents.rows import Row, convert_records, read_csv, read_text
from ragbed.documents.types import Document, digest
from ragbed.experiments.benchmarks.base import About, Selection, files_below
from ragbed.experiments.benchmarks.fields import unique_id
from ragbed.experiments.question import SPANS, Benchmark, Gold, Question


class ChunkingEval(Selection):
    """The chunking evaluation of Smith and Troynikov, which compares retrieved characters with gold characters.

    Attributes:
        path: the folder.
        chunker: chunker for the corpora if a run has no `chunkers`.
    """

    about = About(
        paper="Evaluating Chunking Strategies for Retrieval (2024), https://research.trychroma.com/evaluating-chunking",
        licence="MIT", size="472 questions over five corpora, 790 spans of gold characters",
        get="the folder general_evaluation_data of https://github.com/brandonstarxel/chunking_evaluation",
        settings={"reasoning": "search_only", "conditions": "retrieved", "retriever": {"kind": "dense", "k": 5}})
    scheme = SPANS

    kind: Literal["chunking_eval"] = "chunking_eval"
    path: str
    chunker: ChunkerSettings = Recursive(size=800)

    def whole(self) -> Benchmark:
        """Return all questions, over the chunks of all corpora."""
        folder = expand_path(self.path)
        place, corpora = folder / "corpora", dict[str, Document]()
        for file in files_below(place, (".md", ".txt")):
            if file.stem in corpora:
                raise BenchmarkError(f"{place}: two corpora have the name {file.stem}; rename one")
            corpora[file.stem] = Document(file.stem, file.name, file.stem, "", read_text(file))
        seen: Counter[str] = Counter()
        made = convert_records(partial(_question, corpora=corpora, seen=seen), read_csv(folder / "questions_df.csv"))
        shared = tuple(chunk for document in corpora.values() for chunk in self.chunker.chunk(document, "plain"))
        return Benchmark("chunking_eval", tuple(made), corpora, shared)


def _question(row: Row, corpora: Mapping[str, Document], seen: Counter[str]) -> Question:
    text, corpus = row.filled("question"), row.text("corpus_id")
    if corpus not in corpora:
        row.fail("corpus_id", f"one of the corpora in the folder: {', '.join(corpora)}", corpus)
    stated = replace(row, fields={"references": row.decoded("references", list, "a list")})
    gold = [_gold(part, corpora[corpus]) for part in stated.parts("references")]
    return Question(id=unique_id(digest(text)[:12], seen), text=text, answers=(), answerable=True,
                    gold=tuple(dict.fromkeys(gold)), tags={"corpus": (corpus,)})


def _gold(part: Row, corpus: Document) -> Gold:
    """Return the gold span of an excerpt, after its position was compared with its text."""
    content, start, end = part.filled("content"), part.number("start_index"), part.number("end_index")
    if not 0 <= start < end or corpus.plain[start:end] != content:
        part.fail("content", f"the text of {corpus.source} from {start} to {end}", content)
    return Gold(corpus.id, format="plain", start=start, end=end)
