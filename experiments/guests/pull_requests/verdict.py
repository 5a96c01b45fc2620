"""The verdict of a gate: whether HEAD is better or worse than BASE, equal, or whether its questions cannot tell.

Each direction is tested at 5 %, over all changed cells together (Holm), so at most 5 % of the pull requests that change
nothing are called worse. Two cells are equal if a 90 % interval of their difference lies within the margin, which is a
pair of one-sided tests at 5 % (Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987). If a cell was
stopped early, its interval is one of a sequence that holds at any number of questions (Waudby-Smith, Arbour, Sinha,
Kennedy and Ramdas, "Time-uniform central limit theory and asymptotic confidence sequences", Annals of Statistics 52,
2024).
"""
from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from ragbed.documents.errors import RunError, SettingsError
from ragbed.experiments.formatting import format_p, metric_title, visible
from ragbed.experiments.guests.pull_requests.gate_schedule import LEVEL, GateSchedule, Z, sequence_rate
from ragbed.experiments.guests.pull_requests.policy import FAILING, GatePolicy, State
from ragbed.experiments.metrics import METRICS, family_of
from ragbed.experiments.question import Question
from ragbed.experiments.statistics import Clusters, Pairs, bootstrap, holm, mcnemar, pair_scores, permutation

if TYPE_CHECKING:
    from ragbed.experiments.guests.pull_requests.sides import Side

STATES: tuple[State, ...] = get_args(State)
_POWER_Z, _EQUAL_Z = 0.8416212335729143, 1.2815515655446004  # normal quantiles of 0.8 and 0.9
_FAILED = ("error", "timeout", "budget", "too_long")


@dataclass(frozen=True, slots=True)
class Flip:
    """A question whose score changed, with the cause of each answer (`analysis.causes`)."""

    question: str
    before: float
    after: float
    cause_before: str
    cause_after: str


@dataclass(frozen=True, slots=True)
class CellVerdict:
    """The verdict on a cell of HEAD.

    Attributes:
        base, head: labels of the two cells.
        n, of: number of compared questions, and of those that could be compared.
        low, high: the 90 % interval of the difference. It is approximate, so it may include 0 if the test finds one.
        p: of the one-sided test, corrected for all changed cells; None if there was no test.
        needed: about this many questions would tell, with a power of 80 %; None if the verdict is clear.
        why: for `not_compared`, and for a cell that was not asked as a whole.
        flips: losses first.
        failed: kinds of failure of HEAD with their number.
    """

    base: str
    head: str
    state: State
    n: int
    of: int
    before: float | None = None
    after: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    needed: int | None = None
    why: str = ""
    flips: tuple[Flip, ...] = ()
    failed: Mapping[str, int] = field(default_factory=dict)


def overall(cells: Sequence[CellVerdict]) -> State:
    """Return the gravest verdict of the cells."""
    return min((one.state for one in cells), key=STATES.index)


def check_comparable(base: Side, head_scoring: str, head_judge: str, metric: str) -> None:
    """Raise RunError if the scores of both sides do not mean the same."""
    if base.made.scoring != head_scoring:
        raise RunError(f"BASE has {base.made.scoring} scoring and HEAD {head_scoring}, so their figures are not "
                       "comparable; run the main branch again with the new setting")
    known = METRICS.get(family_of(metric))
    if known is not None and known.judged and base.made.judge != head_judge:
        raise RunError(f"BASE was judged by {base.made.judge} and HEAD by {head_judge}, so their {metric} is not "
                       "comparable; run the main branch again with the new judge")
    if metric not in base.metrics:
        raise SettingsError(f"{metric} is not a metric of BASE; it has {', '.join(base.metrics)}")


