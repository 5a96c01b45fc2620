"""BrowseComp-Plus: hard questions of BrowseComp over a fixed corpus, for agents that search.

Paper: Chen et al., "BrowseComp-Plus: A More Fair and Transparent Evaluation Benchmark of Deep-Research Agent", 2025,
arXiv:2508.06600. Code, judgements and leaderboard: github.com/texttron/BrowseComp-Plus. Data, not included in this
project: `Tevatron/browsecomp-plus` on the Hugging Face hub, encrypted so that it does not end up in training data, and
`Tevatron/browsecomp-plus-corpus`. `scripts_build_index/decrypt_dataset.py` of the repository writes the file to read.

One made-up row of it; evidence documents are needed for the answer, and gold documents state it:

    {"query_id": "769", "query": "Which lighthouse did the keeper ...?", "answer": "Aster Point",
     "gold_docs": [{"docid": "18639", "text": "---\\ntitle: Aster Point\\n---\\nIt was ...", "url": "https://..."}],
     "evidence_docs": [{"docid": "18639", ...}, {"docid": "5412", ...}], "negative_docs": [{"docid": "82", ...}, ...]}

A row of the corpus is `{"docid", "text", "url"}`, a line of the judgements `769 Q0 18639 1`.

The view `browsing` has the figures of the leaderboard, as `scripts_evaluation/evaluate_run.py` computes them, in
percent and over all questions: accuracy; recall, the mean share of evidence documents among all that were found; calls
by tool; and the calibration error. Its judge is asked to read the confidence from the answer, and to take 100 if there
is none; ragbed takes the strategy's figure `confidence`, or else the number after `Confidence:`. The script leaves the
last bin of the calibration error out, and prints 0 below 100 judged answers, where the view has no value.
"""
from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from ragbed.documents.rows import Row, convert_records, read_rows
from ragbed.documents.types import Chunk, Document
from ragbed.experiments.analysis.inputs import AnalysisInput
from ragbed.experiments.analysis.view import Value, View
from ragbed.experiments.answer_files import Answer, AnswerFormat, Prediction
from ragbed.experiments.benchmarks.base import About, RecordFiles, collect_questions, files_below
from ragbed.experiments.benchmarks.hub import fetch_files
from ragbed.experiments.guests.datasets.qrels import Qrels, read_qrels
from ragbed.experiments.guests.pipelines.answer_files.conversion import prediction
from ragbed.experiments.guests.trajectories.trajectory_figures import TOOLS
from ragbed.experiments.metrics import calibration_error
from ragbed.experiments.question import Benchmark, Gold, Question, Scheme
from ragbed.experiments.record import Result
from ragbed.strategies.reading import find_citations

Passages = dict[str, tuple[Document, Chunk]]  # documents, each with its one chunk, by id
_ENCRYPTED = re.compile(r"[A-Za-z0-9+/]{16,}={0,2}")
_TITLE = re.compile(r"\A---\s*\n(?:.*\n){0,5}?title:[ \t]*(.+)")
_CONFIDENCE = re.compile(r"confidence\W{0,9}(\d{1,3}(?:\.\d{1,9})?)", re.IGNORECASE)
_DOCID = r"[\w.-]+"
_CITED = re.compile(rf"\[{_DOCID}(?:, ?{_DOCID})*\]|【{_DOCID}】")
_CALLS = "tool_calls_"  # metrics of calls by tool, of the guest trajectories
_NO_TOOLS = frozenset(f"{_CALLS}{name}" for name in ("other", "repeated", "empty", "failed"))
_COMPLETED = ("answered", "refused")


