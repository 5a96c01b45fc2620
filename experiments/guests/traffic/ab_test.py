"""A/B test of served configurations. Compares the threads that were assigned to them at random.

Each thread counts once, because its answers are not independent. Its first rated answer decides the thumb, and its
first answer decides refusals and failures. Threads whose client requested a configuration are left out."""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ragbed.documents.errors import RunError
from ragbed.experiments.analysis.view import View, make_figure
from ragbed.experiments.formatting import plural
from ragbed.experiments.guests.traffic.anytime import anytime_test
from ragbed.experiments.guests.traffic.traffic import open_traffic
from ragbed.experiments.statistics import holm

# With min(), SQLite takes the other columns from the row that has the minimum.
_RATED = ("SELECT t.run, t.probability, f.first = 'up', min(f.rated) FROM feedback f JOIN turns t ON"
          " t.record = f.record WHERE t.probability < 1 AND f.first IS NOT NULL GROUP BY t.thread ORDER BY f.rated,"
          " f.rowid")
_ENDED = ("SELECT run, probability, {hit}, min(ended) FROM turns WHERE probability < 1 AND ended IS NOT"
          " NULL GROUP BY thread ORDER BY ended, rowid")
_MEASURES = {"thumbs up": _RATED, "refused": _ENDED.format(hit="outcome = 'refused'"),
             "failed": _ENDED.format(hit="outcome NOT IN ('answered', 'refused')")}
_RUNS = "SELECT DISTINCT run, configuration FROM turns WHERE probability < 1 AND ended IS NOT NULL"
_REQUESTED = "SELECT count(DISTINCT thread) FROM turns WHERE probability = 1"
_NOTES = (
    "Each thread counts once: by the first thumb of its first rated answer, and for refused and failed by its first "
    "answer. Users who rate are not a random sample.",
    "Differences and intervals compare threads within blocks, each of which has both configurations. If the difference "
    "changes over time, both describe its mean so far.",
    "p and the intervals stay valid however often you look, so you may stop at any time. p is corrected by Holm's "
    "method for the number of configurations; the intervals are not. Decide by p: its test is the more powerful one.")


class _Thread(NamedTuple):
    configuration: str
    probability: float
    hit: bool


@dataclass(frozen=True, slots=True)
class VariantRow:
    """The value of one measure for one configuration.

    Attributes:
        share: share of the configuration's threads, each weighted by 1 / probability of its assignment.
        difference, low, high: difference to the baseline that fits the blocks best, with its confidence sequence; None
            for the baseline, and `difference` also without a block.
        p: corrected p-value of no difference; None for the baseline.
        blocks: number of blocks of threads that were compared.
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


def compare_variants(traffic: Path, baseline: str | None = None) -> tuple[list[VariantRow], list[str]]:
    """Return the rows of an A/B test by measure and configuration, baseline first, and notes on how to read them.

    The baseline is the named configuration. By default it is the one with the highest probability. Raises RunError if
    no thread was assigned at random, or there is no such configuration."""
    with closing(open_traffic(traffic)) as database, database.snapshot():
        names = _names(database.read(_RUNS))
        found = {measure: [_Thread(names[run], probability, bool(hit)) for run, probability, hit, _ in
                           database.read(query)] for measure, query in _MEASURES.items()}
        (requested,), = database.read(_REQUESTED)
    threads = found["failed"]
    likely = {one.configuration: one.probability for one in threads}
    if not likely:
        raise RunError(f"{traffic}: no thread was assigned a configuration at random; serve with --explore 0.1, and "
                       "let clients ask for the model `live`")
    first = baseline or max(likely, key=lambda name: likely[name])
    if first not in likely:
        raise RunError(f"no configuration {first!r}; available: {', '.join(likely)}")
    rows = [row for measure, of in found.items()
            for row in _rows(measure, of, first, sorted({*likely} - {first}))]
    left_out = (f"{plural(requested, 'thread')} whose client requested a configuration "
                f"{'is' if requested == 1 else 'are'} left out.")
    return rows, [*_NOTES, *([left_out] if requested else [])]


def compare_traffic(traffic: Path, baseline: str | None) -> tuple[dict[str, Any], list[View]]:
    """Return what `ragbed compare TRAFFIC` prints, as JSON and as views. Raises RunError as `compare_variants` does."""
    rows, notes = compare_variants(traffic, baseline)
    return ({"traffic": str(traffic), "rows": list(map(asdict, rows)), "notes": notes}, [ab_test_view(rows, notes)])


def ab_test_view(rows: Sequence[VariantRow], notes: Sequence[str]) -> View:
    """Return the rows as a view."""
    shown = tuple((row.measure, row.configuration, row.threads, row.share,
                   make_figure(row.difference, row.low, row.high), row.p) for row in rows)
    return View("ab_test", "A/B test: threads that were assigned a configuration at random",
                ("measure", "configuration", "threads", "share", "difference", "p"), shown, keys=2, main=3,
                notes=tuple(notes), signed=("difference",), p=("p",))


def _names(runs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the configuration of each run, or the run's folder if several runs have the same configuration."""
    counts = Counter(name for _, name in runs)
    return {run: name if counts[name] == 1 else run for run, name in runs}


def _rows(measure: str, threads: Sequence[_Thread], first: str, others: Sequence[str]) -> list[VariantRow]:
    by_name = {name: [one for one in threads if one.configuration == name] for name in (first, *others)}
    shares = {name: _share(of) for name, of in by_name.items()}
    tests = {}
    for name in others:
        both = [one for one in threads if one.configuration in (first, name)]
        tests[name] = anytime_test([one.configuration == name for one in both], [one.hit for one in both])
    corrected = dict(zip(others, holm([tests[name].p for name in others]), strict=True))
    rows = [VariantRow(measure, first, len(by_name[first]), shares[first])]
    rows += [VariantRow(measure, name, len(by_name[name]), shares[name], test.difference, test.low, test.high,
                        corrected[name], test.blocks) for name, test in tests.items()]
    return rows


def _share(threads: Sequence[_Thread]) -> float | None:
    """Return the weighted share. Weights avoid a bias if both the probabilities and the share changed over time."""
    weight = sum(1 / one.probability for one in threads)
    return sum(one.hit / one.probability for one in threads) / weight if weight else None
