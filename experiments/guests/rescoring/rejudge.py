"""Judge the answers of a run again, with other judges or several times. The records are not changed."""
from __future__ import annotations

import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from ragbed.agents.journal import ExchangeResult, Journal, Model
from ragbed.agents.limits import run_bounded
from ragbed.agents.models import open_model, resolve_model
from ragbed.agents.types import Cost
from ragbed.documents.errors import RunError, SettingsError
from ragbed.experiments.guests.answer_support.support_checks import Claims, ModelSupport, SupportCheck, ask_support
from ragbed.experiments.judges import (
    GradingInput,
    Lexical,
    ModelJudge,
    ask_judge,
    grading_input,
    model_of,
)
from ragbed.experiments.judges.judge import JudgeKind
from ragbed.experiments.question import Rubric
from ragbed.experiments.record import Support, Verdict
from ragbed.experiments.runs.store import RunFolder
from ragbed.experiments.settings import RunSettings
from ragbed.retrieval.types import Progress

Due = TypeVar("Due")
End = TypeVar("End")


JudgedAnswer = tuple[str, str]  # key: cell and question


@dataclass(frozen=True, slots=True)
class Rater:
    """A judge or a person, with a verdict on each answer; a verdict may be unjudged."""

    name: str
    verdicts: Mapping[JudgedAnswer, Verdict]


@dataclass(frozen=True, slots=True)
class Material:
    """The answers of a run that a judge grades.

    Attributes:
        graded: the judge's input for each answer, in the run's order.
        recorded: the verdicts of the run's own judge.
    """

    rubric: Rubric
    graded: Mapping[JudgedAnswer, GradingInput]
    recorded: Mapping[JudgedAnswer, Verdict]

    @property
    def steps(self) -> dict[JudgedAnswer, int]:
        """The number of reference steps for each answer."""
        return {item: len(graded.steps) for item, graded in self.graded.items()}


def read_material(folder: RunFolder, settings: RunSettings) -> Material:
    """Return the answers of a run that a judge grades. Raises RunError if there are none, or the run's scores need no
    judge.
    """
    questions = folder.questions()
    scheme = settings.scheme_of(questions.values())
    if scheme.rubric is None:
        raise RunError(f"{folder.path}: the scores of {settings.benchmark.kind} need no judge, so there is nothing "
                       "to judge again")
    graded: dict[JudgedAnswer, GradingInput] = {}
    recorded: dict[JudgedAnswer, Verdict] = {}
    for result in folder.results(traces=scheme.rubric == "steps"):  # judges of steps also read the reasoning
        item = result.cell, result.question
        if due := grading_input(result, questions[result.question], scheme, settings.scoring):
            graded[item] = replace(due, passages=tuple(
                (one.number, folder.database.text(one.text))
                for one in result.in_view if settings.judge.is_own))
            if result.verdict is not None:
                recorded[item] = result.verdict
    if not graded:
        raise RunError(f"{folder.path}: contains no answer that a judge grades")
    return Material(scheme.rubric, graded, recorded)


def find_judges(names: Sequence[str], settings: RunSettings) -> list[JudgeKind]:
    """Return the judges with these names. The run's own judge keeps its settings. Raises SettingsError if a judge is
    given twice, or executes a file, and ModelError if one is unknown."""
    own = settings.judge
    if own.name in names and own.files:
        raise SettingsError(f"--judge {own.name}: it executes {own.files[0]}, which a run may not do by itself; use "
                            "`ragbed run` with the settings file")
    known: dict[str, str] = {}
    for name in names:
        judges_itself = name == "lexical" or (own.is_own and name == own.name)
        identity = name if judges_itself else resolve_model(name, settings.calls).recorded_as
        if identity in known:
            raise SettingsError(f"--judge {known[identity]} and {name} are the same judge; name one of "
                                "them")
        known[identity] = name
    return [own if name == own.name else Lexical() if name == "lexical" else
            ModelJudge(model=name) for name in names]


async def rejudge(folder: RunFolder, settings: RunSettings, material: Material, judges: Sequence[JudgeKind],
                  repeats: int, progress: Progress) -> tuple[list[Rater], Cost]:
    """Grade every answer with every judge. Calls in the run's journal cost nothing. The lexical judge runs once,
    because its repeats would be equal. Raises ModelError if every call would fail."""
    raters: list[Rater] = []
    spent = Cost()
    journal = Journal(folder.database)
    for judge in judges:
        async with contextlib.AsyncExitStack() as opened:
            client = None
            if (asked := model_of(judge)) is not None:
                client = await opened.enter_async_context(open_model(asked, settings.call_settings))
            for repeat in range(repeats if client else 1):
                model = Model(client, journal, settings.limits.max_tokens, repeat) if client else None
                name = f"{judge.name} #{repeat + 1}" if client and repeats > 1 else judge.name
                asks = partial(ask_judge, judge, model, deadline=lambda: time.monotonic() + settings.limits.seconds)
                judged = await grade_all(material.graded, asks, client.limits.concurrency if client else 1,
                                      partial(progress, f"judged by {name}"))
                raters.append(Rater(name, {item: one.end for item, one in judged.items() if one.end}))
                spent = sum((one.cost for one in judged.values()), spent)
    return raters, spent


async def grade_all(due: Mapping[JudgedAnswer, Due], asks: Callable[[Due], Awaitable[ExchangeResult[End]]], window: int,
                    progress: Callable[[int, int], None]) -> dict[JudgedAnswer, ExchangeResult[End]]:
    """Ask about every item, at most `window` at once, and return the results in the items' order."""
    found: dict[JudgedAnswer, ExchangeResult[End]] = {}

    async def carry_out(one: tuple[JudgedAnswer, Due]) -> None:
        found[one[0]] = await asks(one[1])
        progress(len(found), len(due))

    await run_bounded(due.items(), window, carry_out)
    return {item: found[item] for item in due}


async def check_support(folder: RunFolder, settings: RunSettings, check: SupportCheck,
                        due: Mapping[JudgedAnswer, Claims], progress: Progress) -> dict[JudgedAnswer, Support]:
    """Label the support of every answer. A model's calls use the run's journal. Raises ModelError if every call would
    fail."""
    async with contextlib.AsyncExitStack() as opened:
        client = await opened.enter_async_context(
            open_model(check.model, settings.call_settings)) if isinstance(check, ModelSupport) else None
        model = Model(client, Journal(folder.database), settings.limits.max_tokens) if client else None
        asks = partial(ask_support, check, model, deadline=lambda: time.monotonic() + settings.limits.seconds)
        checked = await grade_all(due, asks, client.limits.concurrency if client else 1,
                               partial(progress, f"support checked by {check.name}"))
    return {item: one.end for item, one in checked.items() if one.end}
