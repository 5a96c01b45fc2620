"""MTRAG: questions asked during conversations, over reference passages or a whole collection.

Paper: Katsis, Rosenthal, Fadnis, Gunasekara, Lee, Popa, Shah, Zhu, Contractor, Danilevsky, "MTRAG: A Multi-Turn
Conversational Benchmark for Evaluating Retrieval-Augmented Generation Systems", TACL 13, 2025, arXiv:2501.03468. Code
and data: github.com/IBM/mt-rag-benchmark; not included in this project.

One made-up task in the published format of `generation_tasks/reference.jsonl`. Its `input` is the whole conversation,
which ends with the question; its `contexts` are the passages in which annotators found the answer:

    {"conversation_id": "c7", "task_id": "c7<::>2", "task_type": "rag", "turn": "2",
     "dataset": "MT-RAG Authors (Internal)",
     "contexts": [{"document_id": "81_0-96", "text": "Reefs of Esk\\nThe northern reef ...", "title": "Reefs of Esk",
                   "score": 21.5, "feedback": {...}, "query": {...}}],
     "input": [{"speaker": "user", "text": "which reefs are near esk", "metadata": {...}},
               {"speaker": "agent", "text": "A northern and a southern one.", "metadata": {...}},
               {"speaker": "user", "text": "How fast does the first one grow?", "metadata": {...}}],
     "targets": [{"speaker": "agent", "text": "By two centimetres a year.", "metadata": {...}}],
     "Question Type": ["Factoid"], "Multi-Turn": ["Follow-up"], "Answerability": ["ANSWERABLE"],
     "Collection": "mt-rag-clapnq-elser-512-100-20240503"}

`Multi-Turn` is `N/A`, `Follow-up` or `Clarification`. `Answerability` may also be `PARTIAL`, `UNANSWERABLE`, or
`CONVERSATIONAL` for a message that is not a question. A passage of `corpora/passage_level/clapnq.jsonl`: `{"_id":
"81_0-96", "title": "Reefs of Esk", "text": "...", ...}`.
"""
from __future__ import annotations

from functools import partial
from itertools import chain
from typing import Literal

from ragbed.documents.errors import BenchmarkError
from ragbed.documents.rows import Row, convert_records, read_rows
from ragbed.documents.types import Chunk, Document
from ragbed.experiments.benchmarks.base import About, RecordFiles, collect_questions, files_below
from ragbed.experiments.benchmarks.fields import gold_chunk, make_tags, passage
from ragbed.experiments.benchmarks.hub import fetch_files
from ragbed.experiments.question import Benchmark, Question, Scheme
from ragbed.strategies.history import read_turns

Passages = dict[str, tuple[Document, Chunk]]  # passages by id
_NO_ANSWER = "UNANSWERABLE"


class Mtrag(RecordFiles):
    """MTRAG: each task is a turn of a conversation, with the earlier turns as published.

    Attributes:
        path: the file `reference.jsonl`, or a folder with only that file.
        corpus: a passage-level collection such as `clapnq.jsonl`. Only tasks of the collection with that name are
            asked, over the whole collection. By default all tasks are asked, over their own passages.
    """

    about = About(
        paper="MTRAG: A Multi-Turn Conversational Benchmark for Evaluating Retrieval-Augmented Generation Systems "
              "(2025), https://arxiv.org/abs/2501.03468",
        licence="as its repository says; each collection has its own",
        size="842 tasks, the turns of 110 conversations, over four collections of 49,607 to 183,408 passages",
        get="mtrag-human/generation_tasks/reference.jsonl of https://github.com/IBM/mt-rag-benchmark, and for "
            "retrieval an unpacked file of its corpora/passage_level",
        settings={"rules": "grounded"})
    scheme = Scheme(groups=("answers", "overlap", "ranking", "form"), rubric="grades",
                    columns=("right", "f1", "refusal_accuracy", "citation_f1", "recall@5", "ndcg@5"),
                    views=("by:turn", "by:question_type", "by:multi_turn", "by:answerability"))

    kind: Literal["mtrag"] = "mtrag"
    corpus: str | None = None

    def whole(self) -> Benchmark:
        """Return the tasks, over the collection or their own passages."""
        passages: Passages = {}
        if self.corpus is not None:
            files = files_below(fetch_files(self.corpus))
            for _ in convert_records(partial(_add_chunk, passages, "_id"), chain.from_iterable(map(read_rows, files))):
                pass
        questions, _ = collect_questions(convert_records(lambda row: (_question(row, passages), ()), self.rows()))
        if self.corpus is not None:
            names = {file.name.partition(".")[0] for file in files}
            questions = tuple(one for one in questions if any(name in one.tags["collection"][0] for name in names))
            if not questions:
                raise BenchmarkError(f"{self.path}: no task uses the collection {' or '.join(sorted(names))} of "
                                     f"{self.corpus}; give the collection that the tasks use")
        return Benchmark("mtrag", questions, {id: document for id, (document, _) in passages.items()},
                         shared=tuple(chunk for _, chunk in passages.values()))


def _add_chunk(passages: Passages, id: str, row: Row) -> Chunk:
    """Return the first passage with this id. Its title precedes the text unless the text begins with it."""
    name, title, text = row.id(id), row.optional("title"), row.text("text")
    made = passage(text, "" if text.startswith(title) else title, name)
    return passages.setdefault(name, made)[1]


def _question(row: Row, passages: Passages) -> Question:
    turns = [(part.text("speaker"), part.text("text")) for part in row.parts("input")]
    if not turns or turns[-1][0] != "user" or not turns[-1][1].strip():
        row.fail("input", "a conversation that ends with a question of the user", row.fields["input"])
    answerability = row.texts("Answerability")
    answerable = _NO_ANSWER not in answerability
    given = tuple(_add_chunk(passages, "document_id", part) for part in row.parts("contexts"))
    targets = tuple(target.filled("text") for target in row.parts("targets"))
    return Question(
        id=row.id("task_id"), text=turns[-1][1], answers=targets if answerable else (), answerable=answerable,
        gold=tuple(map(gold_chunk, given)) if answerable else (), provided=given, turns=read_turns(turns[:-1]),
        tags={**make_tags(turn=row.id("turn"), conversation=row.id("conversation_id"),
                     collection=row.text("Collection")),
              "answerability": answerability, "question_type": row.texts("Question Type"),
              "multi_turn": row.texts("Multi-Turn")})
