"""Form paragraphs, headings, list items and running titles from the lines of a PDF page."""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ragbed.documents.parsers.pdf_lines import BROKEN, Box, PdfLine, bounding_box
from ragbed.documents.parsers.pdf_rows import make_rows


def _set_of(words: str) -> frozenset[str]:
    return frozenset(words.split())


_BULLET = re.compile(r"^[•●▪■◦○‣∙·\uf0b7\uf0a7➢✓][\s]*(?=\S)")
_ITEM = re.compile(r"(?:\d{1,2}[.)]|\(?[a-z0-9]{1,3}\)|[가나다라마바사아자차카타파하][.)]|[①-⑳*※])\s")
_BROKEN = re.compile(rf"([^\W\d_]+(?:[-‐][^\W\d_]+)*)([-‐]|{BROKEN})$")
_RANGE = re.compile(r"\d[-‐‑–]$")
_HYPHENS = ("-", "‐", BROKEN)
_HEAD = re.compile(r"[^\W_]+")
_AND = _set_of("and or to und oder bis et ou y o e")
_HANGUL = re.compile(r"[가-힣]$")
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff、。]$")
_DIGITS = re.compile(r"\d+")
_WORD = re.compile(r"[^\W\d_]+(?:[-‐][^\W\d_]+)*")
# What decides about a hyphen if the document has the word nowhere else.
_COMPOUND = _set_of("""well self long short high low large small full half real cross non quasi semi few one two three
    four five zero first second third single double left right open end year so user time fine""")
_NEVER = _set_of("""with some any every how what when where who there here more other further there never none it our
    your my him her them""")
_ENDINGS = _set_of("""able ably less ness ful ally ward wards wise ship age ages ate ant ment ments ed er ers est ion
    ions ing ings ling ly ity ize ized ise ised ish fold self form over under light""")
_NEAR = 40  # groups that a line may continue
_INDENT = 30.0  # points
_MARGIN = 0.075
_FAR = 0.12
_OFTEN = 4
_HEADING_LENGTH = 200


@dataclass(frozen=True, slots=True)
class PdfParagraph:
    """Lines that belong together; `kind` is `heading1` to `heading3`, `paragraph`, `list`, `header` or `footer`."""

    text: str
    kind: str
    size: float
    box: Box


