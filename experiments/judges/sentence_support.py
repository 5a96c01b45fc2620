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

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from agents.journal import Model, Talk, Talked, talk_with
from documents.errors import SettingsError
from documents.types import Chunk
from experiments.cells import Cell
from experiments.judges.base import fill
from experiments.question import Question, Scheme
from experiments.record import Result, Support, SupportLabel, SupportLevel
from strategies.reading import read_answer, read_citations, strip_citations
from strategies.retrieval.none import none
from strategies.support.check import Statement, read_grades, statements_of
from strategies.support.lexical import score
from strategies.types import Draft, Failure, Generate, Message, Passage, Task

Told = tuple[SupportLevel | None, str]  # the level, or why there is none
MOST_NUGGETS = 20
_TOGETHER = 10  # nuggets that one call asks of, as AutoNuggetizer does


@dataclass(frozen=True, slots=True)
class Claims:
    """What a check reads of one answer.

    Attributes:
        sentences: of the answer, with the numbers that they cite.
        passages: texts of the passages by their numbers.
        answer: what nuggets are looked for in; empty of a refusal or a failure.
        nuggets: by text, whether each is vital.
        gold: texts that nuggets are made from where the question brings none.
    """

    question: str
    sentences: tuple[Statement, ...] = ()
    passages: Mapping[int, str] = field(default_factory=dict)
    answer: str = ""
    nuggets: Mapping[str, bool] = field(default_factory=dict)
    gold: tuple[str, ...] = ()


def claims_of(result: Result, question: Question, cell: Cell, passages: Mapping[int, str], check: SupportCheck,
              gold: Sequence[str] = ()) -> Claims | None:
    """Return what a check is asked of a record; None where there is nothing. Where no sentence names a number, as in a
    reply by fields, each rests on all that the answer cites; else a sentence without a number cites nothing. Nuggets
    are due of every answerable question: its own, or those that the record has, or else what is made of its gold."""
    answered, sentences = result.outcome == "answered", tuple[Statement, ...]()
    if answered and cell.separators and cell.rules in ("grounded", "open"):
        cited = () if read_citations(result.text) else result.cited
        task = Task(question.id, question.text, none, options=question.options, rules=cell.rules)
        sentences = statements_of(Draft(result.text, cited, False, True, result.tagged), task)
    kept = {label.text: bool(label.vital) for label in result.support.nuggets} if result.support else {}
    nuggets = (question.nuggets or kept) if result.answerable else {}
    gold = tuple(gold or question.answers) if check.makes_nuggets and result.answerable and not nuggets else ()
    if not (sentences or nuggets or gold):
        return None
    return Claims(question.in_context, sentences, passages, strip_citations(result.text) if answered else "", nuggets,
                  gold)


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

    def levels(self, claims: Claims, statements: Sequence[str], sources: Sequence[str], of: str) -> Talk[list[Told]]:
        """Tell how far the sources taken together hold each statement, which is `of` sentences or nuggets."""
        raise NotImplementedError

    def judge(self, claims: Claims) -> Talk[Support]:
        """Label each sentence by what it cites, and each nugget by the answer; what has nothing to stand in is `none`
        unasked."""
        labels: list[SupportLabel] = []
        for one in claims.sentences:
            shown = [claims.passages[number] for number in one.cited if number in claims.passages]
            told: list[Told] = [(None, "the text that it cites is not known") if shown else
                                ("none", "cites what was not shown" if one.cited else "cites nothing")]
            if sources := [text for text in shown if text.strip()]:
                told = yield from self.levels(claims, [one.text], sources, "sentences")
            labels.append(SupportLabel(text=one.text, cited=one.cited, level=told[0][0], note=told[0][1]))
        nuggets, note = dict(claims.nuggets), ""
        if claims.gold and isinstance(self, ModelSupport):
            nuggets, note = yield from self.made(claims)
        found: list[Told] = [] if claims.answer else [("none", "no answer")] * len(nuggets)
        for at in range(len(found), len(nuggets), _TOGETHER):
            found += yield from self.levels(claims, [*nuggets][at:at + _TOGETHER], [claims.answer], "nuggets")
        return Support(judge=self.name, sentences=tuple(labels), note=note, nuggets=tuple(
            SupportLabel(text=text, vital=vital, level=level, note=why)
            for (text, vital), (level, why) in zip(nuggets.items(), found, strict=True)))


class _ByValue(SupportCheck):
    """Labels by a value from 0 to 1: `full` and `partial` are the least that these levels take."""

    full: float
    partial: float

    def levels(self, claims: Claims, statements: Sequence[str], sources: Sequence[str], of: str) -> Talk[list[Told]]:
        values = self.values(statements, sources, claims.question if of == "sentences" else "")
        return [("full" if value >= self.full else "partial" if value >= self.partial else "none", "")
                for value in values]
        yield

    def values(self, statements: Sequence[str], sources: Sequence[str], question: str) -> list[float]:
        """Compute how far the sources hold each statement; the question is empty of nuggets."""
        raise NotImplementedError


class LexicalSupport(_ByValue):
    """By words, numbers and dates, without a model; the value is the score of `strategies/support/lexical.py`."""

    kind: Literal["lexical"] = "lexical"
    full: float = 0.8
    partial: float = 0.5

    def values(self, statements: Sequence[str], sources: Sequence[str], question: str) -> list[float]:
        evidence = tuple(Passage(number, Chunk(str(number), "", "plain", 0, len(text), text))
                         for number, text in enumerate(sources, 1))
        return [score(text, question, evidence).value for text in statements]


