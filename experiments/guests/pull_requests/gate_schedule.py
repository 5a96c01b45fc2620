"""Choose what a gate asks of HEAD: only cells that BASE has too, and each only until its verdict is clear.

A race of HEAD's cells against recorded answers. Early looks use the test of `early_stopping.sequential_test`, which
stays valid however often one looks.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragbed.documents.errors import SettingsError
from ragbed.experiments.analysis.replicates import VARIED, Answers, ReplicateGroup, group_replicates, label_groups
from ragbed.experiments.guests.early_stopping.schedule import RaceSchedule
from ragbed.experiments.guests.early_stopping.sequential_test import RaceState, early_p, follow_race, plan_looks
from ragbed.experiments.metrics import METRICS, Scoring, family_of
from ragbed.experiments.metrics.scoring import is_share
from ragbed.experiments.question import Question
from ragbed.experiments.record import Result
from ragbed.experiments.statistics import Clusters

if TYPE_CHECKING:
    from ragbed.experiments.guests.pull_requests.sides import Side
    from ragbed.experiments.metrics.metric import Floats

LEVEL = 0.1  # two-sided: 5 % for a false loss and 5 % for a false gain, over all cells together
EARLY = 0.08  # the part of it that early looks may spend
Z = 1.6448536269514722  # normal quantile of one-sided tests at 5 %, and of 90 % intervals
_FEWEST = 100  # units before the first early test of means, because rare large changes come late
_BASE = "base "  # begins the ids of BASE's cells in a race


def match_cells(base: Mapping[str, ReplicateGroup], head: Mapping[str, ReplicateGroup],
                wanted: Collection[str] | None = None) -> list[tuple[str, str]]:
    """Match cells of BASE and HEAD by label: they agree in every factor. If HEAD replaced one level of a factor by one
    other, such as a strategy with a new instruction, the two count as equal. Factors without a common level are
    ignored. With `wanted`, only these cells of HEAD are matched. Raises SettingsError if a cell has several
    counterparts."""
    levels = [{name: {one.first.get(name) for one in side.values()} - {None} for name in VARIED}
              for side in (base, head)]
    names = [name for name in VARIED if not levels[0][name].isdisjoint(levels[1][name])]
    changed = [(name, levels[0][name] - levels[1][name], levels[1][name] - levels[0][name]) for name in names]
    before = {(name, *new): next(iter(gone)) for name, gone, new in changed if len(gone) == len(new) == 1}

    def key(group: ReplicateGroup) -> tuple[str, ...]:
        levels = [(name, group.first.get(name)) for name in names]
        return tuple(str(before.get(one, one[1])) for one in levels)

    matches = []
    for label, group in head.items():
        found = [other for other, one in base.items() if key(one) == key(group)]
        if wanted is not None and label not in wanted:
            continue
        if len(found) > 1:
            raise SettingsError(f"{label!r} of HEAD has several counterparts in BASE: {', '.join(map(repr, found))}; "
                                "change one factor at a time, or name the cells alike")
        matches += [(one, label) for one in found]
    return matches


def shared_questions(base: Mapping[str, Question], head: Mapping[str, Question]) -> dict[str, Question]:
    """Return the questions of HEAD that BASE has with the same text, answers, options and gold."""
    def content(one: Question) -> tuple[object, ...]:
        return one.text, one.answers, one.options, one.answerable, one.gold

    return {name: one for name, one in head.items() if name in base and content(base[name]) == content(one)}


class GateSchedule(RaceSchedule):
    """The race of HEAD's cells against BASE: see `running.hooks.Schedule`.

    A cell whose first calls are all recorded in BASE is taken as unchanged, so all its questions are asked. This costs
    nothing if it really is unchanged.

    Args:
        matches: labels of the cells to compare, of BASE and of HEAD.
        rows: cells of HEAD, as in a summary.
        questions: the questions to ask, by id.
        margin: a pair stays open as long as the whole run would probably show that it differs by less.
        race: whether to stop early.
    """

    def __init__(self, base: Side, matches: Sequence[tuple[str, str]], rows: Sequence[Mapping[str, Any]],
                 questions: Mapping[str, Question], grouped: Clusters, metric: str, scoring: Scoring, seed: int,
                 margin: float, race: bool = True) -> None:
        groups = group_replicates(rows, {})
        heads = dict(zip(label_groups(groups), groups, strict=True))
        self.matches, self.base, self.margin = list(matches), base, margin
        self.race = race and not METRICS[family_of(metric)].of_set
        places: dict[str, Mapping[str, Any]] = {}
        self.recorded: dict[str, Mapping[str, Any]] = {}
        for first, second in matches:  # a benchmark named like this keeps BASE's cells apart from HEAD's
            row = {**base.groups[first].shared_row, "id": _BASE + second, "benchmark": _BASE + second}
            places[row["id"]], self.recorded[row["id"]] = row, base.groups[first].answers
        kept = [row for label in (second for _, second in matches) for row in rows
                if all(str(row.get(name)) == str(heads[label].first.get(name)) for name in VARIED)]
        self.changed: set[str] = set()  # ids of cells with a call that BASE lacks
        # a mean change of 0 then means that gains and losses are equally likely, as the early test assumes
        single = len(kept) == len(matches) == sum(base.groups[first].size for first, _ in matches)
        self.is_share = is_share(metric) and single and len({*map(grouped.of.get, questions)}) == len(questions)
        self.whole: set[int] = set()  # places of cells of which all questions are asked
        self.state = RaceState({}, {}, set(), 0)
        super().__init__([*places.values(), *kept], questions, grouped, metric, scoring, seed)

    def choose_pairs(self, variants: Sequence[ReplicateGroup]) -> list[tuple[int, int]]:
        """Return the places of each cell of BASE and its counterpart in HEAD."""
        return [(place, place + len(self.matches)) for place in range(len(self.matches))]

    def note_calls(self, result: Result) -> None:
        """Note whether an answer needed a call that BASE lacks."""
        steps = [*result.trace, *(step for sub in result.subs for step in sub.trace)]
        if any(step.key is not None and step.key not in self.base.calls for step in steps):
            self.changed.add(result.cell)

    def follow(self, answers: Answers) -> RaceState:
        """Return the state of the race after these answers of HEAD."""
        return super().follow({**answers, **self.recorded})

    def decide(self, changes: Callable[[int, list[int]], Floats | None],
               final_p: Callable[[int], float | None]) -> RaceState:
        """Follow the race at the gate's level, without the cells that are asked as a whole."""
        raced = [place for place in range(len(self.pairs)) if place + len(self.matches) not in self.whole]
        found = follow_race([self.pairs[place] for place in raced], len(self.ends),
                            lambda look, places: changes(look, [raced[place] for place in places]),
                            lambda place: final_p(raced[place]), LEVEL, EARLY, self._shows_equality,
                            early_p if self.is_share else early_mean_p)
        self.state = RaceState({raced[place]: one for place, one in found.verdicts.items()},
                               {cell: raced[place] for cell, place in found.out.items()}, found.running, found.until)
        return self.state

    def _shows_equality(self, changes: Floats) -> bool:
        """Return whether the whole run would probably show that the difference is within the margin."""
        return probably_equal(changes, len(self.ends), self.margin * float(self.weights.sum()) / len(self.ends))

    def due(self, answers: Answers) -> set[tuple[str, str]]:
        """Return the (cell, question) pairs of HEAD to ask, given its answers."""
        first = self.order[:int(self.ends[plan_looks(len(self.ends))[0] - 1])]
        for place in range(len(self.matches), len(self.members)):
            cells = self.members[place]
            if not self.race or (not self.changed & set(cells) and all(
                    name in answers.get(cell, {}) for cell in cells for name in first)):
                self.whole.add(place)
        raced = self.follow(answers) if self.race else None
        return {(cell, name) for place, cells in enumerate(self.members) if place >= len(self.matches)
                for cell in cells for name in self.order[:None if place in self.whole or raced is None
                                                         else self._count_asked(raced, place)]}

    def comparisons(self, answers: Answers) -> dict[str, Any]:
        """Return no comparisons of HEAD's cells with each other: they were compared with BASE."""
        said = "The cells were compared with another run by `ragbed gate`, which chose the questions to ask."
        return {"metric": self.metric, "pairs": [], "said": [said], "notes": []}

    @property
    def notes(self) -> list[str]:
        """Return notes for the run's summary."""
        return [f"Asked by `ragbed gate`: n is the number of the {len(self.order):,} questions that a cell was asked."]


