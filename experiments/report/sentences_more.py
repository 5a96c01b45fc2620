"""Sentences on failures, refusals, cost, factors and causes."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragbed.experiments.analysis.causes import CAUSES
from ragbed.experiments.cells import short_names
from ragbed.experiments.report.cells import Figure, ReportCell, Table
from ragbed.experiments.report.competition import CellCosts, CellPairs, cheapest, front, leaders, standing
from ragbed.experiments.statistics import ALPHA
from ragbed.experiments.words import (
    interval,
    listed,
    metric_words,
    part,
    percent,
    plural,
    portion,
    probability,
    visible,
)

_FAILED = ("too_long", "budget", "timeout", "error")
_MANY = 0.1


@dataclass(frozen=True, slots=True)
class Silence:
    """How many questions had no reply at all, over all cells."""

    failed: int
    asked: int

    @property
    def all(self) -> bool:
        """Whether the figures say nothing."""
        return bool(self.asked) and self.failed == self.asked

    @property
    def many(self) -> bool:
        """Whether a reader has to know it before anything else."""
        return self.failed >= _MANY * max(self.asked, 1)

    @property
    def said(self) -> str:
        """In a sentence."""
        if self.all:
            return f"None of {plural(self.asked, 'answer')} came: the figures say nothing of the cells."
        return (f"Mind that {self.failed:,} of {plural(self.asked, 'answer')} never came: they count as wrong in what "
                "follows.")


def without_reply(table: Table) -> Silence:
    """Of all cells together."""
    outcomes = [dict(cell.outcomes) for cell in table.cells]
    return Silence(sum(counts.get(name, 0) for counts in outcomes for name in _FAILED),
                   sum(sum(counts.values()) for counts in outcomes))


def failure_kinds(failures: Iterable[tuple[str, str]]) -> Counter[str]:
    """Count the answers that failed, of outcomes and kinds of failure, by kind."""
    return Counter(kind for outcome, kind in failures if outcome in _FAILED)


def on_failures(table: Table, kinds: Counter[str]) -> list[str]:
    """Of all answers, one for each question in each cell; replies without an answer apart."""
    counts: Counter[str] = Counter()
    for cell in table.cells:
        counts.update(dict(cell.outcomes))
    failed, whole, unread = sum(counts[name] for name in _FAILED), plural(counts.total(), "answer"), counts["malformed"]
    if not counts:
        return []
    if not failed and not unread:
        return [f"None of {whole} failed."]
    said = [f"Of {whole}, {failed:,} failed: {_why(counts, kinds)}."] if failed else [f"Of {whole}, none failed."]
    if unread:
        said.append(f"Malformed, without an answer that could be read: {unread:,}.")
    return [*said, "As published, those without text count in no mean of the published metrics, and n is smaller there."
            if table.drops_empty else "They stay in every mean."]


def _why(counts: Counter[str], kinds: Counter[str]) -> str:
    """By the kind of failure, such as `HTTP 500`; by outcome where none is known."""
    found = [(visible(kind.replace("http_", "HTTP ").replace("_", " ")), count) for kind, count in (
        kinds or Counter({name: counts[name] for name in _FAILED if counts[name]})).most_common()]
    return found[0][0] if len(found) == 1 else listed([f"{kind} {count:,}" for kind, count in found], len(found))


_RIGHTLY, _NEEDLESSLY = "refusal_accuracy", "refused_answerable"


def on_refusals(table: Table) -> list[str]:
    """Of the cells whose refusals are scored, all at either end."""
    right, over = _known(table, _RIGHTLY), _known(table, _NEEDLESSLY)
    said = [_ends(right, "Unanswerable questions are rightly refused")] if right else []
    if over and not right:
        said.append("Every question is answerable, so that each refusal is needless.")
    return said + ([_ends(over, "Answerable questions are needlessly refused")] if over else [])


def _known(table: Table, metric: str) -> list[tuple[ReportCell, Figure]]:
    return [(cell, found[1]) for cell in table.cells if (found := cell.of(metric)) and found[1].mean is not None]


def _ends(known: list[tuple[ReportCell, Figure]], refused: str) -> str:
    means = [figure.mean or 0.0 for _, figure in known]
    if min(means) == max(means):
        return f"{refused} by {'each cell' if len(known) > 1 else known[0][0].label} in {_cases(known)}."
    most, least = ([one for one in known if (one[1].mean or 0.0) == end] for end in (max(means), min(means)))
    return f"{refused} most often by {_who(most)}, least often by {_who(least)}."


def _who(level: list[tuple[ReportCell, Figure]]) -> str:
    return f"{listed([cell.label for cell, _ in level])} ({'each ' if len(level) > 1 else ''}in {_cases(level)})"


def _cases(level: list[tuple[ReportCell, Figure]]) -> str:
    """A count, where it is one of questions; a mean of repeats is a share of them."""
    found = {f"{figure.count if len(cell.ids) == 1 else percent(figure.mean or 0.0)} of {figure.n} cases"
             for cell, figure in level}
    return found.pop() if len(found) == 1 else f"{percent(level[0][1].mean or 0.0)} of cases"


def on_cost(table: Table, cost: CellCosts, tested: CellPairs | None) -> list[str]:
    """Return the cheapest of the competing cells not really different from the best one, and the Pareto front."""
    known = [cell for cell in table.cells if cell.id in cost.of]
    if len(known) < 2 or len({round(cost.of[cell.id], 10) for cell in known}) == 1:
        return []
    least, most = (end(known, key=lambda cell: cost.of[cell.id]) for end in (min, max))
    found = [_for_less(table, cost, tested),
             f"The dearest, {most.label}, takes {1 / cost.share(least, most):,.1f} times as much as the cheapest, "
             f"{least.label}: {cost.words(cost.of[most.id])} against {cost.full(cost.of[least.id])}."]
    best = front(table, cost)
    if best:
        found.append(f"On the Pareto front, where no other cell has a higher mean for as little: "
                     f"{listed([cell.label for cell in best], 6)}.")
    return [sentence for sentence in found if sentence]


def _for_less(table: Table, cost: CellCosts, tested: CellPairs | None) -> str:
    at_the_top = [cell for cell in leaders(table) if cell.id in cost.of]
    if len(at_the_top) != 1:
        return ""
    best = at_the_top[0]
    least = cheapest(standing(best, tested), cost)
    if least is None:
        return ""
    cell, lower = least.first, least.tested.difference or 0.0
    kind = "different on its own, not after the correction" if least.alone else "no difference is seen"
    return (f"For {portion(cost.share(cell, best), f'the {cost.what}')}, {cost.words(cost.of[cell.id])} against "
            f"{cost.full(cost.of[best.id])}, {cell.label} is {abs(lower):z.2f} {'lower' if lower >= 0 else 'higher'} "
            f"than {best.label}: {kind} ({least.both_p}).")


_PLURAL = {"reasoning": "strategies", "model": "models", "condition": "conditions", "perturbation": "perturbations",
           "retriever": "retrievers", "format": "formats", "rules": "rules"}
Stored = Mapping[str, Any]


def on_effects(found: Stored | None) -> list[str]:
    """Return of the summary's `effects` each factor that makes a difference over the mean of all others and which of
    its levels is ahead, the factors of which no difference is seen or none could be, and interactions."""
    if not found or not found["factors"]:
        return []
    names = short_names(row["level"] for one in found["factors"] if one["factor"] == "model" for row in one["levels"])
    joint = [one for one in found["interactions"] if _real(one)]
    said = []
    for one in found["factors"]:
        if _real(one):
            others = [other["factor"] for other in found["factors"] if other is not one] if found.get("crossed") else []
            depends = [other for pair in joint if one["factor"] in pair["factors"] for other in pair["factors"]
                       if other != one["factor"]]
            said += [_matters(one, found["metric"], depends, names), *_ahead(one, others, names)]
    unseen = [one["factor"] for one in found["factors"] if one["p_holm"] is not None and not _real(one)]
    if unseen:
        said.append(f"No effect of {listed(unseen)} is seen over the mean of the rest.")
    untested = [one["factor"] for one in found["factors"] if one["p_holm"] is None]
    if untested:
        said.append(f"There are too few questions to test {listed(untested)}.")
    return [visible(one) for one in said] + [
        f"How much {first} matters depends on {second} ({_p(one)})." for one in joint
        for first, second in [one["factors"]]]


def _real(one: Stored) -> bool:
    return one["p_holm"] is not None and one["p_holm"] < ALPHA


def _p(one: Stored) -> str:
    return f"p (Holm) {probability(one['p_holm'])}"


def _matters(one: Stored, metric: str, depends: Sequence[str], names: Mapping[str, str]) -> str:
    """Say that a factor matters, and on which others it depends how much. The test is of all its levels together: which
    of them differ is left to their intervals."""
    levels = sorted((level for level in one["levels"] if level["mean"] is not None), key=lambda level: -level["mean"])
    means = [f"{level['mean']:z.2f} {interval(level['low'], level['high'])}".rstrip()
             + f" for {names.get(level['level'], level['level'])}" for level in levels]
    said = f": mean {metric_words(metric)} is {listed(means)}" if levels else ""
    but = f", but how much depends on {listed(depends)}" if depends else ""
    return f"The {one['factor']} matters ({_p(one)}){but}{said}."


def _ahead(one: Stored, others: Sequence[str], names: Mapping[str, str]) -> list[str]:
    """Set the level of the highest mean against the nearest that is really lower; where there is none, the two levels
    that are really apart by most. It is over all levels of `others`: none where some combinations were not asked."""
    contrasts = [_upwards(contrast) for contrast in one.get("contrasts") or ()]
    real = [contrast for contrast in contrasts if _real(contrast)]
    if not real:
        return []
    best = max(one["levels"], key=lambda level: level["mean"] or 0.0)["level"]
    beaten = [contrast for contrast in real if contrast["second"] == best]
    told = (min if beaten else max)(beaten or real, key=lambda contrast: float(contrast["difference"]))
    level = [names.get(contrast["first"], contrast["first"]) for contrast in contrasts
             if contrast["second"] == best and not _real(contrast)]
    over = f"Over all {listed([_PLURAL.get(name, f'values of {name}') for name in others])} " if others else ""
    but = f"; from {listed(level)} it cannot be told" if beaten and level else ""
    by = f"{told['difference']:z.2f} {interval(told['low'], told['high'])}".rstrip()
    higher, lower = (names.get(told[name], told[name]) for name in ("second", "first"))
    return [f"{over}{higher} is higher than {lower} by {by} ({_p(told)}){but}."]


def _upwards(contrast: Stored) -> Stored:
    """The contrast with its higher level second."""
    if contrast["difference"] >= 0:
        return contrast
    low, high = (None if contrast[bound] is None else -contrast[bound] for bound in ("high", "low"))
    return {**contrast, "first": contrast["second"], "second": contrast["first"],
            "difference": -contrast["difference"], "low": low, "high": high}


_NAMED = 3
_NOT_WRONG = {cause.name for cause in CAUSES if cause.right} | {"not_scored", "unjudged"}


def on_causes(table: Table, found: Stored | None) -> list[str]:
    """Return the causes of the wrong answers of the best cell that competes, where one is best, and of the one with
    most of them, by the summary's `error_analysis`."""
    if not found or not found["cells"]:
        return []
    titles = {one["name"]: visible(one["title"]) for one in found["causes"] if one["name"] not in _NOT_WRONG}
    counts = {row["cell"]: Counter({titles[name]: round(share["mean"] * share["n"]) for name, share in row[
        "causes"].items() if name in titles and share["mean"]}) for row in found["cells"]}
    if not any(one.total() for one in counts.values()):
        return ["No answer is known to be wrong."]
    wrong = [(cell, own) for cell in table.cells
             if (own := sum((counts.get(id, Counter()) for id in cell.ids), Counter[str]()))]
    best, most = leaders(table), max((own.total() for _, own in wrong), default=0)
    worst = [one for one in wrong if one[1].total() == most]
    chosen = {"the best cell": [one for one in wrong if [one[0]] == best],
              "with the most wrong answers" if len(worst) == 1 else "with as many as any": worst[:1]}
    said = {cell.id: _of(own, f"{cell.label} ({reason})")
            for reason, some in reversed(chosen.items()) for cell, own in some}
    return list(reversed(said.values()))


def _of(wrong: Counter[str], called: str) -> str:
    whole = wrong.total()
    named = [f"{title} {part(count, whole)}" for title, count in wrong.most_common(_NAMED)]
    return f"Of {plural(whole, 'wrong answer')} of {called}: {listed(named)}."
