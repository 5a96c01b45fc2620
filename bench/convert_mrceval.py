"""Convert multiple-choice questions to records in MRCEval's format, for six of its thirteen sub-tasks."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from conversion import Converter, Draw, Source, Sources, json_lines

from ragbed.documents import BenchmarkError
from ragbed.documents.rows import Row, read_json, read_rows
from ragbed.experiments.benchmarks.base import files_below
from ragbed.experiments.benchmarks.fields import letter_options
from ragbed.experiments.guests.datasets.morehopqa import MoreHopQa
from ragbed.strategies.normalizing import normalize_answer

_OPTIONS = 4  # at most


@dataclass(frozen=True, slots=True)
class Choice:
    """One question; `wrong` has no option twice, nor the right one."""

    id: str
    subtask: str
    context: str
    question: str
    right: str
    wrong: tuple[str, ...]

    def record(self, draw: Draw) -> dict[str, Any]:
        """The record, its options in an order that is drawn."""
        options = letter_options(draw.ranked((self.right, *self.wrong), str, "options", self.id))
        return {"id": self.id, "context": self.context, "question": self.question,
                "choices": [text for _, text in options],
                "answer": next(label for label, text in options if text == self.right), "subtask": self.subtask}


def choice(id: str, subtask: str, context: str, question: str, right: str, wrong: Iterable[str]) -> Choice:
    """The question with as many of the wrong options, in order, as there is room for; equal ones are left out."""
    kept: dict[str, str] = {normalize_answer(right): right}
    for text in wrong:
        if len(kept) < _OPTIONS:
            kept.setdefault(normalize_answer(text), text)
    return Choice(id, subtask, context, question, right, tuple(kept.values())[1:])


_NONE = "None of the above"
_UNSAID = "The passage does not answer this question."


def _pubmedqa(path: Path) -> Iterator[Choice]:
    """Abstracts; the options are those of the paper."""
    whole = _object(path)
    for id in sorted(whole.fields):
        row = whole.part(id, whole.fields[id])
        decision = row.text("final_decision")
        if decision not in ("yes", "no", "maybe"):
            row.fail("final_decision", "yes, no or maybe", decision)
        wrong = [word for word in ("yes", "no", "maybe", _NONE) if word != decision]
        context = "\n".join(row.texts("CONTEXTS"))
        yield choice(f"pubmedqa-{id}", "domain", context, row.text("QUESTION"), decision, wrong)


def _logicbench(path: Path) -> Iterator[Choice]:
    """The multiple-choice items of a folder."""
    files = [file for file in files_below(path, (".json",)) if "MCQA" in file.parts]
    if not files:
        raise BenchmarkError(f"{path}: no MCQA folder with .json files in it")
    for file in files:
        whole = _object(file)
        for number, row in enumerate(whole.parts("samples"), 1):
            choices, answer = row.part("choices", row.fields.get("choices")), row.text("answer")
            options = {name: choices.text(name) for name in choices.fields}
            if answer not in options:
                row.fail("answer", "the name of one of the choices", answer)
            yield choice(f"{whole.text('type')}-{whole.text('axiom')}-{number}", "logical", row.text("context"),
                         row.text("question"), options[answer],
                         [text for name, text in options.items() if name != answer])


def _object(file: Path) -> Row:
    """A whole file that is one JSON object."""
    content = read_json(file)
    if not isinstance(content, dict):
        raise BenchmarkError(f"{file}: expected one JSON object")
    return Row(file, 1, content)


def _morehopqa(path: Path) -> Iterator[Choice]:
    """Wrong options are the answers of the earlier hops, as in the paper."""
    benchmark = MoreHopQa(path=str(path)).load()
    for question in benchmark.questions:
        context = "\n\n".join(chunk.content for chunk in question.provided)
        yield choice(question.id, "multi-hop", context, question.text, question.answers[0],
                     [*reversed(question.sub_answers[:-1][-2:]), _NONE])


def _rgb(path: Path, draw: Draw, truly: bool = False) -> Iterator[Choice]:
    """Passages that say something false: the answer is what they say, and the true answer a wrong option; or `truly`
    the same questions and options over passages that say the truth."""
    every = list(read_rows(path))
    rows = [row for row in every if row.fields.get("fakeanswer") and row.fields.get("positive_wrong")]
    draw.left_out["questions of RGB without a wrong answer and passages that say it"] += len(every) - len(rows)
    answers = {row.id("id"): (row.text("fakeanswer"), _first(row)) for row in rows}
    for row in rows:
        id = row.id("id")
        said, true = answers[id]
        others = draw.ranked((text for texts in answers.values() for text in texts), str, "rgb", id)
        alike = [text for text in others if _digits(text) == _digits(said)]  # dates beside dates, names beside names
        false = choice(f"rgb-{id}", "counterfactual", "\n".join(row.texts("positive_wrong")), row.text("query"), said,
                       [true, *alike])
        yield false if not truly else replace(
            false, subtask="entity", context="\n".join(row.texts("positive")), right=true,
            wrong=(said, *(text for text in false.wrong if text != true)))


def _first(row: Row) -> str:
    """The first form of an answer that may be a text, a list, or a list of lists."""
    answer = row.fields.get("answer")
    while isinstance(answer, list) and answer:
        answer = answer[0]
    return answer if isinstance(answer, str) else row.fail("answer", "a text, or a list of texts", answer)


def _digits(text: str) -> bool:
    return any(map(str.isdigit, text))


def _cosmosqa(path: Path) -> Iterator[Choice]:
    """Everyday stories; the options are the dataset's."""
    for row in read_rows(path):
        options = [row.text(f"answer{place}") for place in range(4)]
        label = str(row.fields.get("label"))
        if label not in ("0", "1", "2", "3"):
            row.fail("label", "0 to 3", label)
        answer = options.pop(int(label))
        yield choice(row.id("id"), "commonsense", row.text("context"), row.text("question"), answer, options)


