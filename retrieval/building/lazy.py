"""The embedder of a build, opened when something has to be cut or embedded."""
from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from retrieval.embedder import Embedder
from retrieval.embedders.opening import choice_of
from retrieval.storage.cache import CachedEmbedder
from retrieval.storage.manifest import EmbedderEntry, Manifest, check_embedder


class LazyEmbedder:
    """An embedder that is there when it is needed.

    Args:
        opens: gives the embedder.
        manifest: of the index that is carried on with the embedder it was made with; None where any will do.
        folder: of that index.
    """

    def __init__(self, opens: Callable[[], Embedder], manifest: Manifest | None, folder: Path) -> None:
        self._opens = opens
        self._manifest = manifest
        self._folder = folder
        self._embedder: CachedEmbedder | None = None

    @cached_property
    def opened(self) -> CachedEmbedder:
        """Raises ModelError where it is not on this machine, IndexFolderError where it is not the index's."""
        self._embedder = CachedEmbedder(self._opens())
        if self._manifest is not None:
            check_embedder(self._manifest, self._embedder, self._folder)
        return self._embedder

    @property
    def identity(self) -> str:
        return self.opened.identity if self._manifest is None else self._manifest.embedder.identity

    @property
    def dimension(self) -> int:
        return self.opened.dimension if self._manifest is None else self._manifest.embedder.dimension

    @property
    def embedded(self) -> int:
        """Texts that the model embedded."""
        return self._embedder.embedded if self._embedder else 0

    def entry(self) -> EmbedderEntry:
        """What the manifest says of it."""
        if self._manifest is not None:
            return self._manifest.embedder
        used = self.opened
        return EmbedderEntry(name=used.name, identity=used.identity, dimension=used.dimension, window=used.window,
                             choice=choice_of(used.inner))
