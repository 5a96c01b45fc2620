"""The evidence of one question over all its cells: each chunk once, with who showed and who cited it."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from documents.parsers.html import parse_html
from experiments.record import Result, StoredPassage
from experiments.report.store import Ref, TextStore
from experiments.report.text import Bounded, bounded, visible

INLINE = 6_000


@dataclass(slots=True)
class Passage:
    """One chunk as shown on the page.

    Attributes:
        anchor: its id in the page.
        numbers: evidence numbers that it had, mostly one.
        cited_by: labels of the cells whose answers cite it.
        reading: the beginning of an HTML passage as a reader sees it; None for plain text.
        content: the beginning as the model saw it, which is readable without the page's script.
        rest: where the whole of it stands, where it is longer than that.
    """

    anchor: str
    source: str
    format: str
    start: int
    end: int
    pages: str
    gold: str | None
    reading: str | None
    content: Bounded
    rest: Ref | None
    numbers: list[int] = field(default_factory=list)
    shown_by: list[str] = field(default_factory=list)
    cited_by: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return ", ".join(f"[{number}]" for number in self.numbers)


def passages(prefix: str, shown: Sequence[tuple[str, Result]], store: TextStore) -> dict[str, Passage]:
    """By chunk id, in order of first appearance.

    Args:
        prefix: begins every anchor.
        shown: `(cell label, result)` of one question.
        store: takes the passages that are too long to stand in the page as they are.
    """
    found: dict[str, Passage] = {}
    for label, result in shown:
        for stored in result.evidence:
            if stored.chunk not in found:
                found[stored.chunk] = _passage(f"{prefix}-p{len(found) + 1}", stored, store)
            _note(found[stored.chunk], stored, label, result)
    return found


def _note(passage: Passage, stored: StoredPassage, label: str, result: Result) -> None:
    passage.shown_by.append(label)
    passage.gold = passage.gold or stored.gold
    if stored.number not in passage.numbers:
        passage.numbers.append(stored.number)
    if stored.number in result.cited:
        passage.cited_by.append(label)


def _passage(anchor: str, stored: StoredPassage, store: TextStore) -> Passage:
    content = bounded(store.text(stored.text), INLINE)
    return Passage(anchor=anchor, source=visible(stored.source), format=stored.format, start=stored.start,
                   end=stored.end, pages=_pages(stored.pages), gold=stored.gold, content=content,
                   reading=_reading(content.text) if stored.format == "html" else None,
                   rest=store.ref(stored.text) if content.left_out else None)


def _reading(source: str) -> str:
    """Text with its tables as lines; the tags are gone, and the page escapes whatever is left."""
    return visible(parse_html(source).plain).strip()


def _pages(pages: tuple[int, int] | None) -> str:
    if pages is None:
        return ""
    return f"page {pages[0]}" if pages[0] == pages[1] else f"pages {pages[0]} to {pages[1]}"
