"""Read tables, and sentences with numbers or dates, as typed tables that a program can ask about.

A typed table has entities, by name, and fields with one value per entity. In a table whose columns are periods, such as
a financial statement, the periods are the entities and the lines are the fields.
"""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import Literal

from ragbed.documents.numbers import find_values
from ragbed.documents.tables import SourceTable, find_tables
from ragbed.documents.types import Document, normalize
from ragbed.experiments.guests.construct.stages import Dropped
from ragbed.strategies.normalizing import with_values

Kind = Literal["number", "date", "text"]
Date = tuple[int, int, int]
SENTENCE, VALUE = "sentence", "value"
BLANK = "____"
_EMPTY = re.compile(r"|[-—–−.…]+|n\s?/?\s?a|nan|none|tb[ad]|unknown|해당\s?없음|없음|미정", re.IGNORECASE)
NUMBER = re.compile(r"(?P<before>[(\s]*(?:US\$|[$€£¥₩])?\s*[(\s]*[-−–]?\s*(?:US\$|[$€£¥₩])?\s*)"
                    r"(?P<digits>(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+)"
                    r"(?P<after>\s*\)?\s*%?\s*(?:[^\W\d_]{1,12})?\s*\)?)")
_NO_UNITS = frozenset({"st", "nd", "rd", "th", "월", "일", "년", "시", "위", "호", "차", "am", "pm"})
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_PERIOD = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_WHEN = re.compile(r"\b(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\b|[\d,\s년월일]", re.IGNORECASE)
_SCALE = re.compile(r"\(?\b(?:in )?(?:thousands?|millions?|billions?)\b[^)]*\)?|\([^()]*\)$", re.IGNORECASE)
_TOTALS = re.compile(r"(?:sub|grand )?totals?\b|sum\b|(?:합\s*계|총\s*계|소\s*계|총\s*합|계)$|평균$|average$",
                     re.IGNORECASE)
_ORDINAL = re.compile(r"\b(?:ranks?|ranking|picks?|rounds?|no|numbers?|years?|games?|weeks?|pos|position|place|seed|"
                      r"seasons?|episodes?|series|code|id|page|phone|longitude|latitude|geo)\b|#|"
                      r"순위|번호|연도|차수|회차|페이지", re.IGNORECASE)
_AVERAGE = re.compile(r"\b(?:average|avg|mean|rate|ratio|margin|yield|per|percent|percentage|pct)\b|%|평균|율|비율|률",
                      re.IGNORECASE)
_MAX_NAME, _MAX_TITLE, _MAX_ROWS = 60, 90, 40


@dataclass(frozen=True, slots=True)
class Value:
    """A value as written, with its place in the document's `plain` rendering. It is a number, a date, or neither."""

    text: str
    start: int
    end: int
    number: Decimal | None = None
    date: Date | None = None

    @property
    def empty(self) -> bool:
        return _EMPTY.fullmatch(self.text.strip()) is not None


@dataclass(frozen=True, slots=True)
class Field:
    """A field and its values, one per entity. Its kind is `text` also for a mix of kinds or units; `unit` is the text
    before and after the numbers."""

    name: str
    values: tuple[Value, ...]
    kind: Kind
    unit: tuple[str, str] = ("", "")

    @property
    def is_measure(self) -> bool:
        """Whether differences are meaningful: the field is not a rank, a year or an identifier."""
        return self.kind == "number" and not _ORDINAL.search(self.name)

    @property
    def is_summable(self) -> bool:
        """Whether sums and ratios are meaningful."""
        return self.is_measure and self.unit[1] != "%" and not _AVERAGE.search(self.name)


@dataclass(frozen=True, slots=True)
class TypedTable:
    """Entities and their fields, from one table or from the sentences of a passage.

    Attributes:
        title: what questions call it.
        start, end: its place in the document's `plain` rendering.
        key: title of the column that names the entities; empty for periods, SENTENCE for sentences.
        spans: for sentences, the place of each.
        scale: `thousand`, `million` or `billion`, if the header states it.
    """

    document: str
    title: str
    start: int
    end: int
    key: str
    entities: tuple[str, ...]
    fields: Mapping[str, Field]
    spans: tuple[tuple[int, int], ...] = ()
    scale: str = ""

    def at(self, name: str, entity: str) -> Value:
        """Return a value. Raises Dropped: it is empty."""
        value = self.fields[name].values[self.entities.index(entity)]
        if value.empty:
            raise Dropped("an empty cell")
        return value

    @property
    def is_comparable(self) -> bool:
        """Whether entities can be compared: the periods, if any, have the same length and kind."""
        return bool(self.key) or len({_WHEN.sub("", one).casefold() for one in self.entities}) == 1

    def fields_where(self, test: Callable[[Field], bool]) -> list[Field]:
        """Return the fields that pass a test, in order."""
        return [one for one in self.fields.values() if test(one)]

    def replace_values(self, read: Callable[[str, Value], str]) -> TypedTable:
        """Return the table with each value's text replaced by `read(entity, value)`, and parsed again."""
        return replace(self, fields={name: _infer_field(self.key, name, [
            replace(value, text=read(entity, value), number=None, date=None)
            for entity, value in zip(self.entities, one.values, strict=True)]) for name, one in self.fields.items()})


