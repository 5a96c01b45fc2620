"""Divide a PDF page into columns of prose, in the order in which people read them."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from ragbed.documents.parsers.pdf_lines import PdfLine, bounding_box
from ragbed.documents.parsers.pdf_rows import Extent, find_table_regions, make_rows, merge_extents

_GUTTER = 7.0  # points
_WHITE = 1.6  # heights of a line
_SHRINK = 0.2  # of a line's height, since the boxes of neighbouring lines overlap
_LINES = 3
_PROSE = 15  # characters of a line
_LONG = 40
_FULL = 0.45  # of the width of the column
_WRAPPED = 0.3  # of the lines


@dataclass(slots=True)
class _Band:
    """Lines between two heights of the page. `cuts`: the gaps between its columns."""

    lines: list[PdfLine]
    bottom: float
    extents: list[Extent] = field(default_factory=list)
    cuts: list[Extent] = field(default_factory=list)

    def gaps(self) -> list[Extent]:
        return [(left[1], right[0]) for left, right in zip(self.extents, self.extents[1:], strict=False)]


def split_columns(lines: Sequence[PdfLine]) -> list[list[PdfLine]]:
    """Return the lines of a page, or of a column, by regions in reading order.
    
    A region is a column of prose, or what lies across columns. Tables, forms and single columns stay in one region.
    """
    bands = _bands(lines)
    if not any(band.extents[1:] for band in bands):
        return [list(lines)] if lines else []
    for band in bands:
        band.cuts = _cuts(band)
    _spread_cuts(bands)
    regions: list[list[PdfLine]] = []
    joined = False
    for band in bands:
        if band.cuts:
            for column in _divided(band.lines, band.cuts):
                regions += split_columns(column) if len(column) < len(lines) else [column]
        elif joined:
            regions[-1] += band.lines
        else:
            regions.append(list(band.lines))
        joined = not band.cuts
    return regions


def _bands(lines: Sequence[PdfLine]) -> list[_Band]:
    """Cut at heights where no gap between columns goes on, or where the page is white."""
    bands: list[_Band] = []
    for strip in _strips(lines):
        last = bands[-1] if bands else None
        extents = merge_extents([*(last.extents if last else ()), *strip.extents], -_GUTTER)
        fits = last and (len(extents) > 1 or len(last.extents) == len(strip.extents) == 1)
        height = median(line.height for line in strip.lines)
        if last and fits and min(line.box[1] for line in strip.lines) - last.bottom < _WHITE * height:
            last.lines += strip.lines
            last.bottom, last.extents = max(last.bottom, strip.bottom), extents
        else:
            bands.append(strip)
    return bands


def _strips(lines: Sequence[PdfLine]) -> list[_Band]:
    strips: list[_Band] = []
    floor = 0.0
    for line in sorted(lines, key=lambda line: line.box[1]):
        if strips and line.box[1] + _SHRINK * line.height < floor:
            strips[-1].lines.append(line)
            strips[-1].bottom = max(strips[-1].bottom, line.box[3])
        else:
            strips.append(_Band([line], line.box[3]))
            floor = 0.0
        floor = max(floor, line.box[3] - _SHRINK * line.height)
    for strip in strips:
        strip.extents = merge_extents(((line.box[0], line.box[2]) for line in strip.lines), -_GUTTER)
    return strips


def _divided(lines: Sequence[PdfLine], cuts: Sequence[Extent]) -> list[list[PdfLine]]:
    edges = [cut[1] - 1 for cut in cuts]
    columns: list[list[PdfLine]] = [[] for _ in range(len(cuts) + 1)]
    for line in lines:
        columns[sum(line.box[0] >= edge for edge in edges)].append(line)
    return [column for column in columns if column]


def _cuts(band: _Band) -> list[Extent]:
    """Return the gaps between columns of prose, or between prose and a table or list next to it."""
    gaps = band.gaps()
    if not gaps:
        return []
    parts = _divided(band.lines, gaps)
    prose = [_is_prose(part) for part in parts]
    cuts = []
    for index, gap in enumerate(gaps):
        left, right = parts[index], parts[index + 1]
        if prose[index] and prose[index + 1]:
            good = any(_is_wrapped(part) or median(len(line.text) for line in part) > _LONG for part in (left, right))
        elif prose[index] or prose[index + 1]:
            run = range(index + 1, len(parts)) if prose[index] else range(index, -1, -1)
            aside = []
            for at in run:
                if prose[at]:
                    break
                aside += parts[at]
            good = _is_wrapped(left if prose[index] else right) and _is_table(aside)
        else:
            good = _drawn_apart(left, right)
        if good:
            cuts.append(gap)
    return cuts


def _is_prose(column: Sequence[PdfLine]) -> bool:
    """Return whether a column has prose: lines that are long and fill its width. It may have tables too."""
    box = bounding_box(line.box for line in column)
    lines = [row.cells[0] for row in make_rows(column) if len(row.cells) == 1]
    letters = sum(sum(map(str.isalpha, line.text)) for line in lines)
    return (len(lines) >= max(_LINES, len(column) / 5) and median(len(line.text) for line in lines) >= _PROSE
            and median(line.box[2] - line.box[0] for line in lines) >= _FULL * (box[2] - box[0])
            and letters > 0.6 * sum(len(line.text) for line in lines))


def _is_wrapped(lines: Sequence[PdfLine]) -> bool:
    """Return whether many lines begin within a sentence."""
    begins = [line.text[0] for line in lines if line.text[0].isalpha()]
    return sum(not character.isupper() for character in begins) > _WRAPPED * len(begins)


def _is_table(lines: Sequence[PdfLine]) -> bool:
    rows = make_rows(lines)
    labels = sum(row.cells[0].text[0].isalpha() for row in rows)
    return bool(find_table_regions(rows)) and labels * 2 > len(rows)


def _drawn_apart(left: Sequence[PdfLine], right: Sequence[PdfLine]) -> bool:
    """Return whether two lists were drawn one after the other, and so are not the columns of one table."""
    return (min(len(left), len(right)) >= _LINES and not find_table_regions(make_rows([*left, *right]))
            and max(line.block for line in left) < min(line.block for line in right))


def _spread_cuts(bands: list[_Band]) -> None:
    """Extend the columns of a band to short bands above and below that keep its gaps free."""
    for order in (bands, bands[::-1]):
        for last, band, after in zip(order, order[1:], [*order[2:], None], strict=False):
            if last.cuts and not band.cuts and len(free := _common(last.cuts, band.extents)) == len(last.cuts) and (
                    _keeps(last, band, after, order is bands)):
                band.cuts = free
    index = 1
    while index < len(bands):
        above, below = bands[index - 1], bands[index]
        shared = [cut for cut in _common(above.cuts, below.extents) if _common([cut], above.extents)]
        if above.cuts and below.cuts and len(shared) == len(above.cuts) == len(below.cuts):
            above.lines += below.lines
            above.cuts = shared
            above.extents = merge_extents([*above.extents, *below.extents], -_GUTTER)
            del bands[index]
        else:
            index += 1


def _common(cuts: Sequence[Extent], extents: Sequence[Extent]) -> list[Extent]:
    """Return the part of each gap that the extents leave free."""
    free = []
    for low, high in cuts:
        low = max([low, *(x1 for x0, x1 in extents if (x0 + x1) / 2 < (low + high) / 2)])
        high = min([high, *(x0 for x0, x1 in extents if (x0 + x1) / 2 >= (low + high) / 2)])
        if high - low >= _GUTTER:
            free.append((low, high))
    return free


def _keeps(last: _Band, band: _Band, after: _Band | None, below: bool) -> bool:
    """Return whether a band next to columns has the same columns: no table crosses them, and the band is not the
    heading of the text below."""
    sides = _divided(band.lines, last.cuts)
    if len(sides) > 1:
        return not find_table_regions(make_rows(band.lines)) or all(map(_is_table, sides))
    if below:
        if not any(map(_is_prose, _divided(last.lines, last.cuts))):
            return False
        heading = band.lines[-1].bold or band.lines[-1].size > 1.1 * median(line.size for line in last.lines)
        return not heading or after is None or bool(after.cuts)
    if band.lines[0].box[0] < last.cuts[0][0]:
        return band.lines[0].size <= max(line.size for line in last.lines)
    return after is not None and len(_divided(after.lines, last.cuts)) > 1