def _clapnq(path: Path, draw: Draw) -> Iterator[Choice]:
    """Questions that their passage does not answer; sentences of the passage are the wrong options."""
    for row in read_rows(path):
        if any(part.text("answer").strip() for part in row.parts("output")):
            draw.left_out["questions of ClapNQ that have an answer"] += 1
            continue
        passages = row.parts("passages")
        sentences = [text.strip() for one in passages for text in one.texts("sentences") if text.strip()]
        yield choice(f"clapnq-{row.id('id')}", "unanswerable", "\n".join(one.text("text") for one in passages),
                     row.text("input"), _UNSAID, draw.ranked(sentences, str, "clapnq", row.id("id")))


_MAKERS: Mapping[str, Callable[[Path], Iterator[Choice]]] = {
    "pubmedqa": _pubmedqa, "logicbench": _logicbench, "morehopqa": _morehopqa, "cosmosqa": _cosmosqa}
_DRAWING: Mapping[str, Callable[[Path, Draw], Iterator[Choice]]] = {
    "rgb": _rgb, "rgb_true": partial(_rgb, truly=True), "clapnq": _clapnq}


def _files(sources: Sources, draw: Draw) -> Mapping[str, str]:
    records: list[dict[str, Any]] = []
    for name, paths in sources.items():
        for path in paths:
            made = list(_MAKERS[name](path) if name in _MAKERS else _DRAWING[name](path, draw))
            records += [one.record(draw) for one in draw.limited(made, lambda one: one.id)]
    return {"mrceval.jsonl": json_lines(records)}


CONVERTER = Converter({
    "pubmedqa": Source(
        "PubMedQA, 1,000 labelled questions (Jin et al. 2019), https://github.com/pubmedqa/pubmedqa", "MIT",
        "ori_pqal.json", "domain: yes, no, maybe and None of the above, as in the paper"),
    "logicbench": Source(
        "LogicBench(Eval), multiple choice (Parmar et al. 2024), https://github.com/Mihir3009/LogicBench", "MIT",
        "its folder", "logical: its own four options"),
    "morehopqa": Source(
        "MoreHopQA (Schnitzler et al. 2024), https://github.com/Alab-NII/morehopqa", "CC BY 4.0",
        "morehopqa_final.json or its sample of 150",
        "multi-hop: the answers of the two earlier hops and None of the above are the wrong options, as in the paper"),
    "rgb": Source(
        "RGB, counterfactual passages (Chen et al. 2024), https://github.com/chen700564/RGB", "CC BY-NC-SA 4.0",
        "en_fact.json",
        "counterfactual: the answer that the changed passages give is right; the true one and answers to two other "
        "questions are wrong. The paper uses FaithEval"),
    "rgb_true": Source(
        "RGB, counterfactual test (Chen et al. 2024), https://github.com/chen700564/RGB", "CC BY-NC-SA 4.0",
        "en_fact.json",
        "entity: the questions and options of `rgb` over the passages before they were changed. Give it a folder of "
        "its own: the ids are the same"),
    "cosmosqa": Source(
        "COSMOSQA (Huang et al. 2019), https://wilburone.github.io/cosmos", "CC BY 4.0", "valid.jsonl",
        "commonsense: its own four options"),
    "clapnq": Source(
        "ClapNQ, unanswerable questions (Rosenthal et al. 2024), https://github.com/primeqa/clapnq", "Apache-2.0",
        "clapnq_dev_unanswerable.jsonl",
        "unanswerable: three sentences of the passage are the wrong options, which is easier to see through than "
        "options that a model made up. The paper uses FaithEval"),
}, _files)
