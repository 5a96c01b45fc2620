"""Custom retrievers, created by a function in the user's file or package."""
from __future__ import annotations

import importlib
import importlib.util
import json
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from queue import SimpleQueue
from types import CodeType, ModuleType
from typing import Any, Literal, cast

from pydantic import Field, JsonValue, field_validator

from ragbed.documents.errors import CallError, RagbedError, SettingsError
from ragbed.documents.types import Chunk, digest
from ragbed.documents.user_code import UserCode
from ragbed.experiments.guests.external_retrievers.langchain import FromLangChain
from ragbed.retrieval.storage.files import sha256_of
from ragbed.retrieval.types import Collection, Hit, RerankerDeps, Retriever, RetrieverKind, distinct, number

_SECONDS = 60.0


def _guard(factory: str, fail: Callable[[str], RagbedError] = SettingsError) -> UserCode:
    return UserCode(lambda line: fail(f"external {factory}: {line}"))


class External(RetrieverKind):
    """Uses the retriever that `factory` creates: LangChain's, or any object with ragbed's `search(queries, k)`.

    The factory is called with a list of the chunks that may be found, and with `options` as keyword arguments. Hits
    must be among these chunks: a LangChain document is matched by the metadata `chunk` (see `as_documents`), its id or
    its text. Equal queries must give equal hits.

    Attributes:
        factory: `my_file.py:make` or `package.module:make`. A relative path is resolved like other paths in the
            settings. The code runs when the retriever is opened.
        options: arguments for the factory. They are written into the run's settings, so do not put a key here: let the
            factory read it from the environment.
        seconds: time limit of a search. If it is exceeded, the question fails; the code may go on, and its result is
            dropped.
    """

    kind: Literal["external"] = "external"
    factory: str
    options: Mapping[str, JsonValue] = Field(default_factory=dict)
    seconds: float = Field(default=_SECONDS, gt=0, exclude_if=lambda seconds: seconds == _SECONDS)

    @field_validator("factory")
    @classmethod
    def _check_form(cls, factory: str) -> str:
        module, _, name = factory.rpartition(":")
        if not module or not name.isidentifier() or not module.isprintable():
            raise ValueError("expected a file or module, a colon and the name of a function, as in my_file.py:make")
        return factory

    @property
    def embeds(self) -> bool:
        return False

    def open(self, collection: Collection, deps: RerankerDeps) -> ExternalRetriever:
        among = collection.among
        chunks = [chunk for row, chunk in enumerate(collection.chunks) if among is None or among[row]]
        inner = self._create(chunks) if chunks else None
        return ExternalRetriever(inner, {chunk.id: chunk for chunk in chunks}, self.factory, self.seconds)

    def identity(self) -> str:
        """Return a hash of the file's bytes, the function's name and the options. Its imports are not hashed."""
        file = self._file()
        try:
            content = sha256_of(file)
        except OSError as error:
            raise SettingsError(f"external {self.factory}: {file} cannot be read: {error.strerror}") from error
        name = self.factory.rpartition(":")[2]
        return f"external {digest(content, name, json.dumps(self.model_dump(include={'options'}), sort_keys=True))}"

    def _file(self) -> Path:
        module = self.factory.rpartition(":")[0]
        if module.endswith(".py"):
            return Path(module)
        with _guard(self.factory):  # imports the parent packages
            spec = importlib.util.find_spec(module)
        if spec is None or not spec.origin or not spec.has_location:
            raise SettingsError(f"external {self.factory}: module {module} was not found; name an installed module, "
                                "or a file that ends in .py")
        return Path(spec.origin)

    def _function(self) -> Callable[..., object]:
        module, _, name = self.factory.rpartition(":")
        file = Path(module)
        if module.endswith(".py") and not file.is_file():
            raise SettingsError(f"external: {file} is not a file; give its path relative to the current folder")
        loaded = _run(str(file.resolve()), file.read_bytes()) if module.endswith(".py") else \
            importlib.import_module(module)
        function = getattr(loaded, name, None)
        if not callable(function):
            there = ", ".join(each for each, value in vars(loaded).items() if callable(value) and each[0] != "_")
            raise SettingsError(f"external {self.factory}: no function {name}; the functions are: {there or 'none'}")
        return cast("Callable[..., object]", function)

    def _create(self, chunks: Sequence[Chunk]) -> Retriever:
        with _guard(self.factory):
            made = self._function()(list(chunks), **self.options)
            # No import is needed, because code that created a LangChain retriever has imported langchain_core.
            theirs: Any = getattr(sys.modules.get("langchain_core.retrievers"), "BaseRetriever", None)
            if theirs is not None and isinstance(made, theirs):
                return FromLangChain(made, chunks, f"external {self.factory}")
            store: Any = getattr(sys.modules.get("langchain_core.vectorstores"), "VectorStore", None)
            if not callable(getattr(made, "search", None)) or (store is not None and isinstance(made, store)):
                raise SettingsError(f"external {self.factory}: it returned {type(made).__name__}; let it return a "
                                    "LangChain retriever, such as a vector store's `as_retriever()`, or an object "
                                    "with `search(queries, k)`")
            return cast("Retriever", made)


