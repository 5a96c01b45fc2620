"""A run's answers in the files of other tools, as `agents.pipelines.formats` reads them back. A question that ended
without an answer has a row without one."""
from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ragbed.agents.pipelines.formats import PredictionFormat
from ragbed.documents.errors import MissingExtra
from ragbed.experiments.runs.finished import Finished
from ragbed.strategies.reading import citation_marks, strip_citations
from ragbed.strategies.reasoning.pipeline import renumbered
from ragbed.strategies.support.check import pieces_of

Answer = Mapping[str, Any]


def answers_of(run: Finished, cells: Collection[str]) -> Iterator[Answer]:
    """Yield the answers of these cells, in the run's order, as lines of `jsonl`: citations are places in the contexts,
    from 1."""
    for result in (record.result for record in run.folder.records() if record.result.cell in cells):
        question, failure, usage = run.questions[result.question], result.failure, result.usage
        place_of = {passage.number: place for place, passage in enumerate(result.in_view, start=1)}
        yield {"run": run.name if len(run.labels) == 1 else f"{run.name}: {run.labels[result.cell]}",
               "id": question.id, "question": question.text, "gold": list(question.answers),
               "answer": renumbered(result.text, place_of, len(place_of)) or None,
               "citations": [place_of[number] for number in result.cited], "refused": result.refused,
               "contexts": [{"document": passage.source, "text": run.folder.database.text(passage.text),
                             **({"start": passage.start, "end": passage.end} if passage.format == "plain"
                                and passage.end > passage.start else {})} for passage in result.in_view],
               "prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens,
               "price": usage.price, "scores": result.scores,
               **({"failure": f"{failure.kind}: {failure.message}"} if failure else {})}


def _trec_rag(one: Answer) -> Answer:
    """What is cited apart from the text is cited by the last sentence."""
    sentences: list[dict[str, Any]] = [{"text": strip_citations(piece), "citations": [
        place - 1 for *_, places in citation_marks(piece) for place in places if 0 < place <= len(one["contexts"])]}
        for piece in pieces_of(one["answer"] or "")]
    known = {place for sentence in sentences for place in sentence["citations"]}
    for sentence in sentences[-1:]:
        sentence["citations"] += [place - 1 for place in one["citations"] if place - 1 not in known]
    return {"run_id": one["run"], "topic_id": one["id"], "topic": one["question"],
            "references": [context["document"] for context in one["contexts"]],
            "response_length": sum(len(sentence["text"].split()) for sentence in sentences), "answer": sentences}


def _ragas(one: Answer) -> Answer:
    return {"user_input": one["question"], "retrieved_contexts": [context["text"] for context in one["contexts"]],
            "retrieved_context_ids": [context["document"] for context in one["contexts"]],
            "response": one["answer"], "reference": next(iter(one["gold"]), None)}


def _text(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False).encode("utf-8", "replace").decode() + "\n"


def _in_lines(row: Callable[[Answer], Answer]) -> Writer:
    def write(answers: Iterator[Answer], path: Path) -> None:
        with path.open("w", encoding="utf-8") as file:
            file.writelines(_text(row(one)) for one in answers)

    return write


def _write_ragchecker(answers: Iterator[Answer], path: Path) -> None:
    path.write_text(_text({"results": [{
        "query_id": one["id"], "query": one["question"], "gt_answer": next(iter(one["gold"]), ""),
        "response": one["answer"] or "", "retrieved_context": [
            {"doc_id": context["document"], "text": context["text"]} for context in one["contexts"]]}
        for one in answers]}), encoding="utf-8")


def _write_inspect(answers: Iterator[Answer], path: Path) -> None:
    try:
        from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSample, EvalSpec, write_eval_log
        from inspect_ai.model import ModelOutput, ModelUsage
        from inspect_ai.scorer import Score
    except ImportError as error:
        raise MissingExtra("inspect-ai", "inspect") from error
    name, samples = "", []
    for one in answers:
        name, output = one["run"], ModelOutput.from_content(one["run"], one["answer"] or "")
        output.usage = ModelUsage(input_tokens=one["prompt_tokens"], output_tokens=one["completion_tokens"],
                                  total_cost=one["price"])
        samples.append(EvalSample(
            id=one["id"], epoch=1, input=one["question"], target=one["gold"], output=output,
            metadata={key: one[key] for key in ("contexts", "citations", "refused")},
            scores={key: Score(value=value) for key, value in one["scores"].items() if value is not None},
            error={"message": one["failure"], "traceback": "", "traceback_ansi": ""} if "failure" in one else None))
    spec = EvalSpec(created="1970-01-01T00:00:00+00:00", task=name, model=name, config=EvalConfig(epochs=1),
                    dataset=EvalDataset(samples=len(samples), sample_ids=[sample.id for sample in samples]))
    write_eval_log(EvalLog(status="success", eval=spec, samples=samples), str(path),
                   format="eval" if ".eval" in path.suffixes else "json")  # of the file whose place this one takes


Writer = Callable[[Iterator[Answer], Path], None]
WRITERS: Mapping[PredictionFormat, Writer] = MappingProxyType({
    "jsonl": _in_lines(lambda one: one), "trec_rag": _in_lines(_trec_rag), "ragas": _in_lines(_ragas),
    "ragchecker": _write_ragchecker, "inspect": _write_inspect})
SEVERAL: tuple[PredictionFormat, ...] = ("jsonl", "trec_rag")  # that name the run in every row
