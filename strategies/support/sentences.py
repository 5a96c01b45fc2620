"""An answer as statements: its sentences, each with the numbers that it cites."""
from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from strategies.reading import is_only_citations, is_refusal, read_citations, strip_citations
from strategies.support.lexical import content_words
from strategies.types import Draft, Task

MOST_STATEMENTS = 40
"""The last one holds what is left of a longer answer, so that nothing goes unchecked."""

_CITATIONS = r"(?:[ \t]{0,4}\[\d[\d\s,;–-]{0,60}\]){0,20}"
_NOT_AN_END = r"(?<!\b[A-Z]\.)(?<!\b(?:Mr|Ms|Dr|St|No|Co|Jr|Sr|vs)\.)(?<!\b(?:Mrs|Inc|Ltd|Gen|Sen|Rep)\.)(?<!\bCorp\.)"
# A full stop before a small letter is of an abbreviation; citations after a full stop are of the sentence before.
_END = re.compile(rf"(?:[.!?…](?:{_NOT_AN_END})['\"”’)*_]{{0,4}}{_CITATIONS}(?=\s)(?!\s+[a-z])"
                  rf"|[。！？]['\"”’」』）]{{0,4}}{_CITATIONS})")
_MARK = re.compile(r"[\s>]*(?:#{1,6}\s|[-*•–]\s|\(?\d{1,2}[.)]\s)?\s*")


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of an answer.

    Attributes:
        text: without its citations.
        cited: the numbers that it cites itself, or, where it cites none, that the whole answer does.
    """

    text: str
    cited: tuple[int, ...]


def statements_of(draft: Draft, task: Task) -> tuple[Statement, ...]:
    """The sentences of a draft's answer, without headings, refusals and sentences that say nothing of their own.

    A sentence that says nothing (`Yes.`, `Here is why:`) counts where it is the whole answer. A lone label of an
    option stands for the option's text. Under `open` rules what cites nothing is the model's own knowledge, and is
    left out.
    """
    pieces = [Statement(strip_citations(piece), _cited(piece, draft, task)) for piece in _pieces(draft.text)]
    if task.rules == "open":
        pieces = [piece for piece in pieces if piece.cited]
    pieces = [piece for piece in pieces if not is_refusal(piece.text)]
    telling = [piece for piece in pieces if _tells(piece.text)]
    found = telling or pieces[:1]
    options = dict(task.options)
    return tuple(Statement(options.get(one.text.strip(" .()"), one.text), one.cited) for one in found)


def _cited(piece: str, draft: Draft, task: Task) -> tuple[int, ...]:
    own = read_citations(piece)
    apart = task.rules == "open" and read_citations(draft.text)
    return own if own or apart else draft.cited


def _pieces(text: str) -> list[str]:
    """The sentences of each line; citations that stand alone are of the one before."""
    found: list[list[str]] = []
    for line in text.splitlines():
        for piece in _sentences(line[_mark(line):]):
            if found and (len(found) == MOST_STATEMENTS or is_only_citations(piece)):
                found[-1].append(piece)
            else:
                found.append([piece])
    return list(map(" ".join, found))


def _mark(line: str) -> int:
    mark = _MARK.match(line)
    return mark.end() if mark else 0


def _sentences(line: str) -> list[str]:
    ends = [0, *(end.end() for end in _END.finditer(line)), len(line)]
    return [piece for start, end in pairwise(ends) if (piece := line[start:end].strip())]


def _tells(text: str) -> bool:
    return not text.endswith((":", "：")) and (bool(content_words(text)) or any(map(str.isdecimal, text)))
