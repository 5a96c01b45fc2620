"""Carry out a gate: read BASE, ask what HEAD needs, and note what the verdict leaves out."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ragbed.documents.errors import SettingsError
from ragbed.experiments.analysis.replicates import ReplicateGroup, group_replicates, label_groups
from ragbed.experiments.formatting import join_names, plural
from ragbed.experiments.guests.pull_requests.gate_schedule import GateSchedule, match_cells, shared_questions
from ragbed.experiments.guests.pull_requests.policy import GatePolicy
from ragbed.experiments.guests.pull_requests.sides import Side, ask_head, open_base, read_head
from ragbed.experiments.guests.pull_requests.verdict import (
    CellVerdict,
    GateResult,
    check_comparable,
    code,
    compare_sides,
)
from ragbed.experiments.question import Question
from ragbed.experiments.record import Record
from ragbed.experiments.running.plan import Plan
from ragbed.experiments.running.runner import RunCallbacks, RunStarted
from ragbed.experiments.runs.finished import cell_not_found
from ragbed.experiments.runs.finished import match_cells as find_named
from ragbed.experiments.runs.run_manifest import changed_inputs
from ragbed.experiments.settings import RunSettings
from ragbed.experiments.statistics import Clusters, cluster_questions


@dataclass(frozen=True)
class _Subject:
    """What a gate compares: cells by label, questions of both sides by id, and the metric that decides."""

    matches: Sequence[tuple[str, str]]
    questions: Mapping[str, Question]
    grouped: Clusters
    metric: str

    @classmethod
    def of(cls, base: Side, groups: Mapping[str, ReplicateGroup], questions: Mapping[str, Question], headline: str,
           scoring: str, judge: str, unit: str, policy: GatePolicy) -> _Subject:
        """Find what both sides have. Raises RunError or SettingsError if they cannot be compared."""
        metric = policy.metric or headline
        check_comparable(base, scoring, judge, metric)
        shared = shared_questions(base.questions, questions)
        if not shared:
            raise SettingsError("BASE and HEAD share no question with the same text and gold; run the main branch "
                                "again with this benchmark")
        named = {label: group.shared_row for label, group in groups.items()}
        for name in policy.cells:
            if not find_named(named, name):
                raise cell_not_found(name, groups)
        wanted = {label for name in policy.cells for label in find_named(named, name)} if policy.cells else None
        matches = match_cells(base.groups, groups, wanted)
        if not matches:
            raise SettingsError(f"no cell of HEAD ({join_names(list(groups))}) has a counterpart in BASE "
                                f"({join_names(list(base.groups))}); change one factor at a time")
        return cls(matches, shared, cluster_questions(questions.values(), unit), metric)


def carry_out_gate(base_path: Path, head: RunSettings | Path, policy: GatePolicy, callbacks: RunCallbacks,
                   replay_only: bool = False) -> GateResult:
    """Compare HEAD, a run, a cassette or settings, with BASE, a run or a cassette.

    Raises:
        RunError: BASE or HEAD is not a finished run, or their scores do not mean the same.
        SettingsError: the sides share no cell or question, or the policy names an unknown metric or cell.
    """
    started: list[RunStarted] = []
    if not isinstance(head, RunSettings):
        with open_base(base_path, None) as (base, _):
            side, race = read_head(head), None
        subject = _Subject.of(base, side.groups, side.questions, side.columns[0].split(" / ")[0], side.made.scoring,
                              side.made.judge, side.made.scheme.unit, policy)
    else:
        with open_base(base_path, head) as (base, calls):
            plan = Plan.of(head)
            rows = [{"id": cell.id, **cell.levels} for cell in plan.cells]
            groups = group_replicates(rows, {})
            subject = _Subject.of(base, dict(zip(label_groups(groups), groups, strict=True)),
                                  {one.id: one for one in plan.benchmark.questions}, plan.scheme.headline,
                                  head.scoring, head.judge.name, plan.scheme.unit, policy)
            race = GateSchedule(base, subject.matches, rows, subject.questions, subject.grouped, subject.metric,
                                head.scoring, head.seed, policy.margin, policy.race and not replay_only)

            def note_record(record: Record) -> None:
                race.note_calls(record.result)
                callbacks.record(record)

            def note_start(begun: RunStarted) -> None:
                started.append(begun)
                callbacks.started(begun)

            side = ask_head(head, calls, race, replace(callbacks, record=note_record, started=note_start), replay_only)
    cells = compare_sides(base, side, subject.matches, subject.questions, subject.grouped, subject.metric, policy, race)
    return GateResult(cells, subject.metric, policy, [*_notes(base, side, subject, cells)], _spent(started), side.path,
                      {name: one.text for name, one in subject.questions.items()})


def _spent(started: Sequence[RunStarted]) -> dict[str, Any]:
    """Return the number, tokens and price of the calls that were made; the price is None if it is unknown."""
    made = [one.spending for one in started]
    return {"calls": sum(one.calls for one in made), "tokens": sum(
        one.prompt_tokens + one.completion_tokens for one in made), "price": None if any(
            one.unpriced for one in made) else round(sum(one.dollars for one in made), 8)}


def _notes(base: Side, head: Side, subject: _Subject, cells: Sequence[CellVerdict]) -> Iterator[str]:
    """Yield a sentence on everything that the verdict leaves out, on failures, and on changed inputs."""
    shared, matched = len(subject.questions), {one for pair in subject.matches for one in pair}
    for side, other, name in ((head, base, "this branch"), (base, head, "the main branch")):
        alone = len(side.questions.keys() - other.questions.keys())
        if alone:
            yield f"Not compared: {plural(alone, 'question')} that only {name} has."
        lonely = [label for label in side.groups if label not in matched]
        if lonely:
            yield (f"Not compared: {plural(len(lonely), 'cell')} that only {name} has: "
                   f"{join_names([code(label, 60) for label in lonely])}.")
    edited = len(base.questions.keys() & head.questions.keys()) - shared
    if edited:
        yield f"Not compared: {plural(edited, 'question')} whose text or gold was edited."
    for cell in cells:
        if cell.failed:
            kinds = ", ".join(f"{count} {kind}" for kind, count in cell.failed.items())
            yield (f"{code(cell.head, 60)}: {plural(sum(cell.failed.values()), 'answer')} of this branch failed and "
                   f"count as wrong ({kinds}).")
        if before := sum(base.failures[cell.base].values()):
            yield f"{code(cell.base, 60)}: {plural(before, 'answer')} of the main branch failed and count as wrong."
        if lost := len(base.missing[cell.base] & subject.questions.keys()):
            yield (f"{code(cell.base, 60)}: {plural(lost, 'question')} of the main branch could not be replayed with "
                   "this branch's code and files; give its run folder instead of the cassette.")
    yield from (f"This branch has {code(change, 200)}." for change in changed_inputs(base.made, head.made))
    for model, server in head.made.servers.items():
        if base.made.servers.get(model, server) != server:
            yield (f"{code(model, 60)} is served differently than on the main branch, but equal calls were not made "
                   "again; give it another name to ask it.")