def parse_number(text: str) -> tuple[Decimal, tuple[str, str]] | None:
    """Return the number that a text is, and the text before and after it. Brackets mean a minus. Scale words are units:
    `3.2 million` is 3.2. Return None if it is not a number, or names instead of counts, as `3rd` does."""
    if (found := NUMBER.fullmatch(text.strip())) is None:
        return None
    before, after = found["before"], found["after"]
    unit = re.sub(r"[\s(\-−–]", "", before), re.sub(r"[\s)]", "", after)
    if before.count("(") != after.count(")") or before.count("(") > 1 or unit[1].casefold() in _NO_UNITS:
        return None
    number = Decimal(found["digits"].replace(",", ""))
    return -number if re.search(r"[(\-−–]", before) else number, unit


def _parse_date(text: str) -> Date | None:
    if _YEAR.fullmatch(text.strip()):
        return int(text), 0, 0
    found = find_values(text)
    if len(found) != 1 or found[0].date is None or found[0].token != with_values(text):
        return None
    year, month, day = found[0].date
    return (year, month or 0, day or 0) if year else None


def _infer_field(key: str, name: str, raw: Sequence[Value]) -> Field:
    """Return a field with the kind that all its values have; for sentences, each value has its own kind."""
    if key == SENTENCE:
        return Field(name, tuple(_infer_field("", name, [value]).values[0] for value in raw), "text")
    full = [value for value in raw if not value.empty]
    dates = {id(value): _parse_date(value.text) for value in full}
    if full and all(dates.values()) and len({tuple(map(bool, one)) for one in dates.values() if one}) == 1:
        return Field(name, tuple(replace(value, date=dates.get(id(value))) for value in raw), "date")
    numbers = {id(value): parse_number(value.text) for value in full}
    found = [one for one in numbers.values() if one]
    before, after = {unit[0] for _, unit in found} - {""}, {unit[1] for _, unit in found}
    if full and len(found) == len(full) and len(before) < 2 and len(after) == 1:
        return Field(name, tuple(replace(value, number=one[0] if (one := numbers.get(id(value))) else None)
                                 for value in raw), "number", ("".join(before), "".join(after)))
    return Field(name, tuple(raw), "text")


@lru_cache(maxsize=4096)
def read_tables(document: Document) -> tuple[TypedTable | str, ...]:
    """Return each table of a document as a typed table, or the reason why no question uses it."""
    return tuple(_read_table(document, table) for table in find_tables(document))


def _read_table(document: Document, table: SourceTable) -> TypedTable | str:
    if table.plain is None:
        return "the table is inside a list"
    if any("|" in cell.text for row in table.rows for cell in row.cells):
        return "a cell contains a vertical bar"
    if not 3 <= len(table.rows) <= _MAX_ROWS:
        return f"fewer than 3 rows or more than {_MAX_ROWS}"
    rows = [[Value(document.plain[slice(*cell.plain)], *cell.plain) if cell.plain else Value("", 0, 0)
             for cell in row.cells] for row in table.rows]
    scale = re.search(r"\b(thousand|million|billion)s?\b", f"{table.caption} {' '.join(table.header)}", re.IGNORECASE)
    made = TypedTable(document.id, _table_title(document, table.caption), *table.plain, "", (), {},
                      scale=scale[1].lower() if scale else "")
    periods = [place for place, name in enumerate(table.header) if place and _PERIOD.search(name)]
    return _read_statement(made, table.header, rows, periods) if len(periods) > 1 else _read_records(made,
                                                                                                     table.header, rows)


def _read_statement(made: TypedTable, header: Sequence[str], rows: Sequence[Sequence[Value]],
                    periods: Sequence[int]) -> TypedTable | str:
    """Read a table whose columns are periods: they are the entities, and the rows are the fields."""
    names = tuple(" ".join(_SCALE.sub(" ", header[place]).split()) or header[place] for place in periods)
    if len(set(names)) < len(names):
        return "two columns have the same name"
    if any(row[place].text for row in rows for place in range(1, len(header)) if place not in periods):
        return "a column is computed from others"
    if any(not row[0].text and any(row[place].text for place in periods) for row in rows):
        return "a row without a name"
    labels = Counter(_line_label(row[0].text) for row in rows)
    fields = [_infer_field("", row[0].text, [row[place] for place in periods]) for row in rows
              if labels[_line_label(row[0].text)] == 1 and not _TOTALS.match(row[0].text)]
    kept = {one.name: one for one in fields if one.kind == "number" and 2 < len(one.name) <= _MAX_NAME}
    return replace(made, entities=names, fields=kept) if len(kept) > 1 else "too few lines with numbers"


