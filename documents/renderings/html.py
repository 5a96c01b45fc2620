"""Events to HTML: one block a line, so that a reader and a chunker can find their way."""
from __future__ import annotations

from collections.abc import Iterable

from documents.renderings.events import INLINE, Event, Open

_VOID = frozenset({"br", "hr", "img"})
_CONTAINERS = frozenset({"table", "thead", "tbody", "tfoot", "tr", "ul", "ol", "dl", "blockquote"})


def write_html(events: Iterable[Event]) -> str:
    """The HTML of a balanced stream of clean events."""
    parts: list[str] = []
    for event in events:
        if isinstance(event, str):
            parts.append(escaped(event))
        elif isinstance(event, Open):
            parts.append(_start(event))
        elif event.tag not in _VOID:
            parts.append(f"</{event.tag}>" if event.tag in INLINE else f"</{event.tag}>\n")
    return "".join(parts)


def escaped(text: str) -> str:
    """Text with the characters escaped that HTML reads as markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _start(event: Open) -> str:
    attributes = "".join(f' {name}="{escaped(value).replace(chr(34), "&quot;")}"' for name, value in event.attributes)
    return f"<{event.tag}{attributes}>" + ("\n" if event.tag in _CONTAINERS or event.tag == "hr" else "")
