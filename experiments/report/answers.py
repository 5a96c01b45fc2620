"""An answer's text with its citations linked to the passages that they name."""
from __future__ import annotations

import re
from collections.abc import Mapping

from markupsafe import Markup, escape

from experiments.report.text import Bounded
from strategies.reading import strip_citations

_BRACKET = re.compile(r"\[[\d\s,;–-]{1,400}\]")
_NUMBER = re.compile(r"\d+")


def linked(answer: Bounded, anchors: Mapping[int, str]) -> Markup:
    """The answer as HTML, escaped.

    Args:
        anchors: page anchor by evidence number; a number without one is marked as not shown.
    """
    pieces, at = [], 0
    for match in _BRACKET.finditer(answer.text):
        if strip_citations(f"x{match[0]}") != "x":
            continue
        pieces += [escape(answer.text[at:match.start()]), _numbers(match[0], anchors)]
        at = match.end()
    return Markup("").join([*pieces, escape(answer.text[at:])])


def _numbers(citation: str, anchors: Mapping[int, str]) -> Markup:
    pieces, at = [], 0
    for match in _NUMBER.finditer(citation):
        pieces += [escape(citation[at:match.start()]), _number(match[0], anchors)]
        at = match.end()
    return Markup("").join([*pieces, escape(citation[at:])])


def _number(digits: str, anchors: Mapping[int, str]) -> Markup:
    anchor = anchors.get(int(digits))
    if anchor is None:
        return Markup('<span class="unshown" title="no passage of this number was shown">{}</span>').format(digits)
    return Markup('<a class="cite" href="#{}">{}</a>').format(anchor, digits)
