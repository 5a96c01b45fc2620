"""Understand the columns of a table of questions, and turn its rows into your own questions."""
from __future__ import annotations

import ast
import datetime
import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from ragbed.documents.errors import BenchmarkError, did_you_mean
from ragbed.documents.json import loads
from ragbed.documents.rows import Row

Role = Literal["question", "answer", "answerable", "unanswerable", "document", "page", "evidence", "context", "id",
               "tags"]
ROLES: tuple[Role, ...] = get_args(Role)
Empty = Literal["refuse", "unanswerable", "ungraded"]
_NOTHING = frozenset({"", "n/a", "na", "#n/a", "nan", "none", "null", "-", "--", "–", "—", "?", "unanswerable"})
_FLAGS = {word: flag for flag, words in ((True, "true yes y 1 x ja oui sí si answerable 예"),
                                         (False, "false no n 0 nein non unanswerable 아니오"))
          for word in words.split()}
_PAGE = re.compile(r"(?P<name>.*?\S)[\s,;:#(]+(?:page|pages|pp?\.|seite|s\.|p[áa]gina)[\s=]*(?P<page>\d{1,6})\)?",
                   re.IGNORECASE)
_PAGES = re.compile(r"(?:page|pages|pp?|seiten?|s)?[.\s]*(\d{1,6})(?:\.0)?(?:\s*[-–]\s*(\d{1,6}))?", re.IGNORECASE)
_RANGE = 50  # pages
_MAX_LIST = 1 << 22  # characters
_NO_COMMA = re.compile(r"""['"]\s+['"]""")
_KEYS = ("text", "value", "answer", "answers", "aliases", "content", "page_content", "question", "query", "input")


@cache
def _names() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("columns.toml").read_text(encoding="utf-8"))


