"""Check whether cited passages support each sentence of an answer, and whether the answer supports each nugget, a fact
that a good answer contains.

`lexical` compares words, numbers and dates (`word_overlap.py`). `nli` uses a cross-encoder trained for
entailment, as ALCE does (Gao et al., "Enabling Large Language Models to Generate Text with Citations", EMNLP 2023).
`model` asks a language model, and repeats the call once if the reply cannot be parsed. If that fails too, the sentence
has no level, which is different from the level `none`.
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
from ragbed.experiments.guests.answer_support.statements import Statement, read_grades, read_statements
from ragbed.experiments.guests.answer_support.word_overlap import score
from ragbed.experiments.judges.judge import fill
from ragbed.experiments.question import Question, Scheme
from ragbed.experiments.record import Result, Support, SupportLabel, SupportLevel
from ragbed.strategies.reading import read_answer, read_citations, strip_citations
from ragbed.strategies.retrieval.once import none
from ragbed.strategies.types import Draft, Failure, Generate, Message, Passage, Task

LevelResult = tuple[SupportLevel | None, str]  # the level, or None and the reason
MAX_NUGGETS = 20


@dataclass(frozen=True, slots=True)
class Claims:
    """The input of a support check for one answer.

    Attributes:
        passages: text of each passage by its evidence number.
        answer: text that may contain nuggets; empty for a refusal or a failure.
        nuggets: maps the text of each nugget to whether it is vital.
        gold: texts from which nuggets are made if the question has none.
    """

    question: str
    sentences: tuple[Statement, ...] = ()
    passages: Mapping[int, str] = field(default_factory=dict)
    answer: str = ""
    nuggets: Mapping[str, bool] = field(default_factory=dict)
    gold: tuple[str, ...] = ()


def extract_claims(result: Result, question: Question, cell: Cell, passages: Mapping[int, str], check: SupportCheck,
              gold: Sequence[str] = ()) -> Claims | None:
    """Return the input of a support check for a record, or None if there is nothing to check.

    If no sentence has a citation, as in a JSON reply, every sentence gets all citations of the answer. Nuggets come
    from the question or the record; if neither has any, a check may make them from the gold.
    """
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
    """Finds out how well passages support sentences, and how well an answer supports nuggets."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @property
    def name(self) -> str:
        """Return the check's name in tables: its model, or `lexical`."""
        return str(getattr(self, "model", "lexical"))

    @property
    def makes_nuggets(self) -> bool:
        """Return whether the check makes nuggets for questions without any."""
        return bool(getattr(self, "nuggets", False))

    def scheme_of(self, scheme: Scheme, questions: Iterable[Question]) -> Scheme:
        """Return the scheme with the metrics of this check."""
        nuggets = self.makes_nuggets or any(question.nuggets for question in questions)
        return replace(scheme, groups=tuple(dict.fromkeys([*scheme.groups, "sentences", *["nuggets"] * nuggets])),
                       columns=tuple(dict.fromkeys([*scheme.columns, "sentence_precision / sentence_recall",
                                                    *["nuggets_vital_strict"] * nuggets])))

    def note(self, supports: Iterable[Support | None]) -> str:
        """Return a sentence on how sentences and nuggets were checked, and how many labels could not be parsed."""
        labels = [label for one in supports if one is not None for label in one.labels]
        unread = sum(label.level is None for label in labels)
        return (f"{self.name} checked sentences and nuggets: {len(labels):,} labels, of which {unread:,} could not be "
                "parsed and count as 0.")

    async def check_answer(self, result: Result, question: Question, cell: Cell, passages: Mapping[int, str],
                           gold: Sequence[str], model: Model | None,
                           deadline: Callable[[], float]) -> ExchangeResult[Support | None]:
        """Return the labels of an answer, if there is anything to check. `passages` and `gold` are texts."""
        return await ask_support(self, model, extract_claims(result, question, cell, passages, self, gold), deadline)

    def level(self, statement: str, sources: Sequence[str], question: str,
              nugget: bool = False) -> Exchange[LevelResult]:
        """Return how well the sources together support a statement."""
        raise NotImplementedError

    def judge(self, claims: Claims) -> Exchange[Support]:
        """Label each sentence by the support of its cited passages, and each nugget by the support of the answer.
        Without sources, the level is `none`."""
        labels: list[SupportLabel] = []
        for one in claims.sentences:
            shown = [claims.passages[number] for number in one.cited if number in claims.passages]
            found: LevelResult = (None, "the cited text is unknown") if shown else (
                "none", "cites what was not shown" if one.cited else "cites nothing")
            if sources := [text for text in shown if text.strip()]:
                found = yield from self.level(one.text, sources, claims.question)
            labels.append(SupportLabel(text=one.text, cited=one.cited, level=found[0], note=found[1]))
        nuggets, note = dict(claims.nuggets), ""
        if claims.gold and isinstance(self, ModelSupport):
            nuggets, note = yield from self._make_nuggets(claims)
        nugget_labels: list[SupportLabel] = []
        for text, vital in nuggets.items():
            found = "none", "no answer"
            if claims.answer:
                found = yield from self.level(text, [claims.answer], claims.question, nugget=True)
            nugget_labels.append(SupportLabel(text=text, vital=vital, level=found[0], note=found[1]))
        return Support(judge=self.name, sentences=tuple(labels), nuggets=tuple(nugget_labels), note=note)


