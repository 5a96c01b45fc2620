"""Checks of support: how far each sentence of an answer stands in what it cites, and each nugget in the answer.

A check is asked as a judge is. `lexical` goes by words, numbers and dates (`strategies/support/lexical.py`, which says
what it cannot see). `nli` reads both texts with a cross-encoder trained for entailment, as ALCE does (Gao et al.,
"Enabling Large Language Models to Generate Text with Citations", EMNLP 2023). `model` asks a language model, and once
more where its reply cannot be read; then the sentence has no level, which is not the level `none`.
"""
from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from ragbed.agents.journal import Exchange, ExchangeResult, Model, complete_with_repair
from ragbed.documents.types import Chunk
from ragbed.experiments.cells import Cell
from ragbed.experiments.judges.base import fill
from ragbed.experiments.question import Question, Scheme
from ragbed.experiments.record import Result, Support, SupportLabel, SupportLevel
from ragbed.strategies.reading import read_answer, read_citations, strip_citations
from ragbed.strategies.retrieval.none import none
from ragbed.strategies.support.check import Statement, read_grades, read_statements
from ragbed.strategies.support.lexical import score
from ragbed.strategies.types import Draft, Failure, Generate, Message, Passage, Task

LevelResult = tuple[SupportLevel | None, str]  # the level, or why there is none
MAX_NUGGETS = 20


@dataclass(frozen=True, slots=True)
class Claims:
    """What a check reads of one answer."""

    question: str
    sentences: tuple[Statement, ...] = ()
    passages: Mapping[int, str] = field(default_factory=dict)  # texts by the numbers that sentences cite
    answer: str = ""  # what nuggets are looked for in; empty of a refusal or a failure
    nuggets: Mapping[str, bool] = field(default_factory=dict)  # by text, whether each is vital
    gold: tuple[str, ...] = ()  # texts that nuggets are made from where the question brings none


def extract_claims(result: Result, question: Question, cell: Cell, passages: Mapping[int, str], check: SupportCheck,
              gold: Sequence[str] = ()) -> Claims | None:
    """Return what a check is asked of a record; None where there is nothing. Where no sentence names a number, as in a
    reply by fields, each rests on all that the answer cites; else a sentence without a number cites nothing. Nuggets
    are due of every answerable question: its own, or those that the record has, or else what is made of its gold."""
    answered, sentences = result.outcome == "answered", tuple[Statement, ...]()
    if answered and cell.separators and cell.rules in ("grounded", "open"):
        cited = () if read_citations(result.text) else result.cited
        task = Task(question.id, question.text, none, options=question.options, rules=cell.rules)
        sentences = read_statements(Draft(result.text, cited, False, True, result.tagged), task)
    kept = {label.text: bool(label.vital) for label in result.support.nuggets} if result.support else {}
    nuggets = (question.nuggets or kept) if result.answerable else {}
    gold = tuple(gold or question.answers) if check.makes_nuggets and result.answerable and not nuggets else ()
    said = strip_citations(result.text) if answered else ""
    due = sentences or nuggets or gold
    return Claims(question.in_context, sentences, passages, said, nuggets, gold) if due else None