def early_mean_p(changes: Floats, units: int, pairs: int, early: float) -> list[float]:
    """Compute the anytime-valid p of each column of changes, the smallest so far, for scores of any kind: gains and
    losses may differ in size, so only their mean counts. It inverts the asymptotic confidence sequence of `verdict`
    from the 100th unit on; the arguments are those of `early_p`."""
    import numpy as np

    n = np.arange(1, len(changes) + 1)[:, None]
    mean = np.cumsum(changes, axis=0) / n
    variance = np.maximum(np.cumsum(changes**2, axis=0) / n - mean**2, 1e-12) / n
    prior = n * sequence_rate(units / 4, early / pairs)
    log_p = np.log(prior + 1) / 2 - mean**2 / variance / 2 * prior / (prior + 1)
    log_p[:_FEWEST - 1] = 0.0
    return [float(p) for p in np.exp(np.minimum(log_p.min(axis=0), 0.0))]


def sequence_rate(units: float, alpha: float) -> float:
    """Return the parameter of a confidence sequence that is narrowest at this number of units."""
    log = -2 * math.log(alpha)
    return (log + math.log(log + 1)) / units


def probably_equal(changes: Floats, units: int, margin: float) -> bool:
    """Return whether two one-sided tests at 5 % over all units would more likely than not find the mean change of a
    unit within the margin, given the changes so far."""
    spread = max(float(changes.var()), 0.25 / len(changes))  # equal answers so far are not certain to stay equal
    return margin - abs(float(changes.mean())) > Z * math.sqrt(spread / units)
