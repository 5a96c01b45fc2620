"""Plain text: paragraphs are separated by blank lines; what is aligned with spaces stays aligned."""
from __future__ import annotations

import re

from documents.decode import decode
from documents.parse import Parsed
from documents.renderings.events import Close, Event, Open, normalised, plain_spaces
from documents.renderings.html import write_html

_BLANK = re.compile(r"\n[^\S\n]*(?:\n[^\S\n]*)+")
_ALIGNED = re.compile(r"\S(?: {3,}|\t)\S|^(?: {2,}|\t)\S.*\n", re.MULTILINE)


def parse(data: bytes, source: str) -> Parsed:
    """The text as it is, normalised, and the same in paragraphs of HTML.

    Raises:
        DocumentError: the data is binary.
    """
    text = plain_spaces(normalised(decode(data, source)).expandtabs(4))
    events: list[Event] = []
    for paragraph in _BLANK.split(text.strip("\n")):
        if paragraph.strip():
            tag = "pre" if _ALIGNED.search(paragraph) else "p"
            events += [Open(tag), paragraph if tag == "pre" else paragraph.strip(), Close(tag)]
    return Parsed("", write_html(events), text)