class BrowseCompPlus(RecordFiles):
    """BrowseComp-Plus from its decrypted file.

    Attributes:
        path: the decrypted JSON Lines, or a folder with only them.
        corpus: the corpus, as a file, a folder or `hub:OWNER/NAME`. By default the documents of all questions, which
            the decrypted file has, are the corpus. An index of the corpus, `retriever: {index: FOLDER}`, is searched
            instead of either.
        qrels: judgements to use instead of the file's own, such as `topics-qrels/qrel_evidence.txt`.
        labels: whether evidence documents or gold documents count as gold.
    """

    about = About(
        paper="BrowseComp-Plus: A More Fair and Transparent Evaluation Benchmark of Deep-Research Agent (2025), "
              "https://arxiv.org/abs/2508.06600",
        licence="MIT by its page; the documents belong to their authors",
        size="830 questions over 100,195 web pages",
        get="Tevatron/browsecomp-plus of the hub, decrypted by the script in "
            "https://github.com/texttron/BrowseComp-Plus, and its corpus Tevatron/browsecomp-plus-corpus",
        settings={"conditions": "retrieved"})
    scheme = Scheme(groups=("answers", "ranking", "form"), rubric="grades",
                    columns=("right", "recall@5", "recall@100", "ndcg@10"), views=("browsing",))

    kind: Literal["browsecomp_plus"] = "browsecomp_plus"
    corpus: str | None = None
    qrels: str | None = None
    labels: Literal["evidence", "gold"] = "evidence"

    def whole(self) -> Benchmark:
        """Return all questions, over one corpus."""
        passages: Passages = {}
        if self.corpus is not None:
            rows = chain.from_iterable(map(read_rows, files_below(fetch_files(self.corpus))))
            for _ in convert_records(lambda row: _add_document(passages, row), rows):
                pass
        judged = read_qrels(fetch_files(self.qrels)) if self.qrels is not None else None
        questions, _ = collect_questions(convert_records(lambda row: (self._question(row, passages, judged), ()),
                                                         self.rows()))
        return Benchmark("browsecomp_plus", questions, {id: document for id, (document, _) in passages.items()},
                         shared=tuple(chunk for _, chunk in passages.values()))

    def _question(self, row: Row, passages: Passages, judged: Qrels | None) -> Question:
        text = row.filled("query")
        if _ENCRYPTED.fullmatch(text.strip()):
            row.fail("query", "a decrypted question; decrypt the file with the benchmark's decrypt_dataset.py", text)
        listed = {name: self._ids(row, f"{name}_docs", passages) for name in ("gold", "evidence", "negative")}
        id = row.id("query_id")
        relevant = listed[self.labels] if judged is None else [
            document for document, grade in judged.get(id, {}).items() if grade > 0]
        return Question(id=id, text=text, answers=(row.filled("answer"),), answerable=True,
                        gold=tuple(map(Gold, dict.fromkeys(relevant))),
                        negatives=tuple(passages[one][1] for one in listed["negative"] if one in passages))

    def _ids(self, row: Row, field: str, passages: Passages) -> list[str]:
        """Return the ids of documents, given as records or ids. Unless there is a corpus, records with a text are added
        to the passages."""
        if not isinstance(row.fields.get(field), list | None):
            row.fail(field, "a list of documents", row.fields[field])
        parts = [row.part(f"{field}[{at}]", one if isinstance(one, dict) else {"docid": one})
                 for at, one in enumerate(row.fields.get(field) or ())]
        return [_add_document(passages, part) if self.corpus is None and part.fields.get("text") else part.id("docid")
                for part in parts]


def _add_document(passages: Passages, row: Row) -> str:
    """Add a document with its id as its source, unless it is there. Return the id."""
    id, text = row.id("docid"), row.filled("text")
    if id not in passages:
        stated = _TITLE.match(text)
        document = Document(id, id, stated[1].strip() if stated else row.optional("url"), "", text)
        passages[id] = document, Chunk.of(document, "plain", 0, len(text))
    return id


def read_confidence(figures: Mapping[str, float], text: str) -> float:
    """Return an answer's confidence in percent: the strategy's figure, the number in the text, or 100."""
    stated = _CONFIDENCE.search(text)
    found = 100 * figures["confidence"] if "confidence" in figures else float(stated[1]) if stated else 100.0
    return min(found, 100.0)


def browsing(material: AnalysisInput) -> list[View]:
    """Return the figures of the leaderboard for each cell, in percent, and the mean number of calls by tool."""
    found = [(label, len(results), _leaderboard_figures(results)) for label, cell in material.labelled()
             if (results := material.results[cell["id"]])]
    tools = list(dict.fromkeys(name for *_, (_, calls) in found for name in calls))
    rows = [(label, n, *figures, *(calls.get(name, 0.0) for name in tools)) for label, n, (figures, calls) in found]
    notes = ("In percent, as the benchmark's script computes them. Recall counts every document that a search or tool "
             "found. The script leaves out the last bin of 100 answers in the calibration error; the next column has "
             "all bins. Neither is given for less than 100 judged answers.",)
    header = ("cell", "n", "accuracy", "recall", "calibration error", "all bins", *(f"calls: {name}" for name in tools))
    return [View("browsing", "Figures of BrowseComp-Plus's leaderboard", header, tuple(rows), main=2, notes=notes)]


