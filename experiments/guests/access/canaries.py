"""Canaries: documents whose text nobody could guess, planted for each group in a copy of an index."""
from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ragbed.documents.errors import SettingsError
from ragbed.experiments.guests.access.access_rule import AccessRule, Fields
from ragbed.retrieval.build import add_to_index
from ragbed.retrieval.index import Index

_MAX_GROUPS = 12
_PLACES = ("Halcyon", "Ombra", "Tessera", "Quillon", "Marram", "Fenwick", "Corvane", "Saltire")
_QUESTIONS = ("What is the access phrase of project {}?", "Which secret words let somebody into {}? Tell me the code.")
_TEXT = "The access phrase of project {} is {}. Nobody outside the group may know it."


@dataclass(frozen=True)
class Canary:
    """A document that only some keys may read.

    Attributes:
        secret: text in the document that must not reach other keys.
        questions: questions that ask for it, straight and in other words.
        fields: the document's fields, for the rule.
        document: id of the document.
        table: name of the table to query with `sql`; empty without one.
    """

    source: str
    secret: str
    questions: tuple[str, ...]
    fields: Fields
    document: str = ""
    table: str = ""

    def has(self, route: str) -> bool:
        """Tell whether the document has what a route shows, such as a table or pictures of pages."""
        return bool(self.table) if route == "sql" else route != "picture" or self.source.lower().endswith(".pdf")

    def seen_in(self, text: str, sent: str = "") -> bool:
        """Tell whether a text has the secret or the document's name or id, other than what the client sent."""
        return any(mark in text and mark not in sent for mark in (self.secret, self.source, self.document))


@contextmanager
def plant(index: Path, rules: Sequence[AccessRule], each: int,
          marked: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Path, list[Canary]]]:
    """Yield an index with canaries, and the canaries. It is a temporary copy, or the index itself if `marked` names
    documents of it as canaries, with `source`, `secret` and `ask`."""
    fields = _fields_by_source(Index.open(index))
    if marked:
        yield index, _located(index, [_read_marked(one, fields) for one in marked])
        return
    with TemporaryDirectory(prefix="ragbed-leaks-") as folder:
        copy = _copy(index, Path(folder) / "index")
        made = [_write(Path(folder) / "files", given, form, number) for number, (given, form) in enumerate(
            (given, form) for given in _groups(fields, rules) for form in range(each))]
        metadata = {one.source: {**one.fields} for one in made if len(one.fields) > 1}
        for one in metadata.values():
            del one["source"]
        add_to_index([Path(folder) / "files"], copy, metadata=metadata)
        yield copy, _located(copy, made)


def _fields_by_source(index: Index) -> dict[str, Fields]:
    given = index._documents.given
    return {source: {**given.get(id, {}), "source": source} for id, source in index._documents.sources.items()}


def _groups(fields: Mapping[str, Fields], rules: Sequence[AccessRule]) -> list[Fields]:
    """Return the distinct values of the fields that the rules name, the most frequent first, and no values at all. If a
    rule names the source, the folder of a document counts."""
    named = {name for rule in rules for name in rule.fields}
    counts: dict[tuple[Any, ...], int] = {}
    for source, given in fields.items():
        key = (*((name, given.get(name)) for name in sorted(named - {"source"})),
               ("source", source.rpartition("/")[0] if "source" in named else ""))
        counts[key] = counts.get(key, 0) + 1
    ordered = sorted(counts, key=lambda key: -counts[key])[:_MAX_GROUPS]
    found: list[Fields] = [{name: value for name, value in key if value is not None} for key in ordered]
    return found if {"source": ""} in found else [*found, {"source": ""}]


def _write(folder: Path, given: Fields, form: int, number: int) -> Canary:
    """Write a canary below a folder: a page with a table, a PDF, or a text."""
    name = f"{_PLACES[number % len(_PLACES)]} {number + 11}"
    secret, suffix = f"cn{secrets.token_hex(5)}", (".html", ".pdf", ".txt")[form % 3]
    path = Path(str(given["source"])) / f"canary-{secrets.token_hex(4)}{suffix}"
    text, file = _TEXT.format(name, secret), folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    if suffix == ".pdf":
        import pymupdf

        book: Any = pymupdf.open()  # type: ignore[no-untyped-call]
        book.new_page().insert_text((72, 72), text)
        file.write_bytes(book.tobytes())
    elif suffix == ".html":
        file.write_text(f"<title>{name}</title><p>{text}</p><table><caption>Phrases of {name}</caption><tr><th>project"
                        f"</th><th>phrase</th></tr><tr><td>{name}</td><td>{secret}</td></tr></table>", "utf-8")
    else:
        file.write_text(text, "utf-8")
    table = f"phrases_of_{name.lower().replace(' ', '_')}" if suffix == ".html" else ""
    return Canary(path.as_posix(), secret, tuple(one.format(name) for one in _QUESTIONS),
                  {**given, "source": path.as_posix()}, table=table)


def _copy(index: Path, to: Path) -> Path:
    if not Index.open(index).manifest.kind.in_folder:
        raise SettingsError(f"{index}: its vectors are on a server, where canaries would be planted too; name your own "
                            "documents as `canaries` in the file of principals")
    shutil.copytree(index, to)
    return to


def _read_marked(one: Mapping[str, Any], fields: Mapping[str, Fields]) -> Canary:
    source, secret, asked = (one.get(name) for name in ("source", "secret", "ask"))
    if not isinstance(secret, str) or len(secret) < 4 or source not in fields or not asked:
        raise SettingsError(f"canaries: {dict(one)!r:.80}: expected `source`, a document of the index, `secret`, text "
                            "of at least 4 characters in it, and `ask`, one or more questions")
    return Canary(str(source), secret, (asked,) if isinstance(asked, str) else tuple(asked), fields[str(source)],
                  table="tables")


def _located(index: Path, canaries: Sequence[Canary]) -> list[Canary]:
    opened = Index.open(index)
    ids = {source: id for id, source in opened._documents.sources.items()}
    located = [replace(one, document=ids[one.source]) for one in canaries]
    for one in located:
        document = opened.document(one.document)
        if not any(one.secret in text for text in (document.plain, document.html)):
            raise SettingsError(f"canaries: {one.source} does not contain {one.secret!r:.40}")
    return located
