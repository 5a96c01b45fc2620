"""Read a model's final reply: tags, citations, and whether it refuses. The formats are CReSt's (Figures 4 to 8)."""
from __future__ import annotations

import re
from collections.abc import Mapping

from ragbed.documents.types import normalize

REFUSAL = "I cannot answer because the question is unanswerable with the documents."

_ANSWER = re.compile(r"<answer>", re.IGNORECASE)
_ANSWER_END = re.compile(r"</answer>", re.IGNORECASE)
_THINK = re.compile(r"<(/?)think>", re.IGNORECASE)
_THINKING = re.compile(r"<(thinking|think)>.*?(</\1>|\Z)", re.IGNORECASE | re.DOTALL)
_STRAY = re.compile(r"</?(thinking|think|answer)>", re.IGNORECASE)
_CITATION = re.compile(r"\[\s*\d{1,4}(?:\s*[-–,;]\s*\d{1,4}){0,50}\s*\]")
# The lookbehind keeps this linear. Without it, every space of a long run would be tried as a start.
_SPACED_CITATION = re.compile(r"(?<!\s)\s*" + _CITATION.pattern)
# Possessive and with a lookbehind, so that it takes linear time.
_SINGLE_CITATIONS = re.compile(r"(?<!\s)(?:\s*+\[\d++\],?+)++\s*+")
_RANGE = re.compile(r"(\d+)(?:\s*[-–]\s*(\d+))?")
_MAX_RANGE = 100


def read_answer(text: str) -> tuple[str, bool]:
    """Return the final answer, and whether it was in answer tags.

    The answer is the text after the last `<Answer>` up to the next `</Answer>`, or to the end of a reply that was cut,
    plus citations that directly follow. Without answer tags it is the whole reply without its thinking. Text in
    `<think>` is never the answer, even if it contains answer tags.
    """
    text = strip_thinking(text)
    *before, last = _ANSWER.split(text)
    if not before:
        return _STRAY.sub("", _THINKING.sub("", text)).strip(), False
    said, *after = (piece.strip() for piece in _ANSWER_END.split(last, maxsplit=1))
    return (f"{said} {after[0]}" if said and after and is_only_citations(after[0]) else said), True


def text_outside_answer(text: str) -> str:
    """Return the text of a reply outside its answer tags, without tags; the whole text if it has none."""
    *before, last = _ANSWER.split(text)
    pieces = [*before, *_ANSWER_END.split(last)[1:]] if before else [text]
    return _STRAY.sub("", "\n".join(pieces)).strip()


def strip_thinking(text: str) -> str:
    """Return the text outside `<think>`. A closing tag may occur alone, if the server put the opening tag into the
    prompt."""
    first, *rest = _THINK.split(text)
    kept, inside = [first], False
    for slash, piece in zip(rest[::2], rest[1::2], strict=True):
        if slash and not inside and piece.strip():
            kept.clear()
        inside = not slash
        if slash:
            kept.append(piece)
    return "".join(kept)


def find_citations(text: str) -> list[tuple[int, int, tuple[int, ...]]]:
    """Return start, end and cited numbers of each bracket such as `[1]`, `[1, 2]` or `[1-3]`, in code points. A range
    that runs backwards or spans more than 100 numbers gives only its two ends."""
    marks = []
    for bracket in _CITATION.finditer(text):
        seen: dict[int, None] = {}
        for first, last in _RANGE.findall(bracket[0]):
            low, high = int(first), int(last or first)
            numbers = range(low, high + 1) if low <= high <= low + _MAX_RANGE else (low, high)
            seen.update(dict.fromkeys(numbers))
        marks.append((*bracket.span(), tuple(seen)))
    return marks


def renumber_citations(text: str, number_of: Mapping[int, int], beyond: int) -> str:
    """Map the numbers in a text's citation brackets by `number_of`. A number without an entry becomes a number above
    `beyond`."""
    if all(old == new for old, new in number_of.items()):
        return text
    parts, at = [], 0
    for start, end, numbers in find_citations(text):
        cited = dict.fromkeys(number_of.get(number, beyond + max(number, 1)) for number in numbers)
        parts += [text[at:start], f"[{', '.join(map(str, cited))}]"]
        at = end
    return "".join([*parts, text[at:]])


def read_citations(text: str) -> tuple[int, ...]:
    """Read the cited numbers in order of first mention; see `find_citations`."""
    return tuple(dict.fromkeys(number for *_, numbers in find_citations(text) for number in numbers))


def strip_citations(text: str) -> str:
    """Remove citation brackets and the space before each. A text that consists of brackets only stays, such as the
    answer `[3, 7]`."""
    return _SPACED_CITATION.sub("", text).strip() or text.strip()


def strip_last_citations(text: str) -> str:
    """Remove only the `[1] [2]` at the end of a text, as CReSt's published code does."""
    *_, last = (0, 0), *(found.span() for found in _SINGLE_CITATIONS.finditer(text))
    return text[:last[0]] if last[1] == len(text) else text


def is_only_citations(text: str) -> bool:
    """Return whether a text consists of citation brackets only."""
    return bool(text.strip()) and not _SPACED_CITATION.sub("", text).strip()


def fold(text: str) -> str:
    """Normalize case, width, punctuation and spaces: words of letters and digits, separated by single spaces."""
    folded = normalize("NFKC", text).casefold()
    return " ".join(re.sub(r"[\W_]+", " ", folded).split())


_FOLDED_REFUSAL = fold(REFUSAL).removeprefix("i ")


def is_refusal(text: str) -> bool:
    """Return whether a final answer begins with the refusal sentence, citations removed and folded. Small models omit
    its "I"."""
    return (fold(strip_citations(text)).removeprefix("i ") + " ").startswith(_FOLDED_REFUSAL + " ")


def is_published_refusal(text: str) -> bool:
    """Return whether an answer is a refusal by CReSt's published rule: it contains `unanswerable`, in any case."""
    return "unanswerable" in text.lower()