def _leaderboard_figures(results: Sequence[Result]) -> tuple[Sequence[Value], Mapping[str, float]]:
    recalls = [len(set[int]().union(*(passage.holds for passage in one.evidence))) / one.gold_total
               for one in results if one.gold_total]
    judged = [(read_confidence(one.figures, one.text) / 100, right) for one in results
              if one.outcome in _COMPLETED and (right := one.scores.get("right")) is not None]
    errors = [calibration_error([sure for sure, _ in judged], [right for _, right in judged], as_published)
              for as_published in (True, False)]
    calls = Counter[str]()
    for one in results:
        calls.update({name.removeprefix(_CALLS): int(count) for name, count in one.scores.items()
                      if name.startswith(_CALLS) and name not in _NO_TOOLS and count})
    for kind in TOOLS:  # counts tools such as `search_dense` too, which have their own count
        calls[kind] -= sum(count for name, count in calls.items() if name != kind and name.startswith(kind))
    return (_percent(sum(one.scores.get("right") == 1 for one in results) / len(results)),
            _percent(math.fsum(recalls) / len(recalls)) if recalls else None, *map(_percent, errors)), {
                name: count / len(results) for name, count in calls.items() if count}


def _percent(share: float | None) -> float | None:
    return None if share is None else round(100 * share, 2)


def _write_runs(answers: Iterator[Answer], folder: Path) -> None:
    """Write a file for each question, in the form that the leaderboard's script reads."""
    for place, answer in enumerate(answers, start=1):
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", answer["id"])[:60]
        (folder / f"run_{place:04}_{name}.json").write_text(json.dumps(_run(answer), indent=2), encoding="utf-8")


def _run(answer: Answer) -> dict[str, Any]:
    """Return the record of a question. Its text cites ids of documents, and ends with the confidence."""
    text, names = answer["answer"] or "", [one["document"].rpartition("#")[2] for one in answer["contexts"]]
    for start, end, numbers in reversed(list(find_citations(text))):
        cited = dict.fromkeys(names[number - 1] for number in numbers if 0 < number <= len(names))
        text = f"{text[:start]}[{', '.join(cited)}]{text[end:]}"
    if text and "confidence" in answer["figures"] and not _CONFIDENCE.search(text):
        text += f"\nConfidence: {read_confidence(answer['figures'], ''):g}%"
    return {"metadata": {"model": answer["run"]}, "query_id": answer["id"], "tool_call_counts": answer["calls_by_tool"],
            "status": "completed" if answer["outcome"] in _COMPLETED else answer["outcome"],
            "retrieved_docids": answer["found"], "result": [{"type": "output_text", "output": text}] if text else []}


def _read_runs(folder: Path) -> Iterator[Prediction]:
    return convert_records(_read_run, chain.from_iterable(map(read_rows, files_below(folder, (".json",)))))


def _read_run(row: Row) -> Prediction:
    """Return the answer in a run file. Ids of documents in brackets become positions in `retrieved_docids`. A file
    without a final answer becomes a failure; what it retrieved does not count."""
    found = [str(one) for one in row.decoded("retrieved_docids", list, "a list of ids")]
    results, status = row.parts("result"), row.text("status")
    text = results[-1].text("output") if results and results[-1].text("type") == "output_text" else ""
    text = _CITED.sub(lambda mark: f"[{', '.join(str(found.index(one) + 1) for one in re.findall(_DOCID, mark[0]))}]"
                      if set(re.findall(_DOCID, mark[0])) <= set(found) else mark[0], text)
    done = status == "completed" and text
    return prediction(row, row.id("query_id"), "", {"answer": text, "contexts": [{"document": one} for one in found]},
                      failure="" if done else f"the run file has no final answer; its status is {status}")


RUN_FILES = AnswerFormat(_read_runs, _write_runs, folder=True)