@dataclass(frozen=True, slots=True)
class ExternalRetriever:
    """Searches with a user's retriever and checks its hits."""

    inner: Retriever | None  # the retriever that the factory created; None if there are no chunks
    known: Mapping[str, Chunk]  # the chunks that may be found, by id
    factory: str
    seconds: float = _SECONDS
    work: list[SimpleQueue[Callable[[], None]]] = field(default_factory=list)  # that of the thread, if it is started

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Search. Raises CallError, which ends the question, if the user's code fails or takes too long. Raises
        SettingsError, which ends the run, if it returns anything but hits of the given chunks."""
        if self.inner is None or k < 1 or not queries:
            return [[] for _ in queries]
        done: Future[list[list[Hit]]] = Future()

        def work() -> None:
            try:
                done.set_result(self._search(queries, k))
            except (RagbedError, KeyboardInterrupt) as error:
                done.set_exception(error if isinstance(error, RagbedError) else CallError(
                    f"external {self.factory}: KeyboardInterrupt", "retriever", 0))

        if not self.work:
            self.work.append(_start_worker())
        self.work[0].put(work)
        try:
            return done.result(self.seconds)
        except TimeoutError:
            self.work.clear()  # the next search gets another thread
            raise CallError(f"external {self.factory}: no result within {self.seconds:g} seconds", "retriever",
                            0) from None

    def _search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        with _guard(self.factory, lambda line: CallError(line, "retriever", 0)):
            assert self.inner is not None
            found: Any = self.inner.search(list(queries), k)
            if not isinstance(found, list) or len(found) != len(queries) or not all(map(_are_hits, found)):
                raise SettingsError(f"external {self.factory}: search did not return a list of hits per query")
            return [[self._check_hit(hit, rank) for rank, hit in enumerate(distinct(hits)[:k], 1)] for hits in found]

    def _check_hit(self, hit: Hit, rank: int) -> Hit:
        chunk = self.known.get(hit.chunk.id)
        if chunk is None:
            raise SettingsError(f"external {self.factory}: it returned a chunk that it was not given")
        score = number(hit.score)
        if score is None:
            raise SettingsError(f"external {self.factory}: the score {hit.score!r:.80} is not a number")
        return Hit(chunk, score, rank, "external")


def _start_worker() -> SimpleQueue[Callable[[], None]]:
    """Start a thread that does the work of a queue, and return the queue. The same thread does all searches, because
    databases may be bound to theirs. It is a daemon, so that the process need not wait for code that blocks."""
    queue: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def run() -> None:
        while True:
            queue.get()()

    threading.Thread(target=run, name="external", daemon=True).start()
    return queue


def _are_hits(hits: Any) -> bool:
    return isinstance(hits, list) and all(
        isinstance(hit, Hit) and isinstance(hit.chunk, Chunk) and isinstance(hit.chunk.id, str) for hit in hits)


@cache
def _run(path: str, source: bytes) -> ModuleType:
    """Run a file as a module, once per content. Its folder is not added to the import path."""
    loader = _Source(f"ragbed_external_{digest(path, source.hex())}", path)
    spec = importlib.util.spec_from_file_location(loader.name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[loader.name] = module  # dataclasses look up their module here
    loader.exec_module(module)
    return module


class _Source(SourceFileLoader):
    """Always compiles the file. Python's cache compares time and size only, and could return an old version."""

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = self.source_to_code(self.get_data(self.path), self.path)
        return code
