"""Read a model's final reply: tags, citations (as in CReSt's Figures 4 to 8), and whether it refuses."""
from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from typing import Literal, cast

from ragbed.documents.types import normalize
from ragbed.guests import entries, load

_ANSWER = re.compile(r"<answer>", re.IGNORECASE)
_ANSWER_END = re.compile(r"</answer>", re.IGNORECASE)
_THINK = re.compile(r"<(/?)think>", re.IGNORECASE)
_THINKING = re.compile(r"<(thinking|think)>.*?(</\1>|\Z)", re.IGNORECASE | re.DOTALL)
_STRAY = re.compile(r"</?(thinking|think|answer)>", re.IGNORECASE)
_PLAIN_CITATION = r"\[\s*\d{1,4}(?:\s*[-–,;]\s*\d{1,4}){0,50}\s*\]"
# The lookbehind keeps this linear. Without it, every space of a long run would be tried as a start.
_SPACED_CITATION = re.compile(r"(?<!\s)\s*" + _PLAIN_CITATION)
# Possessive and with a lookbehind, so that it takes linear time.
_SINGLE_CITATIONS = re.compile(r"(?<!\s)(?:\s*+\[\d++\],?+)++\s*+")
_MAX_RANGE = 100
_DASH = "[-\u2010-\u2015\u2212~\u301c\uff0d\uff5e]"
_SOURCE = (r"(?:(?:documents?|docs?|sources?|passages?|references?|refs?|chunks?|contexts?|excerpts?|citations?|cite"
           r"|footnotes?|snippets?|dokumente?|quellen?|documentos?|fuentes?|fontes?|документы?|источники?"
           r"|문서|출처|자료|文[档檔書书件献獻]|[来來]源|出典|[资資]料)"
           r"(?:[ _-]?(?:no\.|nr\.|№))?\.?[ \t]?[:：#_-]?[ \t]?)")
_NUMBER = rf"(?:{_SOURCE}?\d{{1,4}})"
_JOIN = rf"(?:{_DASH}|to|through|bis|[,;，；、]\s?(?:and|&)?|&|\+|/|and|und|et|and|y|e|и|和|与|및|と)"
_SEVERAL = rf"{_NUMBER}(?:\s{{0,4}}{_JOIN}\s{{0,4}}{_NUMBER}){{0,50}}"
_DETAIL = (r"(?:[:：]\d{1,3})?(?:\s?[†‡][^\[\]【】\n]{0,200}"
           r"|[,:]?\s?(?:pp?\.|pages?|S\.|§|sections?|sec\.|lines?|[L¶])\s?\d[\d–-]{0,10})?")
_TITLED = rf"{_SOURCE}\d{{1,4}}\s?[:：,|–-]\s?[^\[\]\n]{{1,120}}"
_INNER = rf"\s{{0,4}}(?:[\^#]?{_SEVERAL}{_DETAIL}|{_TITLED})\s{{0,4}}"
_CITATION = re.compile(
    rf"\\?[\[［【〔]\[?{_INNER}\\?[\]］】〕]\]?(?:\((?:https?://|#|\.{{0,2}}/|file:)[^\s()]{{0,500}}\))?"
    rf"|[(（]\s?(?:see |siehe |voir )?{_SOURCE}\d{{1,4}}(?:\s{{0,4}}{_JOIN}\s{{0,4}}{_NUMBER}){{0,50}}\s?[)）]"
    rf"|<sup>\s?\[?{_SEVERAL}\]?\s?</sup>"
    r"|(?P<raised>[⁰¹²³⁴-⁹]{1,3}(?:[,⁻˒ʼ][⁰¹²³⁴-⁹]{1,3}){0,20})(?![\w⁺⁻⁰¹²³⁴-⁹⁄])", re.IGNORECASE)
_RANGE = re.compile(rf"(\d+)(?:\s*(?:{_DASH}|to|through|bis)\s*{_SOURCE}?(\d+))?", re.IGNORECASE)
_DETAILS = re.compile(rf"(?<=\d){_DETAIL}\s*\\?\]*[\]］】〕].*\Z|(?<=\d)\s?[:：|](?!\s?\d).*\Z", re.DOTALL)
_YEAR = range(1500, 2100)
_INDEXED = re.compile(r"(?<!\d )(?<!\d)(?<![^\W_])(?:[a-z]|[A-Za-z]\w{0,40}_\w{0,40}|_\w{1,40})\Z")
_UNITS = frozenset(("km", "cm", "mm", "dm", "nm", "µm", "μm", "ft", "in", "yd", "mi", "sq", "sec", "mc", "sin", "cos",
                    "tan", "log"))
_BEFORE = re.compile(r"(?:([^\W\d_]+)|(\d[\d.,]*))[)\]]?\Z")
_LOOK_BACK = 90
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7a3]")


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
    if not said or not after or not is_only_citations(after[0]):
        return said, True
    # Other marks are written as `[1]`, which as-published scoring knows too.
    plain = not _SPACED_CITATION.sub("", after[0]).strip()
    return f"{said} {after[0] if plain else ''.join(f'[{number}]' for number in read_citations(after[0]))}", True


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


