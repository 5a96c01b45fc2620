"""The evidence of one question over all its cells: each chunk once, and the number that each cell showed it with."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from experiments.record import Result, StoredPassage
from experiments.report.text import visible
from experiments.report.texts import Texts


@dataclass(slots=True)
class Passages:
    """Collects the chunks of a question's answers, in order of first appearance.

    Attributes:
        found: as the page gets them.
    """

    texts: Texts
    found: list[dict[str, Any]] = field(default_factory=list)
    _places: dict[str, int] = field(default_factory=dict)

    def of(self, result: Result) -> list[Any]:
        """The place in `found` and the number of each passage; places alone where the numbers are 1, 2, 3 and so on."""
        places = [self._place(stored) for stored in result.evidence]
        numbers = [stored.number for stored in result.evidence]
        return [places] if numbers == list(range(1, len(numbers) + 1)) else [places, numbers]

    def _place(self, stored: StoredPassage) -> int:
        if stored.chunk not in self._places:
            self._places[stored.chunk] = len(self.found)
            self.found.append({
                "source": visible(stored.source), "format": stored.format, "start": stored.start, "end": stored.end,
                "text": self.texts.evidence(stored.text), **({"pages": stored.pages} if stored.pages else {})})
        place = self._places[stored.chunk]
        if stored.gold:
            self.found[place].setdefault("gold", stored.gold)
        return place
