"""Store the calls and searches of a run in one file, a cassette, to commit, inspect and replay elsewhere.

The format is gzipped JSON Lines. The first line describes the run. Texts, calls and searches follow, sorted by key. The
last line has their counts and a SHA-256 over all other lines. Equal content gives equal bytes. The model
`recorded:NAME` answers from a cassette of this package, and `recorded:FILE` from your own.
"""
from __future__ import annotations

import gzip
import hashlib
import json
import os
import zlib
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, BinaryIO, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ragbed.agents.client import Completion, ModelClient
from ragbed.agents.database import Database, text_hash
from ragbed.agents.journal import call_key, store_call
from ragbed.agents.model_settings import ModelConfig, ModelSettings
from ragbed.agents.replies import OnEvent, free_price
from ragbed.agents.search import request_key, store_search
from ragbed.agents.types import outcome_to_json
from ragbed.documents.errors import CallError, ModelError, ReplayMiss, RunError
from ragbed.documents.http import Address
from ragbed.documents.json import loads
from ragbed.documents.paths import open_file
from ragbed.documents.types import Format
from ragbed.retrieval.storage.files import explain_write_error, replacing_file
from ragbed.strategies.types import Failure, Generate, Reply

VERSION = 3  # version of the format
ENDING = ".cassette.jsonl.gz"
MAX_BYTES = 1 << 30  # maximum bytes of an unpacked cassette
_LEVEL = 6
Key = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
TextHash = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
Message = tuple[str, list[TextHash]]  # role, hashes of its parts
ToolMessage = tuple[str, list[TextHash], list[dict[str, Any]], str]  # the same, tool calls, and id of the answered call


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TextLine(_Line):
    """A text and its hash."""

    counted: ClassVar[str] = "texts"
    text: TextHash
    content: str

    @model_validator(mode="after")
    def _check_hash(self) -> Self:
        if text_hash(self.content) != self.text:
            raise ValueError("the text does not match its hash")
        return self

    def put_into(self, database: Database) -> None:
        database.put_text(self.content)


class CallLine(_Line):
    """A call, with its journal key, and its messages as hashes of texts."""

    counted: ClassVar[str] = "calls"
    call: Key
    messages: list[Message | ToolMessage]
    parameters: dict[str, Any]
    reply: Reply | None = None
    failure: Failure | None = None

    @model_validator(mode="after")
    def _check_outcome(self) -> Self:
        if (self.reply is None) == (self.failure is None):
            raise ValueError("expected a reply or a failure, and not both")
        return self

    def put_into(self, database: Database) -> None:
        reply, failure = (None if one is None else json.dumps(outcome_to_json(one))
                          for one in (self.reply, self.failure))
        store_call(database, self.call, json.dumps(self.messages), json.dumps(self.parameters, sort_keys=True), reply,
                  failure)


class HitLine(_Line):
    """A hit, with the content and prefix of its chunk as hashes of texts."""

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


class FoundLine(_Line):
    """The hits of a search, or the result of a tool, as `SearchStore` stores them."""

    hits: list[HitLine]
    notes: list[str]
    sources: dict[str, str]
    headers: dict[str, str] = Field(default={}, exclude_if=lambda headers: not headers)
    parts: list[TextHash | int] | None = Field(default=None, exclude_if=lambda parts: parts is None)

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        if any(isinstance(one, int) and not 0 <= one < len(self.hits) for one in self.parts or ()):
            raise ValueError("a part of the result is missing")
        return self


class SearchLine(_Line):
    """A search request with its key and result."""

    counted: ClassVar[str] = "searches"
    search: Key
    request: dict[str, Any]
    found: FoundLine

    @model_validator(mode="after")
    def _check_key(self) -> Self:
        if request_key(self.request) != self.search:
            raise ValueError("the request does not match its key")
        return self

    def put_into(self, database: Database) -> None:
        store_search(database, self.request, json.dumps(self.found.model_dump(mode="json")))


Row = TextLine | CallLine | SearchLine
_KINDS: Mapping[str, type[Row]] = {"text": TextLine, "call": CallLine, "search": SearchLine}