@lru_cache(64)  # the text of an answer is read several times
def find_citations(text: str) -> tuple[tuple[int, int, tuple[int, ...]], ...]:
    """Return start, end and cited numbers of each mark, in code points: `[1]`, `[1, 2]`, `[1-3]`, `[^1]`, `[Doc 1]`,
    `【1†source】`, `\\[1\\]`, `[1](https://...)`, `(source 1)` and raised numbers. A range that runs backwards or spans
    more than 100 numbers gives only its two ends. Years (`[1999]`), indices (`a[1]`) and exponents (`m²`) are no marks.
    """
    marks = []
    for mark in _CITATION.finditer(text):
        raised = mark["raised"] is not None
        before = text[max(0, mark.start() - _LOOK_BACK):mark.start()]
        if _is_exponent(before, mark[0]) if raised else mark[0][0] == "[" and _INDEXED.search(before):
            continue
        seen: dict[int, None] = {}
        said = normalize("NFKC", mark[0].replace("⁻", "-")) if raised else mark[0].partition("](")[0]
        for first, last in _RANGE.findall(said if raised else _DETAILS.sub("", said)):
            low, high = int(first), int(last or first)
            numbers = range(low, high + 1) if low <= high <= low + _MAX_RANGE else (low, high)
            seen.update(dict.fromkeys(numbers))
        if not all(number in _YEAR for number in seen):
            marks.append((*mark.span(), tuple(seen)))
    return tuple(marks)


def _is_exponent(before: str, raised: str) -> bool:
    """Return whether a raised number is part of a unit, a power or a formula, as in `m²`, `10⁶` and `s⁻¹`."""
    if before[-1:] in ("⁻", "⁺", "⁄"):
        return True
    found = _BEFORE.search(before)
    if found is None or raised == "¹":
        return False
    word, number = found.groups()
    if number is not None:
        return len(number.strip(".,")) <= 3
    return (len(word) == 1 and not _UNSPACED.match(word)) or word.lower() in _UNITS


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


def strip_citations(text: str, published: bool = False) -> str:
    """Remove citation marks and the space before each. A text that consists of marks only stays, such as the answer
    `[3, 7]`. As-published scoring removes only plain numbers in square brackets."""
    return (_SPACED_CITATION.sub("", text) if published else _text_besides_citations(text)).strip() or text.strip()


def _text_besides_citations(text: str) -> str:
    pieces, at = [], 0
    for start, end, _ in find_citations(text):
        pieces.append(text[at:start].rstrip())
        at = end
    return "".join([*pieces, text[at:]]).strip()


def strip_last_citations(text: str) -> str:
    """Remove only the `[1] [2]` at the end of a text, as CReSt's published code does."""
    *_, last = (0, 0), *(found.span() for found in _SINGLE_CITATIONS.finditer(text))
    return text[:last[0]] if last[1] == len(text) else text


def is_only_citations(text: str) -> bool:
    """Return whether a text consists of citation marks only."""
    return bool(text.strip()) and not _text_besides_citations(text)


_INVISIBLE = re.compile("[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe0e\ufe0f\ufeff]")


def remove_invisible(text: str) -> str:
    """Remove soft hyphens, zero-width characters and marks of the writing direction."""
    return text if text.isascii() else _INVISIBLE.sub("", text)


def fold(text: str) -> str:
    """Normalize case, width, punctuation and spaces: words of letters and digits, separated by single spaces."""
    folded = normalize("NFKC", remove_invisible(text)).casefold()
    return " ".join(re.sub(r"[\W_]+", " ", folded).split())


Reading = Literal["refusal", "answer", "open"]
Language = Literal["english", "auto"]  # of the sentence that refuses; `auto` is the language of the question

_FILE = resources.files("ragbed.strategies").joinpath("prompts", "refusals.md")
SENTENCES: Mapping[str, str] = dict(line.split(": ", 1) for line in _FILE.read_text(encoding="utf-8").splitlines())
REFUSAL = SENTENCES["english"]
REWORDED = "reworded_refusal"
_FOLDED = tuple(fold(one).removeprefix("i ") + " " for one in SENTENCES.values())


def is_refusal(text: str) -> bool:
    """Return whether a final answer refuses; see `read_refusal`."""
    return read_refusal(text) == "refusal"


@lru_cache(maxsize=4_096)
def read_refusal(text: str) -> Reading:
    """Classify a final answer by the rules of the guest `refusals`; `open` if they cannot decide. Without that guest,
    only the refusal sentence of the prompt counts as a refusal."""
    reader = entries("refusal").get("read")
    if reader is not None:
        return cast(Reading, load(reader)(text))
    return "refusal" if begins_with_refusal(text) else "answer"


def is_published_refusal(text: str) -> bool:
    """Return whether an answer is a refusal by CReSt's published rule: it contains `unanswerable`, in any case."""
    return "unanswerable" in text.lower()


def begins_with_refusal(text: str) -> bool:
    """Return whether a final answer begins with the refusal sentence of the prompt. Citations, case and punctuation do
    not count, and neither does the "I", which small models omit."""
    return (fold(strip_citations(text)).removeprefix("i ") + " ").startswith(_FOLDED)


def refusal_notes(text: str) -> tuple[str, ...]:
    """Return the note `reworded_refusal` for a refusal that does not begin with the refusal sentence of the prompt."""
    return (REWORDED,) if is_refusal(text) and not begins_with_refusal(text) else ()
