"""What every kind of vector index has: its settings, and how it is built and opened."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol

from ragbed.retrieval.tagged_union import KindModel
from ragbed.retrieval.types import Matrix, Vectors


class BuiltVectors(Vectors, Protocol):
    """Vectors that a build has indexed but not yet written."""

    @property
    def settings(self) -> VectorKind:
        """The kind with all settings resolved for these vectors, for the manifest."""
        ...

    def describe(self) -> str:
        """Say in one sentence how the vectors are searched, and why."""
        ...

    def write(self, folder: Path) -> None:
        """Write files whose names begin with `vectors.` into the folder. Raises OSError, such as for a full disk."""
        ...

    def remove_outdated(self, previous: Vectors | None) -> None:
        """Remove data that only the `previous` vectors used, once the new index is in place."""
        ...


@dataclass(frozen=True, slots=True)
class VectorTask:
    """Vectors to index, with what building needs to know."""

    vectors: Matrix  # float32 of shape (n, d), in memory or mapped from a file
    why: str  # why this kind was chosen, for `describe`
    out: Path  # folder of the index
    embedder: str  # identity of the embedder
    previous: Vectors | None  # vectors of the previous index, if they are not in its folder
    advance: Callable[[int], None]  # called with the number of further vectors that were added


class VectorKind(KindModel):
    """Settings of one kind of vector index, which can build and open it. Guests add kinds in the slot `vectors`."""

    in_folder: ClassVar[bool] = True  # whether the vectors are in the index folder, not in an external store

    def choose(self, count: int, dimension: int) -> ChosenVectors:
        """Resolve the settings that depend on the vectors. Raises SettingsError if a setting does not suit them."""
        return ChosenVectors(self, "as set")

    def matches(self, built: VectorKind) -> bool:
        """Tell whether these settings would build the same index as `built`. Both are results of `choose`."""
        return self == built

    def size(self, count: int, dimension: int) -> int:
        """Return the size of the index in its file and in memory, in bytes, accurate to a few per cent."""
        raise NotImplementedError

    def build_seconds(self, count: int, dimension: int) -> float:
        """Estimate the seconds that building takes on this machine."""
        return 0.0

    def phrase(self) -> str:
        """Describe how the vectors are searched, to complete the sentence "300 vectors ..."."""
        raise NotImplementedError

    def build(self, task: VectorTask) -> BuiltVectors:
        """Index vectors. Call this method on the kind that `choose` returns."""
        raise NotImplementedError

    def open(self, folder: Path, dimension: int) -> Vectors:
        """Open the vectors of an index folder. Raises IndexFolderError if they cannot be read."""
        raise NotImplementedError

    @property
    def rounds(self) -> bool:
        """Whether vectors are rounded to 16 bits before they are indexed. Then the stored vectors give the same index
        again, but not an index of another kind."""
        return False

    def content_key(self) -> str:
        """Return text that differs between settings that find different neighbours. Empty for exact search."""
        return self.model_dump_json()

    def allow_server(self) -> None:
        """If these settings name a server, remember that the user allowed it."""

    def check_server(self) -> None:
        """Raise IndexFolderError if these settings name a server that does not answer."""


class ChosenVectors(NamedTuple):
    """A kind with all settings resolved, and the reason for its choice."""

    settings: VectorKind
    why: str
