"""LongMemEval: questions about a user's past chats, each over a history of dated sessions.

Paper: Wu, Wang, Yu, Zhang, Chang, Yu, "LongMemEval: Benchmarking Chat Assistants on Long-Term Interactive Memory", ICLR
2025, arXiv:2410.10813. Code: github.com/xiaowu0162/LongMemEval, MIT. Data: `xiaowu0162/longmemeval-cleaned` on the
Hugging Face hub, the files `longmemeval_oracle.json` (only the evidence), `longmemeval_s_cleaned.json` (about 40
sessions) and `longmemeval_m_cleaned.json` (about 500); not included in this project.

One made-up record. An id with `_abs` means that the history does not answer the question; its `answer` says why:

    {"question_id": "e47b", "question_type": "temporal-reasoning", "question": "How long did I wait for the ferry?",
     "answer": "Two days", "question_date": "2023/05/30 (Tue) 23:40", "haystack_session_ids": ["s1", "s2"],
     "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/22 (Mon) 09:00"],
     "haystack_sessions": [[{"role": "user", "content": "I am waiting for the ferry.", "has_answer": true},
                            {"role": "assistant", "content": "Bring a book."}], [...]],
     "answer_session_ids": ["s1", "s2"]}

Ids of evidence sessions begin with `answer_` in the published files, so documents are named by their place instead.

Answers are exchanged as lines of `{"question_id", "hypothesis"}`, which its `evaluate_qa.py` reads. The view `memory`
has the figures of `print_qa_metrics.py`: accuracy by question type, its mean over the types and over all questions, and
over unanswerable questions. There, a judge also decides whether an answer declines an unanswerable question, and
grades a preference by a rubric; here, the first is a refusal, and the second is graded like other answers.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Literal

from ragbed.documents.rows import Row, convert_records, read_rows
from ragbed.documents.types import Chunk, Document
from ragbed.experiments.analysis.inputs import AnalysisInput, compute_figures
from ragbed.experiments.analysis.view import Value, View
from ragbed.experiments.answer_files import AnswerFormat, Prediction
from ragbed.experiments.benchmarks.base import About, Loaded, RecordFiles
from ragbed.experiments.benchmarks.fields import gold_chunk, make_tags, passage, pieces
from ragbed.experiments.guests.pipelines.answer_files.conversion import line_writer, prediction
from ragbed.experiments.question import Question, Scheme
from ragbed.experiments.record import Result

_ABSTENTION = "_abs"


class LongMemEval(RecordFiles):
    """LongMemEval. Each question searches its own history, and states its date.

    Attributes:
        units: whether a chunk is a session or a turn, as in the paper's experiments. Gold turns are those marked
            `has_answer`.
    """

    about = About(
        paper="LongMemEval: Benchmarking Chat Assistants on Long-Term Interactive Memory (ICLR 2025), "
              "https://arxiv.org/abs/2410.10813",
        licence="MIT", size="500 questions, 30 of them unanswerable, over about 40 or 500 sessions each",
        get="a file of xiaowu0162/longmemeval-cleaned of the hub, such as longmemeval_s_cleaned.json",
        settings={"conditions": "retrieved", "rules": "grounded"})
    scheme = Scheme(groups=("answers", "overlap", "ranking", "form"), rubric="grades",
                    columns=("right", "refusal_accuracy", "recall@5", "ndcg@10"), views=("memory",))

    kind: Literal["longmemeval"] = "longmemeval"
    units: Literal["sessions", "turns"] = "sessions"

    def question(self, row: Row) -> Loaded:
        """Return the question of one record, over the sessions of its history."""
        id, sessions = row.id("question_id"), row.fields.get("haystack_sessions")
        if not isinstance(sessions, list) or not sessions or not all(isinstance(one, list) for one in sessions):
            row.fail("haystack_sessions", "a list of sessions, each a list of turns", sessions)
        dates = self._of_each(row, "haystack_dates", len(sessions)) or [""] * len(sessions)
        names = self._of_each(row, "haystack_session_ids", len(sessions)) or list(map(str, range(len(sessions))))
        answering = set(map(str, row.fields.get("answer_session_ids") or ()))
        documents, chunks, gold = list[Document](), list[Chunk](), list[Chunk]()
        for place, (name, date) in enumerate(zip(names, dates, strict=True)):
            turns = row.part(f"haystack_sessions[{place}]", {"turns": sessions[place]}).parts("turns")
            document, made, marked = self._read_session(turns, f"{id}/{place + 1}", date)
            documents.append(document)
            chunks += made
            named = name in answering or (not answering and bool(marked))
            gold += (made if named else ()) if self.units == "sessions" else marked
        answerable, date = _ABSTENTION not in id, row.optional("question_date")
        answer = str(row.number("answer")) if isinstance(row.fields.get("answer"), int) else row.filled("answer")
        return Question(
            id=id, text=row.filled("question") + (f" (asked on {date})" if date else ""),
            answers=(answer,) if answerable else (), answerable=answerable,
            gold=tuple(map(gold_chunk, gold)) if answerable else (), provided=tuple(chunks),
            tags=make_tags(question_type=row.text("question_type"))), documents

    @staticmethod
    def _of_each(row: Row, field: str, count: int) -> list[str]:
        """Return a list of texts, one per session; empty if the record lacks it."""
        listed = row.fields.get(field) or []
        if not isinstance(listed, list) or len(listed) not in (0, count):
            row.fail(field, f"one for each of the {count} sessions", listed)
        return list(map(str, listed))

    def _read_session(self, turns: Sequence[Row], id: str, date: str) -> tuple[Document, list[Chunk], list[Chunk]]:
        """Return a session as a document that begins with its date, its chunks, and the chunks of marked turns."""
        texts = [f"{turn.text('role')}: {turn.text('content').strip()}" for turn in turns]
        document, whole = passage("\n\n".join(texts), f"Chat on {date}" if date else "", id)
        parts = pieces(document, texts)
        marked = [chunk for place, chunk in parts.items() if turns[place].fields.get("has_answer") is True]
        return document, [whole] if self.units == "sessions" else list(parts.values()), marked


def memory(material: AnalysisInput) -> list[View]:
    """Return the accuracy of each cell by question type, and the means that the benchmark's script prints."""
    rows: list[tuple[Value, ...]] = []
    for label, cell in material.labelled():
        results = material.results[cell["id"]]
        by_type: dict[str, list[Result]] = {}
        for one in results:
            for name in material.tags(one, "question_type"):
                by_type.setdefault(name, []).append(one)
        declined = [one for one in results if _ABSTENTION in one.question]
        shares = [_share(part) for part in by_type.values()]
        rows += [(name, label, len(part), *compute_figures(material, cell, part, ["right"]))
                 for name, part in [*sorted(by_type.items()), ("all questions", results), ("abstention", declined)]
                 if part]
        rows.append(("mean of the types", label, len(results), fmean(shares) if shares else None))
    return [View("memory", "Figures of LongMemEval", ("question type", "cell", "n", "accuracy"), tuple(rows), 2,
                 notes=("Unanswerable questions also count in their type, as in the benchmark's script.",))]


def _share(results: Sequence[Result]) -> float:
    return fmean(one.scores.get("right") == 1 for one in results)


def _read(file: Path) -> Iterator[Prediction]:
    return convert_records(lambda row: prediction(row, row.id("question_id"), "", {"answer": row.text("hypothesis")}),
                           read_rows(file))


HYPOTHESES = AnswerFormat(_read, line_writer(
    lambda answer: {"question_id": answer["id"], "hypothesis": answer["answer"] or ""}))