@dataclass(frozen=True, slots=True)
class Cassette:
    """A cassette file whose hash was checked."""

    path: Path
    ragbed: str  # version of the ragbed that wrote it
    about: Mapping[str, Any]  # description of the run
    counts: Mapping[str, int]  # number of texts, calls and searches
    hash: str

    @classmethod
    def open(cls, path: Path) -> Cassette:
        """Check a cassette file and read its header. Raises RunError if it cannot be used."""
        reading = _Reading(path)
        deque(reading.rows(), 0)
        return cls(path, str(reading.head.get("ragbed")), reading.head["run"], reading.counts, reading.hash)

    def rows(self) -> Iterator[Row]:
        """Yield texts, calls and searches, in that order. Raises RunError if the file has changed."""
        reading = _Reading(self.path)
        yield from reading.rows()
        if reading.hash != self.hash:
            raise RunError(f"{self.path}: the file changed while it was read; run the command again")

    def read_into(self, database: Database) -> None:
        """Store every row in a database with the journal's tables."""
        for row in self.rows():
            row.put_into(database)


class _Reading:
    def __init__(self, path: Path) -> None:
        self.path, self.hash = path, ""
        self.head: dict[str, Any] = {}
        self.counts = {kind.counted: 0 for kind in _KINDS.values()}

    def rows(self) -> Iterator[Row]:
        state = hashlib.sha256()
        for number, line in enumerate(self._lines(), 1):
            try:
                fields = loads(line)
                kind = next(iter(fields))
                if number == 1:
                    self._take_head(fields)
                elif self.hash:
                    raise ValueError("text after the end")
                elif kind != "end":
                    row = _KINDS[kind].model_validate(fields)
                    self.counts[row.counted] += 1
                    yield row
                elif fields == {"end": self.counts, "sha256": state.hexdigest()}:
                    self.hash = state.hexdigest()
                else:
                    raise ValueError("checksum mismatch: the file was modified or truncated")
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                place = ": ".join([f"line {number}", *[".".join(map(str, first["loc"]))] * bool(first["loc"])])
                raise self._damage_error(f"{place}: {first['msg'].removeprefix('Value error, ')}") from error
            except (ValueError, TypeError, LookupError, StopIteration) as error:
                raise self._damage_error(f"line {number}: {error}") from error
            state.update(line)
        if not self.hash:
            raise self._damage_error("it is truncated")

    def _lines(self) -> Iterator[bytes]:
        left = MAX_BYTES
        try:
            with open_file(self.path) as file, gzip.open(file) as unpacked:
                while line := unpacked.readline(left + 1):
                    left -= len(line)
                    if left < 0:
                        raise RunError(f"{self.path}: unpacks to more than the limit of {MAX_BYTES:,} bytes")
                    yield line
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise self._damage_error("it is truncated or modified") from error
        except OSError as error:
            raise RunError(f"{self.path}: {error.strerror or error}") from error

    def _take_head(self, fields: Any) -> None:
        if fields["cassette"] != "ragbed":
            raise ValueError("not a cassette")
        if fields["version"] != VERSION or not isinstance(fields["run"], dict):
            raise RunError(f"{self.path}: written by another version of ragbed; export the run again")
        self.head = fields

    def _damage_error(self, why: str) -> RunError:
        return RunError(f"{self.path}: damaged cassette: {why}; get the file again, or export the run again"
                        if self.head else f"{self.path} is not a cassette; make one with `ragbed cassette export RUN`")


def is_cassette(path: Path) -> bool:
    """Tell whether a file starts like a cassette of any version."""
    try:
        with open_file(path) as file, gzip.open(file) as unpacked:
            return unpacked.read(21) == b'{"cassette": "ragbed"'
    except (OSError, EOFError, zlib.error):
        return False


def write_cassette(path: Path, ragbed: str, about: Mapping[str, Any], database: Database) -> dict[str, int]:
    """Write the calls and searches of a database, with the texts they need; return the number of each. Raises
    RunError if the file cannot be written, or would be too large."""
    try:
        with replacing_file(path) as partial, database.snapshot(), partial.open("xb") as file:
            counts = _write(file, {"cassette": "ragbed", "version": VERSION, "ragbed": ragbed, "run": about}, database)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise RunError(f"{path}: {explain_write_error(error)}") from error
    return counts


