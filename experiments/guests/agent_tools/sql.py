"""The tool `sql`: queries over the tables of the documents, by DuckDB in a process of its own."""
from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Lock
from typing import Annotated, Any

from pydantic import Field

from ragbed.agents.tools import ToolOutput
from ragbed.documents.types import Chunk
from ragbed.experiments.guests.agent_tools.arguments import ToolFailure
from ragbed.experiments.guests.agent_tools.corpora import Corpus
from ragbed.experiments.guests.agent_tools.corpus_text import clean, show_span
from ragbed.experiments.guests.agent_tools.processes import ToolPool
from ragbed.experiments.guests.agent_tools.reading import ToolContext
from ragbed.experiments.guests.formats.document_tables import SourceTable, find_tables
from ragbed.experiments.guests.formats.typed_tables import find_scale, parse_number

_SECONDS = 10.0
_MAX_TABLES, _MAX_CELLS, _MAX_TEXT = 2_000, 1_000_000, 8_000  # of a corpus; characters of a result
_MAX_DIGITS, _MAX_WORDS, _MAX_SLUG = 18, 8, 60  # digits of a number; words and characters of a name
_CITED, _MAX_CITED = 3, 2_000  # tables that are shown as passages; characters of each
_KEPT = 16  # corpora whose tables are kept
_INDEX = "tables"  # the table of tables
_INDEX_COLUMNS = (("name", "VARCHAR"), ("document", "VARCHAR"), ("title", "VARCHAR"), ("page", "INTEGER"),
                  ("rows", "INTEGER"), ("columns", "VARCHAR"))
_EMPTY = re.compile(r"[-—–−.\s]*|n/?a", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+")

_reading = ThreadPoolExecutor(1, "tables")  # of its own: many calls may wait until the tables have been read

Job = Mapping[str, Any]
Column = tuple[str, str, list[str | None]]
"""The name, type and values of a column."""


class TableDatabase:
    """The tables of corpora, and the processes that query them."""

    def __init__(self) -> None:
        self._pool = ToolPool(2)
        self._jobs: OrderedDict[str, tuple[Job, Mapping[str, SourceTable]]] = OrderedDict()
        self._lock = Lock()

    async def sql(self, within: ToolContext, query: Annotated[str, Field(min_length=1, max_length=10_000)]
                  ) -> ToolOutput:
        """Query the tables of the documents with SQL (DuckDB). Start with SELECT * FROM tables, which names all
        tables and their columns."""
        job, sources = await asyncio.get_running_loop().run_in_executor(_reading, self._read, within.corpus)
        answer = await self._pool.ask(job, {"query": query}, _SECONDS)
        if not answer["rows"]:
            return ToolOutput(("No rows.",))
        lines = [" | ".join(" ".join(cell.split()) for cell in row) for row in (answer["columns"], *answer["rows"])]
        more = "\n(There are more rows or columns; select fewer, or aggregate.)" if answer["more"] else ""
        cited = [part for name in answer["tables"] if name in sources for part in _cite(within.corpus, sources[name])]
        return ToolOutput((clean("\n".join(lines), _MAX_TEXT) + more, *cited[:_CITED * 2]))

    def close(self) -> None:
        self._pool.close()

    def _read(self, corpus: Corpus) -> tuple[Job, Mapping[str, SourceTable]]:
        """Return the job and the tables by name of a corpus. Those of the last 16 corpora are kept."""
        with self._lock:
            if (known := self._jobs.get(corpus.hash)) is None:
                known = self._jobs[corpus.hash] = _read_tables(corpus)
                if len(self._jobs) > _KEPT:
                    self._jobs.popitem(last=False)
            self._jobs.move_to_end(corpus.hash)
        if not known[1]:
            raise ToolFailure("the documents contain no tables")
        return known


def _read_tables(corpus: Corpus) -> tuple[Job, Mapping[str, SourceTable]]:
    """Return the job that loads the tables of a corpus, and the tables by name."""
    sources: dict[str, SourceTable] = {}
    tables: list[Job] = []
    index: list[tuple[str, str, str, int | None, int, str]] = []
    cells = 0
    found = ((document, table) for document in map(corpus.document, corpus.ids) if "<table" in document.html
             for table in find_tables(document))
    for document, table in found:
        cells += len(table.rows) * len(table.header)
        if len(tables) == _MAX_TABLES or cells > _MAX_CELLS:
            index.append(("(the other tables are left out)", "", "", None, 0, ""))
            break
        name = _unique(_slug(table.caption) or _slug(document.title) or "table", {*sources, _INDEX})
        sources[name] = table
        columns, notes = _read_columns(table)
        tables.append({"name": name, "columns": columns})
        index.append((name, document.source, table.caption or document.title, table.page, len(table.rows), notes))
    about = [(name, kind, [row[place] for row in index]) for place, (name, kind) in enumerate(_INDEX_COLUMNS)]
    return {"job": "sql", "tables": [*tables, {"name": _INDEX, "columns": about}]}, sources


def _read_columns(table: SourceTable) -> tuple[list[Column], str]:
    """Return the columns, and a line on them for the table of tables."""
    columns: list[Column] = []
    notes: list[str] = []
    for place, title in enumerate(table.header):
        texts = [None if _EMPTY.fullmatch(text := row.cells[place].text) else text for row in table.rows]
        name = _unique(_slug(title) or f"column_{place + 1}", {one for one, *_ in columns})
        kind, values, unit = _read_numbers(texts)
        columns.append((name, kind, values))
        notes.append(f"{name} ({unit})" if unit else name)
    scale = find_scale(" ".join((table.caption, *table.header)))
    return columns, ", ".join(notes) + (f"; in {scale}s" if scale else "")


def _read_numbers(texts: Sequence[str | None]) -> tuple[str, list[str | None], str]:
    """Return the type and values of a column, and the unit of its numbers. Any text makes it a column of text."""
    read = [text and parse_number(text) for text in texts]
    if not any(texts) or any(text and one is None for text, one in zip(texts, read, strict=True)):
        return "VARCHAR", list(texts), ""
    numbers = [one[0] if one else None for one in read]
    places = max(-int(one.as_tuple().exponent) for one in numbers if one is not None)
    if max(len(str(abs(int(one)))) for one in numbers if one is not None) + max(places, 0) > _MAX_DIGITS:
        return "VARCHAR", list(texts), ""
    units = {" ".join(filter(None, one[1])) for one in read if one}
    return (f"DECIMAL(38, {places})" if places > 0 else "BIGINT",
            [None if one is None else f"{one:f}" for one in numbers], " or ".join(sorted(units - {""}))[:40])


def _slug(text: str) -> str:
    words = "_".join(_WORD.findall(text.casefold())[:_MAX_WORDS])[:_MAX_SLUG]
    return f"n_{words}" if words[:1].isdigit() else words


def _unique(name: str, taken: Collection[str]) -> str:
    return next(one for number in count(1) if (one := f"{name}_{number}" if number > 1 else name) not in taken)


def _cite(corpus: Corpus, table: SourceTable) -> tuple[str | Chunk, ...]:
    """Return the beginning of a table as passages, so that it can be cited."""
    document = corpus.document(table.document)
    place = table.html if corpus.format == "html" else table.plain
    if place is None:
        return ()
    text = document.text(corpus.format)
    end = place[1] if place[1] - place[0] <= _MAX_CITED else text.rfind("\n", place[0], place[0] + _MAX_CITED)
    return show_span(corpus, document.id, place[0], end)