@dataclass(frozen=True, slots=True)
class LayoutHabits:
    """Layout properties of a whole document."""

    body: float  # font size of most text, in points
    repeated: frozenset[str]  # texts at the edge of several pages, digits removed
    running: frozenset[tuple[str, int]]  # repeated texts near the upper edge, with their height on the page
    words: Counter[str]  # how often each word occurs within a line, in lower case
    spaces_kept: bool  # whether Korean lines end with a space after a complete word

    @classmethod
    def of(cls, pages: Sequence[tuple[float, Sequence[PdfLine]]]) -> LayoutHabits:
        """Compute the habits from pages, each given by its height and lines."""
        sizes: Counter[float] = Counter()
        edges: Counter[str] = Counter()
        running: Counter[tuple[str, int]] = Counter()
        words: Counter[str] = Counter()
        korean: list[bool] = []
        for height, lines in pages:
            edges.update({_folded(line.text) for line in lines if _edge(line.box, height)})
            running.update({_placed(line.text, line.box) for line in lines if line.box[3] < _FAR * height})
            broken = False
            for line in lines:
                sizes[round(line.size, 1)] += len(line.text)
                found = _WORD.findall(line.text.lower())
                cut = is_broken(line.text)
                words.update(found[broken:len(found) - cut])
                broken = cut
                if _HANGUL.search(line.text):
                    korean.append(line.spaced)
        often = max(2, len(pages) // 10)
        return cls(sizes.most_common(1)[0][0] if sizes else 0.0,
                   frozenset(text for text, count in edges.items() if count >= often),
                   frozenset(placed for placed, count in running.items() if count >= max(_OFTEN, often)),
                   words, sum(korean) * 5 > len(korean))


    def edge(self, text: str, box: Box, height: float) -> str:
        """Return `header` or `footer` for a running title or page number; empty for other text."""
        edge = _edge(box, height)
        if edge and (_folded(text) in self.repeated or _folded(text).strip(" -–—") == "#"):
            return edge
        return "header" if box[3] < _FAR * height and _placed(text, box) in self.running else ""


def _placed(text: str, box: Box) -> tuple[str, int]:
    return _folded(text), round(box[1])


def _folded(text: str) -> str:
    return _DIGITS.sub("#", text)


def _edge(box: Box, height: float) -> str:
    if box[3] < _MARGIN * height:
        return "header"
    return "footer" if box[1] > (1 - _MARGIN) * height else ""


def make_paragraphs(lines: Iterable[PdfLine], habits: LayoutHabits, height: float) -> list[PdfParagraph]:
    """Form paragraphs from the lines of one block, in reading order."""
    groups: list[list[PdfLine]] = []
    for line in lines:
        if groups and _continues(groups[-1][-1], line):
            groups[-1].append(line)
        else:
            groups.append([line])
    made = []
    for group in groups:
        text, box = join_lines(group, habits), bounding_box(line.box for line in group)
        made.append(PdfParagraph(_BULLET.sub("", text), habits.edge(text, box, height) or _kind(text, group, habits),
                                 max(group, key=lambda line: len(line.text)).size, box))
    return made


def group_lines(lines: Sequence[PdfLine]) -> list[list[PdfLine]]:
    """Group the lines of a region from top to bottom by MuPDF's blocks, which may be drawn in any order."""
    groups: list[list[PdfLine]] = []
    last: dict[int, list[PdfLine]] = {}
    for line in (cell for row in make_rows(lines) for cell in row.cells):
        group = last.get(line.block)
        if group is None or line.box[1] - group[-1].box[3] > line.height:
            group = next((one for one in groups[-_NEAR:] if _follows(one[-1], line)), None)
        if group is None:
            groups.append(group := [])
        group.append(line)
        last[line.block] = group
    return groups


def _follows(above: PdfLine, line: PdfLine) -> bool:
    """Return whether a line of another block goes on below: it was drawn before, or begins within a sentence."""
    within = line.text[0].islower() or is_broken(above.text)
    indent = line.box[0] - above.box[0]
    near = -0.5 < (line.box[1] - above.box[3]) / line.height < 0.5 and -2 < indent < (_INDENT if within else 2)
    return near and (within or above.block > line.block)


def _continues(above: PdfLine, line: PdfLine) -> bool:
    if abs(above.box[1] - line.box[1]) < 0.5 * line.height:  # on the same line
        return True
    return (abs(above.size - line.size) < 0.6 and above.bold == line.bold and not _BULLET.match(line.text)
            and not _ITEM.match(line.text) and line.box[1] - above.box[3] < 0.8 * line.height)


def _kind(text: str, lines: list[PdfLine], habits: LayoutHabits) -> str:
    if _BULLET.match(text):
        return "list"
    ratio = max(line.size for line in lines) / habits.body if habits.body else 1.0
    if len(text) > _HEADING_LENGTH or len(lines) > 4 or sum(map(str.isalpha, text)) < 2:
        return "paragraph"
    if ratio >= 1.5:
        return "heading1"
    if ratio >= 1.17:
        return "heading2"
    bold = all(line.bold for line in lines)
    return "heading3" if bold and ratio > 0.95 and not text.endswith((".", ",", ";")) else "paragraph"


def join_lines(lines: Sequence[PdfLine], habits: LayoutHabits) -> str:
    """Join lines in reading order into running text."""
    text = lines[0].text if lines else ""
    for above, line in pairwise(lines):
        below, space = line.text, " "
        if is_broken(text) and _goes_on(below):
            text, space = join_broken(text, below, habits), ""
        elif _RANGE.search(text) and _goes_on(below):  # 2019-2020, 24-month
            space = ""
        elif not above.spaced and (_IDEOGRAPH.search(text) or (
                _HANGUL.search(text) and habits.spaces_kept and "가" <= below[:1] <= "힣")):
            space = ""  # Korean words may break anywhere, so the space in the file decides
        text = f"{text}{space}{below}"
    return " ".join(text.split())


def is_broken(text: str) -> bool:
    """Return whether a text ends with a hyphen."""
    return text[-1:] in _HYPHENS and _BROKEN.search(text) is not None


def belongs(text: str, below: str, habits: LayoutHabits, begins: bool) -> bool:
    """Return whether the text below completes the last word. It does if the document has the joined word elsewhere, or
    if the text `begins` a column with a word that is rare in the document."""
    cut, head = _BROKEN.search(text), _HEAD.match(below)
    if cut is None or head is None:
        return False
    known = any(habits.words[f"{cut[1]}{hyphen}{head[0]}".lower()] for hyphen in ("", "-"))
    return known or (begins and habits.words[head[0].lower()] <= 1)


def _goes_on(below: str) -> bool:
    head = _HEAD.match(below)
    return head is not None and head[0] not in _AND


def join_broken(text: str, below: str, habits: LayoutHabits) -> str:
    """Return a text that ends with a hyphen, without the hyphen if it only divides a word.
    
    The other occurrences of the word in the document decide: `well-known` keeps its hyphen, `particu-larly` does not.
    """
    cut, head = _BROKEN.search(text), _HEAD.match(below)
    if cut is None or head is None:
        return text
    tail, rest = cut[1].lower(), head[0].lower()
    if cut[2] == BROKEN:
        return text[:-1]
    if head[0].isdigit() or (head[0][:1].isupper() and not cut[1].isupper()):
        return text
    whole, parted = habits.words[tail + rest], habits.words[f"{tail}-{rest}"]
    last = re.split("[-‐]", tail)[-1]
    if len(last) == 1:  # nobody divides a word after its first letter
        joined = False
    elif whole or parted:
        joined = whole >= parted
    elif last in _NEVER or rest in _ENDINGS:
        joined = True
    else:
        joined = not (last in _COMPOUND or (len(last) > 2 and habits.words[last] and habits.words[rest])
                      or (last != tail and len(last) < 4))
    return text[:-1] if joined else text
