"""One's own retriever, made by a function in a file or package of one's own."""
from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Literal, cast

from pydantic import Field, JsonValue, field_validator

from ragbed.documents.errors import CallError, RagbedError, SettingsError
from ragbed.documents.types import Chunk, digest
from ragbed.documents.user_code import UserCode
from ragbed.retrieval.conditions import Placed
from ragbed.retrieval.hits import distinct, number
from ragbed.retrieval.langchain import FromLangChain
from ragbed.retrieval.rerankers.reranker import Aids
from ragbed.retrieval.retrievers.kind import RetrieverKind
from ragbed.retrieval.storage.files import sha256_of
from ragbed.retrieval.types import Collection, Hit, Retriever


def _running(factory: str, fail: Callable[[str], RagbedError] = SettingsError) -> UserCode:
    return UserCode(lambda said: fail(f"external {factory}: {said}"))


class External(RetrieverKind):
    """A retriever that `factory` makes of the chunks: one of LangChain's, or any with ragbed's `search(queries, k)`.

    The factory is called with a list of the chunks that may be found, and with `options` by name. What is found must be
    among them; a document of LangChain's is known by the metadata `chunk` (see `retrieval.langchain.as_documents`), its
    id or its text. The same queries must find the same, as with every retriever.

    Attributes:
        factory: `my_file.py:make` or `package.module:make`. A path is read as every path of the settings; it is run
            when the retriever is opened.
        options: what the factory is given beside the chunks. They stand in the run's settings, so a key does not
            belong here: let the factory read it from the environment.
    """

    kind: Literal["external"] = "external"
    factory: str
    options: Mapping[str, JsonValue] = Field(default_factory=dict)

    @field_validator("factory")
    @classmethod
    def _shape(cls, factory: str) -> str:
        module, _, name = factory.rpartition(":")
        if not module or not name.isidentifier() or not module.isprintable():
            raise ValueError("expected a file or module, a colon and the name of a function, as in my_file.py:make")
        return factory

    @property
    def embeds(self) -> bool:
        return False

    def open(self, collection: Collection, aids: Aids) -> ExternalRetriever:
        among = collection.among
        chunks = [chunk for row, chunk in enumerate(collection.chunks) if among is None or among[row]]
        inner = self._made(chunks) if chunks else Placed((), "external")
        return ExternalRetriever(inner, {chunk.id: chunk for chunk in chunks}, self.factory)

    def identity(self) -> str:
        """Hash the file's bytes, wherever it is, the function's name and the options; not what it imports."""
        file = self._place()
        try:
            content = sha256_of(file)
        except OSError as error:
            raise SettingsError(f"external {self.factory}: {file} cannot be read: {error.strerror}") from error
        name = self.factory.rpartition(":")[2]
        return f"external {digest(content, name, json.dumps(self.model_dump(include={'options'}), sort_keys=True))}"

    def _place(self) -> Path:
        module = self.factory.rpartition(":")[0]
        if module.endswith(".py"):
            return Path(module)
        with _running(self.factory):  # the packages that it is in are imported
            spec = importlib.util.find_spec(module)
        if spec is None or not spec.origin or not spec.has_location:
            raise SettingsError(f"external {self.factory}: there is no module {module}: name one that is installed, or "
                                "a file that ends in .py")
        return Path(spec.origin)

    def _function(self) -> Callable[..., object]:
        module, _, name = self.factory.rpartition(":")
        file = Path(module)
        if module.endswith(".py") and not file.is_file():
            raise SettingsError(f"external: {file} is no file: name one by its path from the folder that ragbed runs "
                                "in")
        loaded = _run(str(file.resolve()), file.read_bytes()) if module.endswith(".py") else \
            importlib.import_module(module)
        function = getattr(loaded, name, None)
        if not callable(function):
            there = ", ".join(each for each, value in vars(loaded).items() if callable(value) and each[0] != "_")
            raise SettingsError(f"external {self.factory}: there is no function {name}; there are: {there or 'none'}")
        return cast("Callable[..., object]", function)

    def _made(self, chunks: Sequence[Chunk]) -> Retriever:
        with _running(self.factory):
            made = self._function()(list(chunks), **self.options)
            # Whoever made one of LangChain's has imported it.
            theirs: Any = getattr(sys.modules.get("langchain_core.retrievers"), "BaseRetriever", None)
            if theirs is not None and isinstance(made, theirs):
                return FromLangChain(made, chunks, f"external {self.factory}")
            store: Any = getattr(sys.modules.get("langchain_core.vectorstores"), "VectorStore", None)
            if not callable(getattr(made, "search", None)) or (store is not None and isinstance(made, store)):
                raise SettingsError(f"external {self.factory}: it made a {type(made).__name__}: let it return a "
                                    "retriever of LangChain's, such as a vector store's `as_retriever()`, or what has "
                                    "`search(queries, k)`")
            return cast("Retriever", made)


@dataclass(frozen=True, slots=True)
class ExternalRetriever:
    """A retriever that a factory made, whose hits are checked: a run must not rest on a mistake."""

    inner: Retriever
    known: Mapping[str, Chunk]
    factory: str

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Raises CallError where it fails, which ends its question alone, and SettingsError where it finds anything but
        hits of the chunks that it was made of."""
        if k < 1 or not queries:
            return [[] for _ in queries]
        with _running(self.factory, lambda said: CallError(said, "retriever", 0)):
            found: Any = self.inner.search(list(queries), k)
            if not isinstance(found, list) or len(found) != len(queries) or not all(map(_are_hits, found)):
                raise SettingsError(f"external {self.factory}: search returned what is no list of hits for each query")
            return [[self._checked(hit, rank) for rank, hit in enumerate(distinct(hits)[:k], 1)] for hits in found]

    def _checked(self, hit: Hit, rank: int) -> Hit:
        chunk = self.known.get(hit.chunk.id)
        if chunk is None:
            raise SettingsError(f"external {self.factory}: it found what it was not given, {hit.chunk.id!r:.80}")
        score = number(hit.score)
        if score is None:
            raise SettingsError(f"external {self.factory}: the score {hit.score!r:.80} is no number")
        return Hit(chunk, score, rank, "external")


def _are_hits(hits: Any) -> bool:
    return isinstance(hits, list) and all(
        isinstance(hit, Hit) and isinstance(hit.chunk, Chunk) and isinstance(hit.chunk.id, str) for hit in hits)


@cache
def _run(path: str, source: bytes) -> ModuleType:
    """The module of a file, run once for that content. Its folder is not searched for others."""
    loader = _Source(f"ragbed_external_{digest(path, source.hex())}", path)
    spec = importlib.util.spec_from_file_location(loader.name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[loader.name] = module  # dataclasses look their module up
    loader.exec_module(module)
    return module


class _Source(SourceFileLoader):
    """Compiles what is in the file: by its time and size alone, Python would take an old result for the new."""

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = self.source_to_code(self.get_data(self.path), self.path)
        return code