class SupportCheck(BaseModel):
    """Settings of a check of support."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @property
    def name(self) -> str:
        """Return what stands beside its labels: its model, if any."""
        return str(getattr(self, "model", "lexical"))

    @property
    def makes_nuggets(self) -> bool:
        """Tell whether it makes nuggets where a question brings none."""
        return bool(getattr(self, "nuggets", False))

    def scheme_of(self, scheme: Scheme, questions: Iterable[Question]) -> Scheme:
        """Return the scheme with what this check measures of these questions."""
        nuggets = self.makes_nuggets or any(question.nuggets for question in questions)
        return replace(scheme, groups=tuple(dict.fromkeys([*scheme.groups, "sentences", *["nuggets"] * nuggets])),
                       columns=tuple(dict.fromkeys([*scheme.columns, "sentence_precision / sentence_recall",
                                                    *["nuggets_vital_strict"] * nuggets])))

    def level(self, statement: str, sources: Sequence[str], question: str,
              nugget: bool = False) -> Exchange[LevelResult]:
        """Tell how far the sources taken together bear out the statement, a sentence or a nugget."""
        raise NotImplementedError

    def judge(self, claims: Claims) -> Exchange[Support]:
        """Label each sentence by what it cites, and each nugget by the answer; what has nothing to stand in is `none`
        unasked."""
        labels: list[SupportLabel] = []
        for one in claims.sentences:
            shown = [claims.passages[number] for number in one.cited if number in claims.passages]
            told: LevelResult = (None, "the text that it cites is not known") if shown else (
                "none", "cites what was not shown" if one.cited else "cites nothing")
            if sources := [text for text in shown if text.strip()]:
                told = yield from self.level(one.text, sources, claims.question)
            labels.append(SupportLabel(text=one.text, cited=one.cited, level=told[0], note=told[1]))
        nuggets, note = dict(claims.nuggets), ""
        if claims.gold and isinstance(self, ModelSupport):
            nuggets, note = yield from self.made(claims)
        found: list[SupportLabel] = []
        for text, vital in nuggets.items():
            told = "none", "no answer"
            if claims.answer:
                told = yield from self.level(text, [claims.answer], claims.question, nugget=True)
            found.append(SupportLabel(text=text, vital=vital, level=told[0], note=told[1]))
        return Support(judge=self.name, sentences=tuple(labels), nuggets=tuple(found), note=note)


class _ByValue(SupportCheck):
    """A check that computes a value from 0 to 1.

    Attributes:
        full: least value of full support.
        partial: least value of partial support.
    """

    full: float
    partial: float

    def level(self, statement: str, sources: Sequence[str], question: str,
              nugget: bool = False) -> Exchange[LevelResult]:
        """Tell the level by a value from 0 to 1; a nugget is looked for without the question."""
        value = self.value(statement, sources, "" if nugget else question)
        return "full" if value >= self.full else "partial" if value >= self.partial else "none", ""
        yield

    def value(self, statement: str, sources: Sequence[str], question: str) -> float:
        """Compute how far the sources bear out the statement."""
        raise NotImplementedError


class LexicalSupport(_ByValue):
    """By words, numbers and dates, without a model; the value is the score of `strategies/support/lexical.py`."""

    kind: Literal["lexical"] = "lexical"
    full: float = 0.8
    partial: float = 0.5

    def value(self, statement: str, sources: Sequence[str], question: str) -> float:
        evidence = tuple(Passage(number, Chunk(str(number), "", "plain", 0, len(text), text))
                         for number, text in enumerate(sources, 1))
        return score(statement, question, evidence).value


class NliSupport(_ByValue):
    """By a cross-encoder that tells entailment; the value is its probability, the highest over windows of the sources.

    Attributes:
        model: a folder or the hub's name, such as `cross-encoder/nli-deberta-v3-base`, found as embedders are; never
            fetched. One of its classes is called `entailment`.
    """

    kind: Literal["nli"] = "nli"
    model: str
    full: float = 0.5
    partial: float = 0.2

    def value(self, statement: str, sources: Sequence[str], question: str) -> float:
        from ragbed.retrieval.models import find_model
        from ragbed.retrieval.rerankers.cross_encoder import entailment_scorer

        together = [*sources, *(["\n".join(sources)] if len(sources) > 1 else [])]
        return max(entailment_scorer(find_model(self.model, "NLI model")).scores([statement], [together])[0])


_LEVELS: dict[float | None, SupportLevel] = {1.0: "full", 0.5: "partial", 0.0: "none"}
_MADE = re.compile(r"^[\s\d.)(*_-]{0,12}(vital|okay)[*_]{0,2}\s*[:：]\s*[*_]{0,2}(\S[^\n]{0,500})",
                   re.IGNORECASE | re.MULTILINE)


class ModelSupport(SupportCheck):
    """By a language model, each sentence and each nugget in a call of its own; AutoNuggetizer asks of ten at once.

    Attributes:
        model: as `--model` takes it; the name that stands beside its labels.
        nuggets: whether it makes nuggets where a question brings none, in one call over its gold passages, or its gold
            answer; AutoNuggetizer goes through the passages and grades the importance apart.
        max_tokens: limit on one reply; raise it for a model that reasons first.
    """

    kind: Literal["model"] = "model"
    model: str
    nuggets: bool = False
    max_tokens: int = Field(default=512, gt=0)

    def level(self, statement: str, sources: Sequence[str], question: str,
              nugget: bool = False) -> Exchange[LevelResult]:
        fields = {"question": question, "source": "\n\n".join(sources), "statement": " ".join(statement.split())}
        said, flaw = yield from self._asked("support", fields, lambda text: _LEVELS.get(read_grades(text, 1)[0]))
        return said, flaw

    def made(self, claims: Claims) -> Exchange[tuple[dict[str, bool], str]]:
        """Make nuggets from the gold, vital or not; none, and why, where the reply cannot be read."""
        fields = {"question": claims.question, "source": "\n\n".join(claims.gold), "most": str(MAX_NUGGETS)}
        said, flaw = yield from self._asked("nuggets", fields, lambda text: _MADE.findall(read_answer(text)[0]))
        return {fact.strip(): vital.lower() == "vital" for vital, fact in (said or [])[:MAX_NUGGETS]}, flaw

    def _asked(self, name: str, fields: Mapping[str, str], read: Callable[[str], Any]) -> Exchange[tuple[Any, str]]:
        """What was read of a reply, and else why nothing was."""
        asked = [Message("user", (fill(name, fields),))]
        for purpose in ("support", "support_repair"):
            reply = yield Generate(tuple(asked), purpose, max_tokens=self.max_tokens, see_failure=True)
            if isinstance(reply, Failure):
                return None, f"call failed: {reply.kind}"
            if reply.finish_reason != "length" and (said := read(reply.text)):
                return said, ""
            asked += [Message("assistant", (reply.text or "(empty)",)), Message("user", (fill(f"{name}_repair", {}),))]
        return None, "unreadable twice"


def parse_support(name: str) -> LexicalSupport | NliSupport | ModelSupport:
    """Return the check that is called `lexical`, `nli:MODEL`, or by a model's name."""
    if name.startswith("nli:"):
        return NliSupport(model=name.removeprefix("nli:"))
    return LexicalSupport() if name == "lexical" else ModelSupport(model=name)


SupportSettings = Annotated[
    Annotated[LexicalSupport | NliSupport | ModelSupport, Field(discriminator="kind")],
    BeforeValidator(lambda value: parse_support(value) if isinstance(value, str) else value)]


async def ask_support(check: SupportCheck, model: Model | None, claims: Claims | None,
                      deadline: Callable[[], float]) -> ExchangeResult[Support | None]:
    """Get the check's labels where any are due. A cross-encoder, which asks no model, works in a thread of its own."""
    if claims is None:
        return ExchangeResult(None)
    talk: Exchange[Support | None] = check.judge(claims)
    talking = complete_with_repair(model, talk, deadline)
    return await asyncio.to_thread(asyncio.run, talking) if isinstance(check, NliSupport) else await talking