class NliSupport(_ByValue):
    """By a cross-encoder that tells entailment; the value is its probability, the highest over windows of the sources.

    Attributes:
        model: a folder or the hub's name, such as `cross-encoder/nli-deberta-v3-base`, found as embedders are; never
            fetched. One of its classes is called `entailment`.
    """

    kind: Literal["nli"] = "nli"
    model: str = Field(min_length=1)
    full: float = 0.5
    partial: float = 0.2

    def values(self, statements: Sequence[str], sources: Sequence[str], question: str) -> list[float]:
        from retrieval.models.finding import find_model
        from retrieval.rerankers.cross_encoder import entailment_scorer

        together = [*sources, *(["\n".join(sources)] if len(sources) > 1 else [])]
        scorer = entailment_scorer(find_model(self.model, "NLI model"))
        return [max(found) for found in scorer.scores(statements, [together] * len(statements))]


_LEVELS: dict[float | None, SupportLevel] = {1.0: "full", 0.5: "partial", 0.0: "none"}
_MADE = re.compile(r"^[\s\d.)(*_-]{0,12}(vital|okay)[*_]{0,2}\s*[:：]\s*[*_]{0,2}(\S[^\n]{0,500})",
                   re.IGNORECASE | re.MULTILINE)


class ModelSupport(SupportCheck):
    """By a language model, each sentence in a call of its own.

    Attributes:
        model: as `--model` takes it; the name that stands beside its labels.
        nuggets: whether it makes nuggets where a question brings none, in one call over its gold passages, or its gold
            answer; AutoNuggetizer goes through the passages and grades the importance apart.
        max_tokens: limit on one reply; raise it for a model that reasons first.
    """

    kind: Literal["model"] = "model"
    model: str = Field(min_length=1)
    nuggets: bool = False
    max_tokens: int = Field(default=512, gt=0)

    def levels(self, claims: Claims, statements: Sequence[str], sources: Sequence[str], of: str) -> Talk[list[Told]]:
        listed = [" ".join(text.split()) for text in statements]
        numbered = "\n".join(f"{place}. {text}" for place, text in enumerate(listed, 1))
        fields = {"sentence": listed[0]} if of == "sentences" else {"nuggets": numbered, "count": str(len(listed))}
        said, flaw = yield from self._asked(of, {"question": claims.question, "source": "\n\n".join(sources), **fields},
                                            lambda text: list(map(_LEVELS.get, read_grades(text, len(listed)))))
        return [(level, "" if level else flaw) for level in said or [None] * len(listed)]

    def made(self, claims: Claims) -> Talk[tuple[dict[str, bool], str]]:
        """Make nuggets from the gold, vital or not; none, and why, where the reply cannot be read."""
        fields = {"question": claims.question, "source": "\n\n".join(claims.gold), "most": str(MOST_NUGGETS)}
        said, flaw = yield from self._asked("nuggets_made", fields, lambda text: [
            (fact.strip(), vital.lower() == "vital") for vital, fact in _MADE.findall(read_answer(text)[0])] or [None])
        return dict(list(filter(None, said))[:MOST_NUGGETS]), flaw

    def _asked(self, name: str, fields: Mapping[str, str],
               read: Callable[[str], list[Any]]) -> Talk[tuple[list[Any], str]]:
        """What was read of the last reply, and why it is not whole."""
        asked = [Message("user", (fill(name, fields),))]
        said: list[Any] = []
        for purpose in ("support", "support_repair"):
            reply = yield Generate(tuple(asked), purpose, max_tokens=self.max_tokens, see_failure=True)
            if isinstance(reply, Failure):
                return said, f"call failed: {reply.kind}"
            said = read("" if reply.finish_reason == "length" else reply.text)
            if None not in said:
                return said, ""
            asked += [Message("assistant", (reply.text or "(empty)",)), Message("user", (fill(f"{name}_repair", {}),))]
        return said, "unreadable twice"


def _by_name(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value.startswith("nli:"):
        return {"kind": "nli", "model": value.removeprefix("nli:")}
    return {"kind": "lexical"} if value == "lexical" else {"kind": "model", "model": value}


SupportSettings = Annotated[Annotated[LexicalSupport | NliSupport | ModelSupport, Field(discriminator="kind")],
                            BeforeValidator(_by_name)]


def check_named(name: str) -> SupportCheck:
    """Return the check of that name, as settings take it; SettingsError where it has none."""
    try:
        check: SupportCheck = TypeAdapter(SupportSettings).validate_python(name)
    except ValidationError as error:
        raise SettingsError(f"--support {name}: expected lexical, nli:MODEL or a model") from error
    return check


async def ask_support(check: SupportCheck, model: Model | None, claims: Claims | None,
                      deadline: Callable[[], float]) -> Talked[Support | None]:
    """Get the check's labels where any are due. A cross-encoder, which asks no model, works in a thread of its own."""
    if claims is None:
        return Talked(None)
    talk: Talk[Support | None] = check.judge(claims)
    talking = talk_with(model, talk, deadline)
    return await asyncio.to_thread(asyncio.run, talking) if isinstance(check, NliSupport) else await talking
