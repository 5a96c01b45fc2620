"""Judging the answers of a run again, by other judges or several times; its records stay as they are."""
from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agents.journal import Journal, Model
from agents.limits import in_window
from agents.models import open_model, resolve
from agents.types import Cost
from documents.errors import RunError, SettingsError
from experiments.analysis.agreement import JudgedAnswer, Rater
from experiments.judges import Graded, Lexical, ModelJudge, ask_judge, graded_of
from experiments.question import Rubric
from experiments.record import Verdict
from experiments.runs.store import RunFolder
from experiments.settings import RunSettings
from retrieval.types import Progress


@dataclass(frozen=True, slots=True)
class Material:
    """The answers of a run that a judge is asked of.

    Attributes:
        graded: what a judge is given of each, in the run's order.
        recorded: what the run's own judge said of them.
    """

    rubric: Rubric
    graded: Mapping[JudgedAnswer, Graded]
    recorded: Mapping[JudgedAnswer, Verdict]

    @property
    def steps(self) -> dict[JudgedAnswer, int]:
        """How many reference steps there are for each answer."""
        return {item: len(graded.steps) for item, graded in self.graded.items()}


def material_of(folder: RunFolder, settings: RunSettings) -> Material:
    """Return what of the run's answers a judge is asked of.

    Raises:
        RunError: its benchmark asks no judge, or there is no such answer.
    """
    questions = folder.questions()
    scheme = settings.scheme_of(questions.values())
    if scheme.rubric is None:
        raise RunError(f"{folder.path}: the scores of {settings.benchmark.kind} rest on no judge, so there is nothing "
                       "to judge again")
    graded: dict[JudgedAnswer, Graded] = {}
    recorded: dict[JudgedAnswer, Verdict] = {}
    for result in folder.results(traces=scheme.rubric == "steps"):  # whose judge reads the reasoning
        item = result.cell, result.question
        due = graded_of(result, questions[result.question], scheme, settings.scoring)
        if due is not None:
            graded[item] = due
        if due is not None and result.verdict is not None:
            recorded[item] = result.verdict
    if not graded:
        raise RunError(f"{folder.path}: holds no answer that a judge is asked of")
    return Material(scheme.rubric, graded, recorded)


def judges_named(names: Sequence[str], settings: RunSettings) -> list[Lexical | ModelJudge]:
    """Return the judges of these names; the run's own is as its settings have it.

    Raises:
        SettingsError: two are one.
        ModelError: one is unknown.
    """
    known: dict[str, str] = {}
    for name in names:
        identity = name if name == "lexical" else resolve(name).identity
        if identity in known:
            raise SettingsError(f"--judge {known[identity]} and {name} are one judge, so their agreement says nothing; "
                                "name one of them")
        known[identity] = name
    return [settings.judge if name == settings.judge.name else Lexical() if name == "lexical" else
            ModelJudge(model=name) for name in names]


async def rejudge(folder: RunFolder, settings: RunSettings, material: Material, judges: Sequence[Lexical | ModelJudge],
                  repeats: int, progress: Progress) -> tuple[list[Rater], Cost]:
    """Return every judge's verdicts on every answer, through the run's journal: what was asked before costs nothing.

    A repeat is part of a call's key. Repeats of the lexical judge would be equal by construction: it has one.

    Raises:
        ModelError: every call would fail.
    """
    raters: list[Rater] = []
    spent = Cost()
    journal = Journal(folder.database)
    for judge in judges:
        async with contextlib.AsyncExitStack() as opened:
            client = None
            if isinstance(judge, ModelJudge):
                client = await opened.enter_async_context(open_model(judge.model, settings.asking))
            for repeat in range(repeats if client else 1):
                model = Model(client, journal, settings.limits.max_tokens, repeat) if client else None
                name = f"{judge.name} #{repeat + 1}" if client and repeats > 1 else judge.name
                window = client.limits.concurrency if client else 1
                work = _Work(judge, model, settings.limits.seconds, name, len(material.graded), progress)
                await in_window(material.graded.items(), window, work.carry_out)
                raters.append(Rater(name, {item: work.verdicts[item] for item in material.graded}))
                spent += work.spent
    return raters, spent


@dataclass(slots=True)
class _Work:
    judge: Lexical | ModelJudge
    model: Model | None
    seconds: float
    name: str
    total: int
    progress: Progress
    spent: Cost = field(default_factory=Cost)
    verdicts: dict[JudgedAnswer, Verdict] = field(default_factory=dict)

    async def carry_out(self, due: tuple[JudgedAnswer, Graded]) -> None:
        item, graded = due
        judged = await ask_judge(self.judge, self.model, graded, lambda: time.monotonic() + self.seconds)
        assert judged.verdict is not None
        self.verdicts[item] = judged.verdict
        self.spent += judged.cost
        self.progress(f"judged by {self.name}", len(self.verdicts), self.total)
