"""Collect the events (tags and texts) from which both renderings are written, and write them as HTML."""
from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from ragbed.documents.paths import keep_hidden_text
from ragbed.documents.types import normalize


class Open(NamedTuple):
    """A tag begins."""

    tag: str
    attributes: tuple[tuple[str, str], ...] = ()


class Close(NamedTuple):
    """The most recently opened tag ends."""

    tag: str


Event = Open | Close | str

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
INLINE = frozenset({"em", "strong", "code", "sub", "sup", "a"})
_ADDRESS = re.compile(r"(?:https?://|mailto:)[^\s\"'<>`\\]{1,2000}", re.IGNORECASE)

_LINE_END = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_UNWANTED = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u200b\u2060\ufeff\ufffe\uffff\ud800-\udfff]")
_SPACES = re.compile(r"[^\S\n]")
TAGS = re.compile("[\U000e0000-\U000e007f]")


def normalize_text(text: str) -> str:
    """Normalize a text to NFC with `\\n` line ends. Remove surrogates, soft hyphens, zero-width and control characters.

    NFC makes Korean syllables equal, which are one code point in most files but several in files from macOS. NFKC would
    turn x² into x2. Invisible tag characters are removed too, unless hidden text is kept.
    """
    if text.isascii():
        return text if text.isprintable() else _UNWANTED.sub("", _LINE_END.sub("\n", text))
    if TAGS.search(text) and not keep_hidden_text():
        text = TAGS.sub("", text)
    return normalize("NFC", _UNWANTED.sub("", _LINE_END.sub("\n", text)))


def simplify_spaces(text: str) -> str:
    """Replace every kind of space, such as the no-break space, with an ordinary space. Line ends stay."""
    return _SPACES.sub(" ", text)


VOID = frozenset({"br", "hr", "img"})
CONTAINERS = frozenset({"table", "thead", "tbody", "tfoot", "tr", "ul", "ol", "dl", "blockquote"})


def write_html(events: Iterable[Event]) -> str:
    """Write a balanced stream of clean events as HTML."""
    parts: list[str] = []
    for event in events:
        if isinstance(event, str):
            parts.append(escape(event))
        elif isinstance(event, Open):
            attributes = "".join(f' {name}="{escape(value).replace(chr(34), "&quot;")}"'
                                 for name, value in event.attributes)
            line_end = "\n" if event.tag in CONTAINERS or event.tag == "hr" else ""
            parts.append(f"<{event.tag}{attributes}>{line_end}")
        elif event.tag not in VOID:
            parts.append(f"</{event.tag}>" if event.tag in INLINE else f"</{event.tag}>\n")
    return "".join(parts)