def compare_sides(base: Side, head: Side, matches: Sequence[tuple[str, str]], questions: Mapping[str, Question],
                  grouped: Clusters, metric: str, policy: GatePolicy,
                  race: GateSchedule | None = None) -> list[CellVerdict]:
    """Return the verdict on each matched cell. `race` chose the questions of HEAD; None if HEAD was run as a whole."""
    made = []
    for place, labels in enumerate(matches):
        sides = [{name: row for name, row in side.groups[label].answers.items() if name in questions}
                 for side, label in zip((base, head), labels, strict=True)]
        ended = race.state.verdicts.get(place) if race else None
        if race and ended:
            asked = set(race.order[:int(race.ends[ended.units - 1])])
            sides = [{name: row for name, row in side.items() if name in asked} for side in sides]
        pairs = pair_scores(metric, sides[0], sides[1], grouped.of, base.made.scoring, all(
            side.groups[label].offers_refusal for side, label in zip((base, head), labels, strict=True)))
        p = ended.p if ended else None if not pairs.n else mcnemar(*pairs.flips()) \
            if pairs.share and not pairs.clustered else permutation(pairs, base.seed)
        rows = [(sides[0][name], sides[1][name]) for name in pairs.questions]
        missing = len(head.missing[labels[1]] & questions.keys())
        cell = CellVerdict(*labels, "cannot_tell", pairs.n, len(questions), flips=_flips(pairs, base, head, labels),
                           failed=dict(head.failures[labels[1]]))
        if missing:
            cell = replace(cell, why=f"{missing} of {len(questions)} questions need calls that BASE did not make")
        elif not rows:
            cell = replace(cell, state="not_compared", why=f"no question has {metric} on both sides")
        elif all(after.outcome in _FAILED for _, after in rows):
            cell = replace(cell, state="not_compared", why=f"no answer of HEAD came: {next(iter(cell.failed))}")
        elif all((one := sides[0].get(name)) and (other := sides[1].get(name)) and
                 (one.scores, one.outcome) == (other.scores, other.outcome) for name in questions):
            cell = replace(cell, state="unchanged")
        made.append((cell, pairs, p, bool(race and ended and ended.units < len(race.ends))))
    changed = [cell.state == "cannot_tell" and not cell.why for cell, *_ in made]
    corrected = iter(holm([p for (_, _, p, _), tested in zip(made, changed, strict=True) if tested]))
    less = METRICS[family_of(metric)].less
    return [_decide(cell, pairs, stopped, next(corrected) if tested else None, sum(changed), policy.margin, less,
                    base.seed) for (cell, pairs, _, stopped), tested in zip(made, changed, strict=True)]


def _flips(pairs: Pairs, base: Side, head: Side, labels: tuple[str, str]) -> tuple[Flip, ...]:
    if pairs.scores is None:
        return ()
    causes = [side.causes.get(side.members[label][0], {}) for side, label in zip((base, head), labels, strict=True)]
    found = [Flip(name, float(before), float(after), *(one.get(name, "") for one in causes))
             for name, (before, after) in zip(pairs.questions, pairs.scores, strict=True) if before != after]
    return tuple(sorted(found, key=lambda one: one.after - one.before))


def _decide(made: CellVerdict, pairs: Pairs, stopped: bool, p: float | None, many: int, margin: float, less: bool,
            seed: int) -> CellVerdict:
    """Return the verdict on a pair. `p` is corrected for all `many` changed cells; `less` of the metric is better."""
    if made.why:
        return made
    before, after = pairs.observed()
    change = after - before
    if not math.isfinite(change):
        return replace(made, state="not_compared", why="the difference has no finite value")
    made = replace(made, before=before, after=after, difference=change, low=0.0, high=0.0)
    if made.state == "unchanged":
        return made
    center, error = estimate_difference(pairs, seed)
    half = error * (sequence_quantile(len(pairs.units.sums)) if stopped else Z)
    low, high = center - half, center + half
    if pairs.share:
        low, high = max(low, -1.0), min(high, 1.0)
    made = replace(made, low=low, high=high, p=None if p is None else p / 2)
    if -margin <= low <= high <= margin:
        return replace(made, state="equal")
    if p is not None and p < LEVEL and change:
        return replace(made, state="better" if (change > 0) != less else "worse")
    return replace(made, needed=questions_needed(change, error, pairs.n, many, margin))


def estimate_difference(pairs: Pairs, seed: int = 0) -> tuple[float, float]:
    """Return the centre of the difference's interval and its standard error. For shares both are those of Bonett and
    Price, so that a few equal answers do not seem certain."""
    if pairs.share and not pairs.clustered:
        up, down = ((count + 1) / (pairs.n + 2) for count in pairs.flips())
        return up - down, math.sqrt((up + down - (up - down) ** 2) / (pairs.n + 2))
    before, after = pairs.observed()
    return after - before, bootstrap(pairs, seed).error or 1 / max(len(pairs.units.sums), 1)