def squeeze(name: str) -> str:
    """Return a column's name in lower case, without spaces and marks."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", name).casefold())


@dataclass(frozen=True)
class Columns:
    """What the columns of a file mean.

    Attributes:
        roles: the columns of each role.
        tags: columns that become a tag of their name.
        own: columns with fields of your own questions, by field.
        ignored: all other columns.
    """

    roles: Mapping[str, Sequence[str]]
    tags: Sequence[str] = ()
    own: Mapping[str, str] = field(default_factory=dict)
    ignored: Sequence[str] = ()

    @classmethod
    def of(cls, names: Sequence[str], given: Mapping[Role, list[str]], where: str) -> Columns:
        """Understand columns by the names that settings give, otherwise by their usual names. Raises BenchmarkError if
        a given column is missing, no column is the question, or two columns could be the same."""
        for column in (one for some in given.values() for one in some):
            if column not in names:
                raise BenchmarkError(f"{where}: has no column {column!r}; {did_you_mean(column, names)}the columns are "
                                     f"{_list(names)}")
        taken = {column for role, some in given.items() for column in some if role != "tags"}
        free = {name: squeeze(name) for name in names if name not in taken and name.strip()}
        own = {word: name for name, key in free.items() for word in _names()["own"] if key == squeeze(word)}
        free = {name: key for name, key in free.items() if name not in own.values()}
        roles = {role: given[role] if role in given else _find(role, free, where) for role in ROLES}
        if not roles["question"]:
            raise BenchmarkError(f"{where}: {_no_question(names)}")
        if not roles["document"]:
            roles["page"] = []
        used = {column for some in roles.values() for column in some} | set(own.values())
        tags = [name for name, key in free.items() if name not in used and key in _names()["named_tags"]]
        return cls({role: some for role, some in roles.items() if some}, tags, own,
                   [name for name in names if name.strip() and name not in {*used, *tags}])

    def describe(self) -> str:
        """Return what was understood, as in `question <- Frage, answer <- Antwort; ignored columns: Notiz`."""
        parts = [f"{role} <- {' + '.join(some)}" for role, some in self.roles.items()]
        parts += [f"{field} <- {name}" for field, name in self.own.items()]
        parts += [f"tag <- {name}" for name in self.tags]
        ignored = f"; ignored columns: {', '.join(self.ignored)}" if self.ignored else ""
        return ", ".join(parts) + ignored

    def convert(self, row: Row, empty: Empty) -> dict[str, Any]:
        """Return the row as a record of your own questions, with `evidence` and `context` as lists of texts. Raises
        BenchmarkError with file, line and column if a cell is not what its column should hold."""
        asked = self.texts(row, "question")
        record: dict[str, Any] = {"question": " ".join(asked) if len(asked) < 2 else row.fail(
            self.roles["question"][0], "one question", asked)}
        if id := "".join(self.texts(row, "id")[:1]):
            record["id"] = id
        record |= {name: _structure(row.fields.get(column)) for name, column in self.own.items()
                   if row.fields.get(column) not in (None, "")}
        flag = self._answerable(row)
        answers = self._answers(row)
        if flag is None and not answers and any(row.fields.get(one, row) is not row
                                                for one in self.roles.get("answer", ())):
            if empty == "refuse":
                raise BenchmarkError(
                    f"{row.file}, line {row.line}, column {self.roles['answer'][0]}: there is no answer; if the "
                    "documents have none, write no in a column `answerable`, or set empty_answer: unanswerable (or: "
                    "ungraded) for all such rows")
            flag = False if empty == "unanswerable" else None
        if answers:
            record |= {"answer": answers[0], "answers": answers[1:]}
        record |= {} if flag is None else {"answerable": flag}
        evidence = self.texts(row, "evidence")
        if gold := self._gold(row, evidence):
            record["gold_documents"] = gold
        return record | {"tags": self._tags(row), "evidence": evidence, "context": self.texts(row, "context")}

    def texts(self, row: Row, role: Role, separators: str = "") -> list[str]:
        """Return the texts in the cells of a role; see `split_cell`."""
        return [text for column in self.roles.get(role, ()) for text in split_cell(row, column, separators)]

    def _answers(self, row: Row) -> list[str]:
        return [text for column in self.roles.get("answer", ())
                if isinstance(row.fields.get(column), list | dict) or str(row.fields.get(column)).lstrip()[:1] in "[{"
                or str(row.fields.get(column)).strip().casefold() not in _NOTHING
                for text in split_cell(row, column, "|")]

    def _answerable(self, row: Row) -> bool | None:
        for role in ("answerable", "unanswerable"):
            for column in self.roles.get(role, ()):
                text = "".join(split_cell(row, column)).casefold()
                if text:
                    flag = _FLAGS.get(text.removesuffix(".0"))
                    if flag is None:
                        row.fail(column, "yes or no", row.fields[column])
                    return flag != (role == "unanswerable") if text != "unanswerable" else False
        return None

    def _gold(self, row: Row, evidence: list[str]) -> list[dict[str, Any]]:
        cells = [_structure(row.fields.get(column)) for column in self.roles.get("document", ())]
        if stated := [one for cell in cells if isinstance(cell, list) for one in cell if isinstance(one, dict)]:
            return stated
        found = [_split_page(name) for name in self.texts(row, "document", "|;\n")]
        pages = [page for column in self.roles.get("page", ()) for text in split_cell(row, column, "|;,\n")
                 for page in _read_pages(row, column, text)]
        names = [name for name, _ in found]
        if pages and names:
            if len(names) not in (1, len(pages)):
                row.fail(self.roles["page"][0], f"one page for each of the {len(names)} documents", pages)
            found = list(zip(names if len(names) > 1 else names * len(pages), pages, strict=True))
        quotes = [[quote] for quote in evidence] if len(evidence) == len(found) > 1 else [evidence] * len(found)
        return [{"document": name, "quotes": some, **({"page": page} if page else {})}
                for (name, page), some in zip(found, quotes, strict=True)]

    def _tags(self, row: Row) -> dict[str, list[str]]:
        tags: dict[str, list[str]] = {}
        for column in self.roles.get("tags", ()):
            if isinstance(row.fields.get(column), dict):
                tags |= {name: split_cell(row, f"{column}.{name}", value=value)
                         for name, value in row.fields[column].items()}
                continue
            named = squeeze(column) in ("tags", "tag", "labels", "schlagworte")
            for text in split_cell(row, column, "|;,\n" if named else ""):
                name, _, value = re.split(r"\s*([=:])\s*", text, maxsplit=1) if named and re.search(
                    r"\w[=:]", text) else ("tag" if named else column, "", text)
                tags.setdefault(name, []).append(value)
        for column in self.tags:
            tags[column] = split_cell(row, column)
        return {name: values for name, values in tags.items() if values}


def _list(names: Iterable[str]) -> str:
    shown = [name for name in names if name.strip()]
    return ", ".join(shown[:20]) + (f" and {len(shown) - 20} more" if len(shown) > 20 else "")


def _find(role: Role, free: Mapping[str, str], where: str) -> list[str]:
    for words in _names()[role]:
        found = [name for name, key in free.items() if key in words]
        if {squeeze(name) for name in found} == {"answer", "answers"} or len(found) == 1:
            return found
        if found:
            raise BenchmarkError(f"{where}: the columns {' and '.join(found)} could both be the {role}; choose one "
                                 f"with columns: {{{role}: {found[0]}}}, or --set "
                                 f"benchmark.columns.{role}='{found[0]}'")
    return []


def _no_question(names: Sequence[str]) -> str:
    if any(name.strip().endswith(("?", "？")) for name in names):
        return "the first line holds a question; write the names of the columns above it, such as question,answer"
    return (f"no column is known as the question; the columns are {_list(names)}; name it with columns: {{question: "
            f"COLUMN}}, or --set benchmark.columns.question='{next(filter(str.strip, names), 'COLUMN')}'")


def split_cell(row: Row, column: str, separators: str = "", value: Any = None) -> list[str]:
    """Return the texts in a cell, without blank ones. A list may be written as JSON or Python. Another text is split at
    the separators, unless a part would be blank. Numbers keep their digits."""
    value = row.fields.get(column) if value is None else value
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        value = _read_list(row, column, value)
    if isinstance(value, list | tuple):
        return [text for one in value if one is not None for text in split_cell(row, column, value=one)]
    if isinstance(value, dict):
        named = [value[key] for key in _KEYS if value.get(key) not in (None, "")]
        if not named and value:
            row.fail(column, f"text, or one of {', '.join(_KEYS)}", value)
        return list(dict.fromkeys(text for one in named for text in split_cell(row, column, value=one)))
    text = _write(value)
    parts = re.split(rf"\s*[{re.escape(separators)}]\s*", text) if separators else [text]
    return [part for part in ([text] if not all(parts) else parts) if part]


def _write(value: Any) -> str:
    if value is None or value != value:  # not a number
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        value = value.date()
    return str(value).strip()


def _read_list(row: Row, column: str, text: str) -> Any:
    """Return a list that a cell holds as text; any other text is returned as it is."""
    value = _structure(text)
    if value is text and len(text) <= _MAX_LIST and text.rstrip().endswith("]"):
        try:
            value = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return text
        if _NO_COMMA.search(text):
            row.fail(column, "a list with commas between its texts", text)
    if isinstance(value, list) and value and all(isinstance(one, int | float) for one in value):
        return text  # such as [1] or an interval
    return value


def _structure(value: Any) -> Any:
    if not isinstance(value, str) or value.lstrip()[:1] not in ("[", "{"):
        return split_lines(value) if isinstance(value, str) else value
    try:
        return loads(value)
    except ValueError:
        return value


def split_lines(text: str) -> list[str]:
    """Split a text at `|` and line breaks."""
    return [part for part in re.split(r"\s*[|\n]\s*", text.strip()) if part]


def _split_page(name: str) -> tuple[str, int | None]:
    """Split a place such as `terms.pdf, page 3` or `terms.pdf#page=3`."""
    found = _PAGE.fullmatch(name)
    return (found["name"], int(found["page"]) or None) if found else (name, None)


def _read_pages(row: Row, column: str, text: str) -> Iterator[int]:
    found = _PAGES.fullmatch(text.strip("[] "))
    first = int(found[1]) if found else 0
    last = int(found[2] or first) if found else 0
    if not 1 <= first <= last < first + _RANGE:
        row.fail(column, "a page from 1, such as 3 or 3-5", text)
    yield from range(first, last + 1)
