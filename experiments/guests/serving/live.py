"""A live experiment: the configurations that threads were given at random, compared by what became of them.

A thread counts once, since answers in one thread are not independent of each other: by the first of its answers that
was rated, with the thumb that it had first, and by its first answer for what needs no rating. Threads whose client
named the configuration are left out, for who names one may ask otherwise.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ragbed.documents.errors import RunError
from ragbed.experiments.analysis.view import View, figure_value
from ragbed.experiments.formatting import plural
from ragbed.experiments.guests.serving.anytime import anytime_test
from ragbed.experiments.guests.serving.traffic import open_kept
from ragbed.experiments.statistics import holm

# Of several rows of a thread SQLite takes the columns from the one with the minimum.
_RATED = ("SELECT t.run, t.probability, f.first = 'up', min(f.rated) FROM feedback f JOIN turns t ON"
          " t.record = f.record WHERE t.probability < 1 AND f.first IS NOT NULL GROUP BY t.thread ORDER BY f.rated,"
          " f.rowid")
_ENDED = ("SELECT run, probability, {hit}, min(ended) FROM turns WHERE probability < 1 AND ended IS NOT"
          " NULL GROUP BY thread ORDER BY ended, rowid")
_MEASURES = {"thumbs up": _RATED, "refused": _ENDED.format(hit="outcome = 'refused'"),
             "failed": _ENDED.format(hit="outcome NOT IN ('answered', 'refused')")}
_RUNS = "SELECT DISTINCT run, configuration FROM turns WHERE probability < 1 AND ended IS NOT NULL"
_NAMED = "SELECT count(DISTINCT thread) FROM turns WHERE probability = 1"
_NOTES = (
    "Each thread counts once: by its first rated answer, with its first thumb; for refused and failed by its first "
    "answer. Who rates is not drawn at random.",
    "p and the intervals hold at every look at once: look at any time, and stop at any result. p is corrected for the "
    "number of configurations by Holm's method, the intervals are not; the test decides, for it finds more.")


class _Thread(NamedTuple):
    configuration: str
    probability: float
    hit: bool


@dataclass(frozen=True, slots=True)
class LiveRow:
    """One measure of one configuration.

    Attributes:
        share: of its threads, each weighted by 1 / the probability of its assignment.
        difference, low, high: of the share from the baseline's, with the ends of its confidence sequence; `p` of no
            difference, corrected; all None of the baseline itself.
        blocks: how many blocks of threads of both were compared.
    """

    measure: str
    configuration: str
    threads: int
    share: float | None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    blocks: int | None = None


def live_rows(traffic: Path, baseline: str | None = None) -> tuple[list[LiveRow], list[str]]:
    """Return what became of the threads that were assigned at random, by measure and configuration, the baseline first,
    and notes on how to read it. The baseline is the configuration with the largest probability, or that of the name.
    Raises RunError where nothing was assigned at random, or there is no such configuration."""
    with closing(open_kept(traffic)) as database, database.snapshot():
        names = _names(database.read(_RUNS))
        found = {measure: [_Thread(names[run], probability, bool(hit)) for run, probability, hit, _ in
                           database.read(query)] for measure, query in _MEASURES.items()}
        (named,), = database.read(_NAMED)
    threads = found["failed"]
    likely = {one.configuration: one.probability for one in threads}
    if not likely:
        raise RunError(f"{traffic}: no thread was given its configuration at random; `ragbed serve --explore 0.1` does "
                       "so, where the client names none")
    first = baseline or max(likely, key=lambda name: likely[name])
    if first not in likely:
        raise RunError(f"no configuration {first!r}; there are {', '.join(likely)}")
    rows = [row for measure, of in found.items() for row in _compared(measure, of, first, sorted({*likely} - {first}))]
    left = f"{plural(named, 'thread')} whose client named the configuration {'is' if named == 1 else 'are'} left out."
    return rows, [*_NOTES, *([left] if named else [])]


def compare_live(traffic: Path, baseline: str | None) -> tuple[dict[str, Any], list[View]]:
    """Return what `ragbed compare TRAFFIC` prints, as JSON and as views; raises as `live_rows`."""
    rows, notes = live_rows(traffic, baseline)
    return ({"traffic": str(traffic), "rows": list(map(asdict, rows)), "notes": notes}, [live_view(rows, notes)])


def live_view(rows: Sequence[LiveRow], notes: Sequence[str]) -> View:
    """Return the rows as a table."""
    shown = tuple((row.measure, row.configuration, row.threads, row.share,
                   figure_value(row.difference, row.low, row.high), row.p) for row in rows)
    return View("live", "Threads that were given their configuration at random",
                ("measure", "configuration", "threads", "share", "difference", "p"), shown, keys=2, main=3,
                notes=tuple(notes), signed=("difference",), p=("p",))


def _names(runs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The configuration of each run; its folder's name where several had the same, as after a change of settings."""
    counts = Counter(name for _, name in runs)
    return {run: name if counts[name] == 1 else run for run, name in runs}


def _compared(measure: str, threads: Sequence[_Thread], first: str, others: Sequence[str]) -> list[LiveRow]:
    by_name = {name: [one for one in threads if one.configuration == name] for name in (first, *others)}
    shares = {name: _share(of) for name, of in by_name.items()}
    tests = {}
    for name in others:
        both = [one for one in threads if one.configuration in (first, name)]
        tests[name] = anytime_test([one.configuration == name for one in both], [one.hit for one in both])
    corrected = dict(zip(others, holm([tests[name].p for name in others]), strict=True))
    rows = [LiveRow(measure, first, len(by_name[first]), shares[first])]
    for name, test in tests.items():
        one, other = shares[name], shares[first]
        difference = None if one is None or other is None else one - other
        rows.append(LiveRow(measure, name, len(by_name[name]), one, difference, test.low, test.high, corrected[name],
                            test.blocks))
    return rows


def _share(threads: Sequence[_Thread]) -> float | None:
    """Where probabilities changed in the course of time, weights keep a share that did so too from being mixed up."""
    weight = sum(1 / one.probability for one in threads)
    return sum(one.hit / one.probability for one in threads) / weight if weight else None