def _line_label(text: str) -> str:
    """Return a line's name without brackets: `Income` and `Income (loss)` are the same line of two sections."""
    return re.sub(r"\([^()]*\)", "", text).strip().casefold()


def _read_records(made: TypedTable, header: Sequence[str], rows: Sequence[Sequence[Value]]) -> TypedTable | str:
    """Read a table whose rows are entities, named by the first column of distinct texts or distinct dates."""
    columns = [_infer_field("", name, [row[place] for row in rows]) for place, name in enumerate(header)
               if name and header.count(name) == 1 and len(name) <= _MAX_NAME]
    keys = [one for kind in ("text", "date") for one in columns if one.kind == kind and _can_name_rows(one)]
    if not keys:
        return "no column names the rows"
    entities = tuple(value.text for value in keys[0].values)
    if any(map(_TOTALS.match, entities)):
        return "a row of totals, which an edit would make wrong"
    kept = {one.name: one for one in columns if one is not keys[0]}
    return replace(made, key=keys[0].name, entities=entities, fields=kept) if kept else "no column besides the names"


def _can_name_rows(one: Field) -> bool:
    """Return whether the values are distinct, and short names or dates."""
    texts = {value.text.casefold() for value in one.values if not value.empty and 1 < len(value.text) <= _MAX_NAME}
    return len(texts) == len(one.values) and (one.kind == "date" or all(re.search(r"[^\W\d_]", text) for text in texts))


def _table_title(document: Document, caption: str) -> str:
    """Return what questions call a table: the document's title and the caption. If the title says nothing, use the file
    name."""
    own = not document.pages and re.search(r"[^\W\d_]{3}", document.title)  # all filings have the same title
    title = re.sub(r"\.\w{2,5}$", "", document.title if own else document.source.rpartition("/")[2])
    adds = caption and caption[0] not in "(*" and caption.casefold() not in title.casefold()
    joined = f"{title}, {caption.rstrip(':')}" if adds else title
    return joined if len(joined) <= _MAX_TITLE else title[:_MAX_TITLE]


_SENTENCE = re.compile(r"(?<=[a-z0-9%)”][.!?])(?<!Ms\.|Mr\.|Dr\.|Co\.|No\.)(?<!Inc\.|Mrs\.|Ltd\.)\s+(?=[A-Z“])|"
                       r"(?<=다\.)\s+|\n\n+")
_PART = re.compile(r"[\d.,'’(/-]____|____(?:[.,]?\d|\))")
_POINTS = re.compile(r"(?:This|That|These|Those|It|Its|They|Their|He|She|His|Her|Such|However|In addition|Also|"
                     r"The (?:increase|decrease|company)|이|그|또한|따라서|특히|하지만)\b")
_MIN_SENTENCE, _MAX_SENTENCE = 40, 260


@lru_cache(maxsize=1)
def _on_one_line(document: Document) -> str:
    return document.plain.replace("\n", " ")


@lru_cache(maxsize=4096)
def read_sentences(document: Document, start: int, end: int) -> TypedTable:
    """Return the sentences of a passage that contain a date or a number of several digits, and that are unique in the
    document. Each is named by its text with the first of these blanked out."""
    kept: dict[str, tuple[Value, tuple[int, int]]] = {}
    whole = _on_one_line(document)
    for at, text in _sentences(document.plain, start, end):
        if normalize("NFKC", text) != text or _POINTS.match(text):
            continue
        found = {text[one.start:one.end]: one for one in find_values(text)}
        token = next((token for token, one in found.items() if text.count(token) == 1 and (
            _parse_date(token) if one.date else is_distinctive(token) and parse_number(token))), None)
        if token and not _PART.search(masked := text.replace(token, BLANK)) and whole.count(
                max(masked.split(BLANK), key=len)) == 1:
            start_of = at + found[token].start
            kept[masked] = Value(token, start_of, start_of + len(token)), (at, at + len(text))
    fields = {VALUE: _infer_field(SENTENCE, VALUE, [value for value, _ in kept.values()])}
    return TypedTable(document.id, _table_title(document, ""), start, end, SENTENCE, tuple(kept), fields,
                      tuple(span for _, span in kept.values()))


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    at = start
    for stop in [*(match.span() for match in _SENTENCE.finditer(text, start, end)), (end, end)]:
        sentence = text[at:stop[0]].replace("\n", " ")
        if _MIN_SENTENCE <= len(sentence) <= _MAX_SENTENCE and sentence[-1] in ".。" and (
                sentence[0].isupper() or "가" <= sentence[0] <= "힣") and "|" not in sentence:
            yield at, sentence
        at = stop[1]


def is_distinctive(text: str) -> bool:
    """Return whether a value has enough digits to be recognised elsewhere: three, and not a year."""
    return sum(map(str.isdecimal, text)) >= 3 and not _YEAR.fullmatch(text.strip())