def escape(text: str) -> str:
    """Escape the characters that HTML reads as markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


PHRASING = frozenset({*HEADINGS, "p", "dt", "dd", "li", "td", "th", "caption", "pre"})
_ONE_LINE = frozenset({*HEADINGS, "dt", "caption"})
_PARENTS = {"tr": ("table", "thead", "tbody", "tfoot"), "td": ("tr",), "th": ("tr",), "li": ("ul", "ol"),
            "dt": ("dl",), "dd": ("dl",), "caption": ("table",), "thead": ("table",), "tbody": ("table",),
            "tfoot": ("table",)}
_MAX_DEPTH = 48


class Tidy:
    """Collects the events of clean HTML.

    Text outside a block is put into a `p`. Blocks nested deeper than `_MAX_DEPTH` lose their tag. `boundary` separates
    runs of text by a new paragraph, or by a line break (`br`) inside an item or cell.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.hidden = 0
        self._blocks: list[str] = []
        self._inline: list[str] = []
        self._space = False
        self._written = False
        self._break = False
        self._linked = False
        self._address = ""

    def open(self, tag: str, attributes: tuple[tuple[str, str], ...] = ()) -> bool:
        """Begin a block. Return False if it was flattened, and must not be closed."""
        self.boundary()
        parents = _PARENTS.get(tag)
        fits = parents is None or (bool(self._blocks) and self._blocks[-1] in parents)
        if len(self._blocks) >= _MAX_DEPTH or not fits:
            return False
        self._blocks.append(tag)
        self.events.append(Open(tag, attributes))
        self._fresh()
        return True

    def close(self, tag: str) -> None:
        """End the most recently opened block."""
        self.boundary()
        self._end(tag)

    def boundary(self) -> None:
        """Start a new paragraph or line with the next text."""
        while self._inline:
            self.events.append(Close(self._inline.pop()))
        if self._inside("p"):
            self._end("p")
        self._space = False
        self._break = self._written

    def line_break(self) -> None:
        """Add a `br`: a new line within the paragraph."""
        if self._inside("pre"):
            self.events.append("\n")
        elif self._written:
            self._break = True

    def rule(self) -> None:
        """Add a thematic break, except inside items and cells."""
        self.boundary()
        if not self._blocks:
            self.events.extend((Open("hr"), Close("hr")))

    def image(self, alt: str) -> None:
        """Add a picture's alternative text."""
        if alt := " ".join(simplify_spaces(normalize_text(alt)).split()):
            self._space = True
            self._begin()
            self._open_link()
            self.events.extend((Open("img", (("alt", alt),)), Close("img")))
            self._written = self._space = True

    def link(self, address: str = "") -> None:
        """Begin or end a link or button, so that the texts of adjacent ones stay separate words. The texts and pictures
        of a link keep its address if it leads to the web or to an e-mail address."""
        self.close_inline("a")
        address = normalize_text(address).strip()
        self._address = address if _ADDRESS.fullmatch(address) else ""
        self._space = self._space or self._linked
        self._linked = True

    def _open_link(self) -> None:
        if self._address and "a" not in self._inline and not self._inside("pre"):
            self._inline.append("a")
            self.events.append(Open("a", (("href", self._address),)))

    def open_inline(self, tag: str) -> bool:
        """Begin emphasis. Return False if it is already active."""
        if tag not in INLINE or tag in self._inline or self._inside("pre"):
            return False
        if self._inline or self._space or not self._written:
            self._begin()
        self._open_link()
        self._inline.append(tag)
        self.events.append(Open(tag))
        return True

    def close_inline(self, tag: str) -> None:
        """End emphasis, unless a block inside it has already ended it."""
        if self._inline and tag == self._inline[-1]:
            self._inline.pop()
            self.events.append(Close(tag))

    def text(self, raw: str) -> None:
        """Add text. White space is collapsed outside `pre`."""
        text = normalize_text(raw)
        if not raw.isascii() and (tags := TAGS.findall(raw)) and not keep_hidden_text():
            self.hidden += len(tags)
        if self._inside("pre"):
            self.events.append(text.replace("\t", "    "))
            return
        words = text.split()
        if not words:
            self._space = self._space or bool(text)
            return
        self._space = self._space or text[0].isspace()
        self._begin()
        self._open_link()
        self.events.append(" ".join(words))
        self._written = True
        self._space = text[-1].isspace()

    def _begin(self) -> None:
        if not self._blocks or self._blocks[-1] not in PHRASING:
            self._blocks.append("p")
            self.events.append(Open("p"))
            self._fresh()
        elif self._break and self._blocks[-1] in _ONE_LINE:
            self.events.append(" ")
        elif self._break:
            self.events.extend((Open("br"), Close("br")))
        elif self._space and self._written:
            self.events.append(" ")
        self._break = self._space = self._linked = False

    def _inside(self, tag: str) -> bool:
        return bool(self._blocks) and self._blocks[-1] == tag

    def _end(self, tag: str) -> None:
        self._blocks.pop()
        last = self.events[-1]
        if isinstance(last, Open) and last.tag == tag and tag not in ("td", "th"):
            self.events.pop()
        else:
            self.events.append(Close(tag))
        self._fresh(written=bool(self._blocks) and self._blocks[-1] in PHRASING)

    def _fresh(self, written: bool = False) -> None:
        self._space = False
        self._break = written
        self._written = written
