"""The documents of a corpus by name, and their text in one buffer."""
from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from functools import cached_property
from mmap import ACCESS_READ, mmap
from threading import Lock
from typing import Any

from ragbed.documents.errors import did_you_mean
from ragbed.documents.paths import cache_dir
from ragbed.documents.types import Chunk, Document, Format, digest
from ragbed.experiments.formatting import visible
from ragbed.experiments.guests.agent_tools.arguments import ToolFailure
from ragbed.experiments.guests.agent_tools.corpora import Corpus
from ragbed.retrieval.storage.files import mark_new, mark_used, write_atomically
from ragbed.strategies.prompting import frame_content

_NAMED = 20  # documents that an error names
_MAX_NAME = 200  # characters of a document's name in a result
_LARGE, _LENGTH = 8_000_000, 20  # bytes of a text that is kept; digits at the end of its file
_KEPT = 32  # corpora whose text is kept in memory
_MAX_HEADINGS = 100_000
_headings: dict[tuple[str, str], str] = {}
_texts: OrderedDict[tuple[str, str], CorpusText] = OrderedDict()
_lock = Lock()


@dataclass(frozen=True, slots=True)
class Entry:
    """A document in a list: its names, number of pages, and characters of its rendering."""

    id: str
    source: str
    title: str
    pages: int
    size: int


@dataclass(frozen=True)
class CorpusText:
    """The documents of a corpus in order.

    Attributes:
        data: their renderings as UTF-8, each followed by a line end: bytes, or a file that has more after them.
        starts: where each document begins in `data`, and where the last one ends.
    """

    entries: Sequence[Entry]
    data: Any
    starts: Sequence[int]

    def document_at(self, place: int) -> int:
        """Return the number of the document at a byte of `data`."""
        return bisect_right(self.starts, place) - 1

    def find(self, name: str) -> int:
        """Return the number of the document of an id, source path, file name or title. Raises ToolFailure, with the
        most similar name, if there is none or the name is ambiguous."""
        wanted = name.strip().strip("\"'`")
        for names in self._names:
            if found := names.get(wanted) or names.get(wanted.casefold()):
                if len(found) > 1:
                    raise ToolFailure(f"{name!r:.80} names {len(found)} documents, such as "
                                      f"{' and '.join(show(self.entries[one].source) for one in found[:2])}")
                return found[0]
        known = [*map(show, (one.source for one in self.entries[:20_000]))]  # comparing with more takes seconds
        named = ", ".join(known[:_NAMED]) + (", …" if len(self.entries) > _NAMED else "")
        raise ToolFailure(f"there is no document {wanted!r:.80}; {did_you_mean(wanted[:_MAX_NAME], known)}"
                          f"the {len(self.entries):,} documents are {named}")

    @cached_property
    def _names(self) -> list[dict[str, list[int]]]:
        levels: list[dict[str, list[int]]] = [{} for _ in range(4)]
        for number, one in enumerate(self.entries):
            names = one.id, one.source, one.source.rpartition("/")[2].casefold(), one.title.casefold()
            for level, each in zip(levels, names, strict=True):
                level.setdefault(each, []).append(number)
        return levels


def read_corpus(corpus: Corpus) -> CorpusText:
    """Return the text of a corpus. The texts of the last 32 corpora are kept."""
    key = corpus.hash, corpus.format
    with _lock:
        if (known := _texts.get(key)) is None:
            known = _texts[key] = _read(corpus)
            if len(_texts) > _KEPT:
                _texts.popitem(last=False)
        _texts.move_to_end(key)
        return known


def _read(corpus: Corpus) -> CorpusText:
    """Read the documents. A large text is kept in the cache, because reading it from an index takes a second."""
    kept = cache_dir() / "texts" / digest("1", corpus.hash, corpus.format)
    with suppress(OSError, ValueError):
        with kept.open("rb") as file:
            mapped = mmap(file.fileno(), 0, access=ACCESS_READ)
        listed, ends = json.loads(mapped[int(mapped[-_LENGTH:]):-_LENGTH])
        mark_used(kept)
        return CorpusText([Entry(*one) for one in listed], mapped, ends)
    entries, texts, starts = [], [], [0]
    for document in map(corpus.document, corpus.ids):
        text = document.text(corpus.format)
        encoded = text.encode("utf-8", "replace")  # one byte for a lone surrogate, so that offsets stay right
        entries.append(Entry(document.id, document.source, document.title, len(document.pages), len(text)))
        texts.append(encoded)
        starts.append(starts[-1] + len(encoded) + 1)
    data = b"\n".join((*texts, b""))
    if len(data) > _LARGE:
        with suppress(OSError):  # without a writable cache, the documents are read again
            kept.parent.mkdir(parents=True, exist_ok=True)
            footer = json.dumps([[*map(astuple, entries)], starts]).encode()
            write_atomically(kept, data + footer + b"%*d" % (_LENGTH, len(data)))
            mark_new(kept)
    return CorpusText(entries, data, starts)


def show(text: str) -> str:
    """Return a name or another text of a document as one line that cannot imitate marks of a prompt."""
    return frame_content(visible(" ".join(text.split())), "delimited")[:_MAX_NAME]


def show_span(corpus: Corpus, id: str, start: int, end: int) -> tuple[str | Chunk, ...]:
    """Return the span `[start, end)` of a document's rendering as passages, after a line that says where it is."""
    chunks = corpus.spans(id, start, end)
    return (_heading(corpus.document(id), corpus.format, start, end), *chunks) if chunks else ()


def show_chunk(corpus: Corpus, chunk: Chunk) -> tuple[str | Chunk, ...]:
    """Return a chunk that a search found, after a line that says where it is. The text of a document may be made of
    its chunks, so the chunk may be at another offset."""
    key = corpus.hash, chunk.id
    if (heading := _headings.get(key)) is None:
        if len(_headings) >= _MAX_HEADINGS:
            _headings.clear()
        heading = _headings[key] = _find_heading(corpus, chunk)
    return heading, chunk


def _find_heading(corpus: Corpus, chunk: Chunk) -> str:
    try:
        document = corpus.document(chunk.document)
    except KeyError:  # the searches of a question may find more than its documents
        return f"{show(chunk.document)}:"
    text, content = document.text(chunk.format), chunk.content.removeprefix(chunk.prefix)
    at = chunk.start if text.startswith(content, chunk.start) else text.find(content)
    return _heading(document, chunk.format, at, at + len(content)) if at >= 0 else f"{show(document.source)}:"


def _heading(document: Document, format: Format, start: int, end: int) -> str:
    text, pages = document.text(format), document.pages_of(format, start, end)
    first = text.count("\n", 0, start) + 1
    last = first + text.count("\n", start, max(end - 1, start))
    on_pages = f", {span('page', *pages)}" if pages else ""
    return f"{show(document.source)}{on_pages}, {span('line', first, last)}:"


def span(unit: str, first: int, last: int) -> str:
    """Format a range, such as `page 3` or `lines 5-9`."""
    return f"{unit} {first}" if first == last else f"{unit}s {first}-{last}"


_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]+")


def clean(text: str, limit: int) -> str:
    """Return a text that a tool made, without control characters and marks of prompts, cut to `limit` characters."""
    kept = frame_content(_CONTROLS.sub("", text[:4 * limit].encode(errors="replace").decode()), "delimited")
    rest = len(text) - limit if len(kept) > limit else 0
    return f"{kept[:limit]}\n({rest:,} more characters were cut)" if rest > 0 else kept