class _ByValue(SupportCheck):
    """A check that computes a value from 0 to 1.

    Attributes:
        full: smallest value that counts as full support.
        partial: smallest value that counts as partial support.
    """

    full: float
    partial: float

    def level(self, statement: str, sources: Sequence[str], question: str,
              nugget: bool = False) -> Exchange[LevelResult]:
        """Return the support level of the computed value. The question is not used for nuggets."""
        value = self.value(statement, sources, "" if nugget else question)
        return "full" if value >= self.full else "partial" if value >= self.partial else "none", ""
        yield

    def value(self, statement: str, sources: Sequence[str], question: str) -> float:
        """Return how well the sources support the statement, from 0 to 1."""
        raise NotImplementedError


class LexicalSupport(_ByValue):
    """Compares words, numbers and dates, without a model (`word_overlap.py`)."""

    kind: Literal["lexical"] = "lexical"
    full: float = 0.8
    partial: float = 0.5

    def value(self, statement: str, sources: Sequence[str], question: str) -> float:
        evidence = tuple(Passage(number, Chunk(str(number), "", "plain", 0, len(text), text))
                         for number, text in enumerate(sources, 1))
        return score(statement, question, evidence).value


class NliSupport(_ByValue):
    """Uses the highest entailment probability of a cross-encoder over windows of the sources.

    Attributes:
        model: a folder or a name on the hub, such as `cross-encoder/nli-deberta-v3-base`. It is not downloaded, and
            needs a class called `entailment`.
    """

    kind: Literal["nli"] = "nli"
    model: str
    full: float = 0.5
    partial: float = 0.2

    def value(self, statement: str, sources: Sequence[str], question: str) -> float:
        from ragbed.retrieval.model_files import find_model
        from ragbed.retrieval.rerankers.cross_encoder import entailment_scorer

        together = [*sources, *(["\n".join(sources)] if len(sources) > 1 else [])]
        return max(entailment_scorer(find_model(self.model, "NLI model")).scores([statement], [together])[0])


_LEVELS: dict[float | None, SupportLevel] = {1.0: "full", 0.5: "partial", 0.0: "none"}
_MADE = re.compile(r"^[\s\d.)(*_-]{0,12}(vital|okay)[*_]{0,2}\s*[:：]\s*[*_]{0,2}(\S[^\n]{0,500})",
                   re.IGNORECASE | re.MULTILINE)


class ModelSupport(SupportCheck):
    """Asks a language model in one call per sentence and nugget. (AutoNuggetizer asks about ten nuggets at once.)

    Attributes:
        model: the model, as for `--model`.
        nuggets: whether to make nuggets for questions without any, in one call over the gold passages or the gold
            answer. (AutoNuggetizer reads the passages one by one and grades importance separately.)
        max_tokens: largest number of tokens in a reply. Raise it for a model that reasons first.
    """

    kind: Literal["model"] = "model"
    model: str
    nuggets: bool = False
    max_tokens: int = Field(default=512, gt=0)

    def level(self, statement: str, sources: Sequence[str], question: str,
              nugget: bool = False) -> Exchange[LevelResult]:
        fields = {"question": question, "source": "\n\n".join(sources), "statement": " ".join(statement.split())}
        level, flaw = yield from self._ask("support", fields, lambda text: _LEVELS.get(read_grades(text, 1)[0]))
        return level, flaw

    def _make_nuggets(self, claims: Claims) -> Exchange[tuple[dict[str, bool], str]]:
        """Return nuggets made from the gold. If the reply cannot be parsed, return none, and the reason."""
        fields = {"question": claims.question, "source": "\n\n".join(claims.gold), "most": str(MAX_NUGGETS)}
        facts, flaw = yield from self._ask("nuggets", fields, lambda text: _MADE.findall(read_answer(text)[0]))
        return {fact.strip(): vital.lower() == "vital" for vital, fact in (facts or [])[:MAX_NUGGETS]}, flaw

    def _ask(self, name: str, fields: Mapping[str, str], read: Callable[[str], Any]) -> Exchange[tuple[Any, str]]:
        messages = [Message("user", (fill(name, fields),))]
        for purpose in ("support", "support_repair"):
            reply = yield Generate(tuple(messages), purpose, max_tokens=self.max_tokens, see_failure=True)
            if isinstance(reply, Failure):
                return None, f"call failed: {reply.kind}"
            if reply.finish_reason != "length" and (found := read(reply.text)):
                return found, ""
            messages += [Message("assistant", (reply.text or "(empty)",)),
                         Message("user", (fill(f"{name}_repair", {}),))]
        return None, "unreadable twice"


def parse_support(name: str) -> LexicalSupport | NliSupport | ModelSupport:
    """Return the check for `lexical`, `nli:MODEL` or a model's name."""
    if name.startswith("nli:"):
        return NliSupport(model=name.removeprefix("nli:"))
    return LexicalSupport() if name == "lexical" else ModelSupport(model=name)


SupportSettings = Annotated[
    Annotated[LexicalSupport | NliSupport | ModelSupport, Field(discriminator="kind")],
    BeforeValidator(lambda value: parse_support(value) if isinstance(value, str) else value)]
SupportSetting = Annotated[SupportSettings | None, Field(
    description="who checks whether citations support each sentence, and whether the answer contains the question's "
                "nuggets: `lexical`, `nli:MODEL`, a model, or settings of one.")]


async def ask_support(check: SupportCheck, model: Model | None, claims: Claims | None,
                      deadline: Callable[[], float]) -> ExchangeResult[Support | None]:
    """Run the check and return its labels, if there is anything to check. A cross-encoder runs in a separate thread."""
    if claims is None:
        return ExchangeResult(None)
    exchange: Exchange[Support | None] = check.judge(claims)
    result = complete_with_repair(model, exchange, deadline)
    return await asyncio.to_thread(asyncio.run, result) if isinstance(check, NliSupport) else await result
