"""The lines of a cassette: what each may say, how it is written, and the rows of a database that it is made of."""
from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from agents import journal, search
from agents.database import Database
from agents.types import outcome_to_json
from documents.types import Format
from strategies.types import Failure, Reply

MAGIC = "ragbed"
VERSION = 2  # of the format; one more with every change that an older ragbed cannot read
_BEFORE_TOOLS = 1
Key = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
TextHash = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
Plain = tuple[str, list[TextHash]]
OfTools = tuple[str, list[TextHash], list[dict[str, Any]], str]


class Line(BaseModel):
    """Closed and frozen. `counted` is the name under which the last line counts it."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    counted: ClassVar[str] = ""


class Head(Line):
    """The first line. `run` says what the run was; what it holds is its reader's to check."""

    cassette: Literal["ragbed"]
    version: int = Field(ge=1, le=VERSION)
    ragbed: str
    run: dict[str, Any]


class Text(Line):
    """A text and its hash."""

    counted: ClassVar[str] = "texts"
    text: TextHash
    content: str


class Call(Line):
    """A call by its key in the journal.

    A message is its role and the hashes of its parts; from format 2 on also the tools that it calls, and the call
    that it answers, where it has either.
    """

    counted: ClassVar[str] = "calls"
    statement: ClassVar[str] = journal.KEEP
    call: Key
    messages: list[Plain | OfTools]
    parameters: dict[str, Any]
    reply: Reply | None = None
    failure: Failure | None = None

    @property
    def texts(self) -> Iterator[str]:
        return (part for _, parts, *_of_tools in self.messages for part in parts)

    def row(self) -> tuple[str | None, ...]:
        """For `statement`."""
        reply, failure = (None if one is None else json.dumps(outcome_to_json(one))
                          for one in (self.reply, self.failure))
        return self.call, json.dumps(self.messages), json.dumps(self.parameters, sort_keys=True), reply, failure


class FoundHit(Line):
    """A hit with the hashes of its chunk's content and prefix; no prefix is empty."""

    id: str
    document: str
    format: Format
    start: int
    end: int
    text: TextHash
    prefix: TextHash | Literal[""]
    pages: tuple[int, int] | None
    score: float
    found_by: str


class FoundFields(Line):
    """What `Searches` keeps of a request."""

    hits: list[FoundHit]
    notes: list[str]
    sources: dict[str, str]


class Search(Line):
    """What was found for a request, by the request's key."""

    counted: ClassVar[str] = "searches"
    statement: ClassVar[str] = search.KEEP
    search: Key
    request: dict[str, Any]
    found: FoundFields

    @property
    def texts(self) -> Iterator[str]:
        return (text for hit in self.found.hits for text in (hit.text, hit.prefix) if text)

    def row(self) -> tuple[str, ...]:
        """For `statement`."""
        return self.search, search.request_json(self.request), json.dumps(self.found.model_dump(mode="json"))


class End(Line):
    """The last line: how many texts, calls and searches there are, and a SHA-256 over all lines before."""

    end: dict[Literal["texts", "calls", "searches"], int]
    sha256: Key


KINDS: Mapping[str, type[Line]] = {"cassette": Head, "text": Text, "call": Call, "search": Search, "end": End}


def packed(fields: Mapping[str, Any]) -> bytes:
    """A line as it stands in the file. Half surrogate pairs have no UTF-8 form, so such a line is ASCII."""
    try:
        return (json.dumps(fields, ensure_ascii=False) + "\n").encode()
    except UnicodeEncodeError:
        return (json.dumps(fields) + "\n").encode()


def format_for(database: Database) -> int:
    """The format that the calls of a database need: one without tools can be read by an older ragbed too."""
    with_tools = database.read("SELECT 1 FROM calls, json_each(calls.messages) AS message"
                               " WHERE json_array_length(message.value) > 2 LIMIT 1")
    return VERSION if with_tools else _BEFORE_TOOLS


def kept(database: Database) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every text that calls and searches need, every call and every search, each by its key, with what counts it."""
    needed: set[str] = set()
    for (messages,) in database.rows("SELECT messages FROM calls"):
        needed.update(part for _, parts, *_of_tools in json.loads(messages) for part in parts)
    found = "SELECT key, request, found FROM searches ORDER BY key"
    searched = database.has("searches")
    for _, _, fields in database.rows(found) if searched else ():
        needed.update(text for hit in json.loads(fields)["hits"] for text in (hit["text"], hit["prefix"]) if text)
    for key in sorted(needed):
        yield "texts", {"text": key, "content": database.text(key)}
    for key, messages, parameters, reply, failure in database.rows(
            "SELECT key, messages, parameters, reply, failure FROM calls ORDER BY key"):
        outcome = {"failure": json.loads(failure)} if reply is None else {"reply": json.loads(reply)}
        yield "calls", {"call": key, "messages": json.loads(messages), "parameters": json.loads(parameters), **outcome}
    for key, request, fields in database.rows(found) if searched else ():
        yield "searches", {"search": key, "request": json.loads(request), "found": json.loads(fields)}