def sequence_quantile(units: int) -> float:
    """Return the quantile that replaces `Z` after any number of units, tightest near 50."""
    prior = units * sequence_rate(50, LEVEL)
    return math.sqrt(2 * (prior + 1) / prior * math.log(math.sqrt(prior + 1) / LEVEL))


def questions_needed(difference: float, error: float, n: int, many: int, margin: float) -> int:
    """Return about how many questions would tell, with a power of 80 %, whether there is a difference. If the observed
    one is larger than the margin, it is taken as the true one. Otherwise there is assumed to be none. They are more
    than `n`, which could not tell."""
    from scipy.special import ndtri

    reach = (-float(ndtri(LEVEL / 2 / max(many, 1))) + _POWER_Z) / abs(difference) if abs(difference) > margin \
        else (Z + _EQUAL_Z) / margin
    found = max(math.ceil(n * (error * reach) ** 2), n + 1)
    step = 10 ** max(len(str(found)) - 2, 0)
    return int(math.ceil(found / step) * step)


@dataclass(frozen=True)
class GateResult:
    """The result of a gate.

    Attributes:
        cells: the verdicts, in the order of HEAD's cells.
        notes: sentences on what was not asked or not compared, what failed, and which inputs differ.
        spent: number, tokens and price of new calls.
        run: folder of HEAD's run.
        texts: questions by id.
    """

    cells: Sequence[CellVerdict]
    metric: str
    policy: GatePolicy
    notes: Sequence[str]
    spent: Mapping[str, Any]
    run: Path
    texts: Mapping[str, str]

    @property
    def state(self) -> State:
        return overall(self.cells)

    @property
    def fails(self) -> bool:
        """Return whether the policy fails this verdict."""
        return any(one.state in FAILING[self.policy.fail] for one in self.cells)

    def as_json(self) -> dict[str, Any]:
        """Return the result as JSON."""
        return {"verdict": self.state, "fails": self.fails, "said": [describe(one, self) for one in self.cells],
                "metric": self.metric, "policy": self.policy.model_dump(), "cells": [asdict(one) for one in self.cells],
                "notes": list(self.notes), "spent": dict(self.spent), "run": str(self.run)}


def code(text: str, most: int = 90) -> str:
    """Return a text in backticks, on one line and cut to `most` characters. GitHub shows it without links, mentions or
    HTML."""
    line = " ".join(visible(text).replace("`", "'").replace("|", "\N{BROKEN BAR}").split()) or "(empty)"
    return f"`{line if len(line) <= most else line[:most - 1] + '…'}`"


def title(metric: str) -> str:
    """Return a metric's title without characters that markdown reads."""
    return re.sub(r"[^\w %.,()-]", " ", metric_title(metric))


def describe(cell: CellVerdict, result: GateResult) -> str:
    """Return the verdict on a cell as a sentence."""
    name, margin = title(result.metric), f"{result.policy.margin:g}"
    if cell.state == "not_compared" or cell.difference is None or cell.low is None or cell.high is None:
        return f"Cannot tell: {cell.why}." if cell.state == "cannot_tell" else f"Not compared: {cell.why}."
    change = f"{cell.difference:+z.2f} [{cell.low:+z.2f}, {cell.high:+z.2f}]"
    asked = f" after {cell.n} of {cell.of} questions" if cell.n < cell.of else ""
    if cell.state == "unchanged":
        return f"Unchanged: all {cell.n} answers score the same."
    if cell.state == "equal":
        return f"No difference larger than {margin}: {name} {change}{asked}."
    if cell.state in ("worse", "better"):
        return (f"{cell.state.capitalize()}: {name} went from {cell.before:z.2f} to {cell.after:z.2f}, {change}, "
                f"one-sided p {format_p(cell.p)}{asked}.")
    needed = cell.needed or 0
    could = (f"asking all {cell.of} could (`--no-race`)" if cell.n < cell.of and needed <= cell.of
             else f"about {needed:,} could")
    return f"These {cell.n} questions cannot tell; {could}: {name} {change}."
