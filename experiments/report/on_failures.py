"""How many answers did not come, why, and what that does to the means, in sentences."""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from experiments.record import Result
from experiments.report.cells import Table
from experiments.report.text import visible
from experiments.report.words import listed, plural

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


def on_failures(table: Table, results: Sequence[Result]) -> list[str]:
    """Of all answers, one for each question in each cell; replies without an answer apart."""
    counts: Counter[str] = Counter()
    for cell in table.cells:
        counts.update(dict(cell.outcomes))
    failed, whole, unread = sum(counts[name] for name in _FAILED), plural(counts.total(), "answer"), counts["malformed"]
    if not counts:
        return []
    if not failed and not unread:
        return [f"None of {whole} failed."]
    said = [f"Of {whole}, {failed:,} failed: {_why(counts, results)}."] if failed else [f"Of {whole}, none failed."]
    if unread:
        said.append(f"Malformed, without an answer that could be read: {unread:,}.")
    return [*said, "As published, those without text count in no mean of the published metrics, and n is smaller there."
            if table.drops_empty else "They stay in every mean."]


def _why(counts: Counter[str], results: Sequence[Result]) -> str:
    """By the kind of failure, such as `HTTP 500`; by outcome where no result says it."""
    kinds = Counter(result.failure.kind for result in results
                    if result.outcome in _FAILED and result.failure is not None)
    found = (kinds or Counter({name: counts[name] for name in _FAILED if counts[name]})).most_common()
    if len(found) == 1:
        return _words(found[0][0])
    return listed([f"{_words(kind)} {count:,}" for kind, count in found], len(found))


def _words(kind: str) -> str:
    return visible(kind.replace("http_", "HTTP ").replace("_", " "))
