"""Text of strangers, made safe to look at: invisible characters shown, absurd lengths bounded.

Escaping for HTML is not done here: the templates escape everything.
"""
from __future__ import annotations

import re
from dataclasses import dataclass

# C0 and C1 controls, bidi controls, zero-width and tag characters, lone surrogates, noncharacters.
# The joiners U+200C and U+200D stay: Persian, Indic scripts and emoji need them.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff"
    "\ufff9-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e0fff]"
)


_PIECE = re.compile(r"[^_/.:#]+[_/.:#]*|[_/.:#]+")


def visible(text: str) -> str:
    """The text with every invisible or direction-changing character written out, such as `⟨U+202E⟩`.

    The result can always be encoded as UTF-8. Line ends become `\\n`.
    """
    return _HIDDEN.sub(_name, text.replace("\r\n", "\n"))


def _name(match: re.Match[str]) -> str:
    return f"⟨U+{ord(match[0]):04X}⟩"


def pieces(name: str) -> list[str]:
    """A name, such as a metric's or a model's address, where a line may break."""
    return _PIECE.findall(name)


@dataclass(frozen=True, slots=True)
class Bounded:
    """The beginning of a text and how many characters (code points) are left out of it."""

    text: str
    left_out: int = 0


def bounded(text: str, limit: int) -> Bounded:
    """At most `limit` characters of the text, made visible."""
    return Bounded(visible(text[:limit]), max(len(text) - limit, 0))


def shown(text: str, limit: int) -> str | list[str | int]:
    """As `bounded`, for the page's script: the text, or the text and how many characters are left out of it."""
    piece = bounded(text, limit)
    return [piece.text, piece.left_out] if piece.left_out else piece.text