def _write(file: BinaryIO, head: Mapping[str, Any], database: Database) -> dict[str, int]:
    counts, state, left = {kind.counted: 0 for kind in _KINDS.values()}, hashlib.sha256(), MAX_BYTES
    with gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as out:  # no name and time, for equal bytes
        for fields in chain([head], _collect_rows(database)):
            line = (json.dumps(fields, ensure_ascii=False) + "\n").encode("utf-8", "replace")
            left -= len(line)
            if left < 0:
                raise RunError(f"{database.path}: too large for a cassette, which has at most {MAX_BYTES:,} bytes")
            if (kind := next(iter(fields))) in _KINDS:
                counts[_KINDS[kind].counted] += 1
            state.update(line)
            out.write(line)
        out.write((json.dumps({"end": counts, "sha256": state.hexdigest()}) + "\n").encode())
    return counts


def _collect_rows(database: Database) -> Iterator[Mapping[str, Any]]:
    """Yield the texts that calls and searches need, the calls, and the searches, each sorted by key."""
    calls = "SELECT key, messages, parameters, reply, failure FROM calls ORDER BY key"
    searches = "SELECT key, request, found FROM searches ORDER BY key"
    needed: set[str] = set()
    for _, messages, *_ in database.rows(calls):
        needed.update(part for _, parts, *_ in json.loads(messages) for part in parts)
    for _, _, found in database.rows(searches):
        fields = json.loads(found)
        needed.update(text for hit in fields["hits"] for text in (hit["text"], hit["prefix"]) if text)
        needed.update(part for part in fields.get("parts", ()) if isinstance(part, str))
    for key in sorted(needed):
        yield {"text": key, "content": database.text(key)}
    for key, messages, parameters, reply, failure in database.rows(calls):
        outcome = {"failure": json.loads(failure)} if reply is None else {"reply": json.loads(reply)}
        yield {"call": key, "messages": json.loads(messages), "parameters": json.loads(parameters), **outcome}
    for key, request, found in database.rows(searches):
        yield {"search": key, "request": json.loads(request), "found": json.loads(found)}


RECORDED = "recorded:"
SHIPPED = Path(__file__).parent / "recordings"


@dataclass(frozen=True, slots=True)
class Recording:
    """The recorded calls of one model, by journal key."""

    identity: str
    questions: int  # number of recorded questions, which are the first of its benchmark
    made_with: Mapping[str, str]  # model, weights, date, machine and server
    outcomes: Mapping[str, Reply | Failure]


@cache
def load_recording(spec: str) -> Recording:
    """Load the recording that `recorded:NAME` names. Raises ModelError if there is none, or it has several models."""
    name = spec.removeprefix(RECORDED)
    shipped = sorted(path.name.removesuffix(ENDING) for path in SHIPPED.glob(f"*{ENDING}"))
    try:
        cassette = Cassette.open(SHIPPED / f"{name}{ENDING}" if name in shipped else Path(name))
    except RunError as error:
        raise ModelError(f"{spec}: {error}; name a cassette file, or one of {', '.join(shipped)}") from error
    models: Mapping[str, str] = cassette.about["models"]
    if len(models) != 1:
        raise ModelError(f"{spec}: contains calls to {', '.join(models) or 'no model'}; name a cassette with calls to "
                         "one model")
    outcomes = {row.call: row.reply or row.failure for row in cassette.rows() if isinstance(row, CallLine)}
    return Recording(next(iter(models.values())), cassette.about["benchmark"]["questions"],
                     cassette.about.get("made_with", {}),
                     {key: outcome for key, outcome in outcomes.items() if outcome is not None})


class RecordedClient(ModelClient):
    """Answers calls with their recorded replies."""

    def __init__(self, spec: str, config: ModelConfig, identity: str, settings: ModelSettings) -> None:
        self._recording = load_recording(config.model)
        super().__init__(spec, identity, self._recording.identity, Address("", ""), free_price, settings.calls,
                         settings.temperature, settings.reasoning_effort, config=config)

    async def complete(self, action: Generate, *, max_tokens: int, deadline: float | None = None, repeat: int = 0,
                       tell: OnEvent | None = None) -> Completion:
        """Return the recorded reply, at no cost. Raises CallError for a recorded failure, ReplayMiss for none."""
        parameters: dict[str, Any] = self.parameters(action, max_tokens, repeat)
        key = call_key(self._recording.identity, action.messages, parameters, repeat, action.sample)
        match self._recording.outcomes.get(key):
            case Reply() as reply:
                return Completion(reply, 0, 0.0)
            case Failure() as failure:
                raise CallError(failure.message, failure.kind, 0)
        raise ReplayMiss(f"{self.name} has no reply to this call ({key[:12]}): it answers only the questions, settings "
                         "and prompts that were recorded; use another model for others", "replay_miss", 0)
