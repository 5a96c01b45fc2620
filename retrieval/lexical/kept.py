"""Postings kept on disk: built once, then mapped into memory."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Lock
from weakref import WeakValueDictionary

from documents.paths import cache_dir
from retrieval.lexical.postings import Postings
from retrieval.storage.folder import alone
from retrieval.storage.kept import is_whole, keep

_OPEN: WeakValueDictionary[Path, Postings] = WeakValueDictionary()
_LOCK = Lock()


def kept(key: str, build: Callable[[], Postings]) -> Postings:
    """The postings of that key: open already, else from the cache folder, else built and put there.

    A process that needs what another is building waits for it. What is damaged is built anew.

    Args:
        key: a hash of all that the postings depend on.

    Raises:
        SettingsError: the cache folder cannot be written.
    """
    folder = cache_dir() / "bm25" / key
    with _LOCK:
        found = _OPEN.get(folder) or _read(folder)
        if found is None:
            with alone(folder, wait=True):
                found = _read(folder) or _written(folder, build())
        _OPEN[folder] = found
        return found


def _read(folder: Path) -> Postings | None:
    """The postings in a folder; None where they are not there or not whole."""
    import bm25s
    import numpy as np

    if not is_whole(folder):
        return None
    scorer = bm25s.BM25.load(folder, mmap=True, allow_pickle=False, show_progress=False)
    # What is mapped is read as plain arrays: slicing a memmap costs more than the sums over the slice.
    scorer.scores |= {name: np.asarray(scorer.scores[name]) for name in ("data", "indices", "indptr")}
    return Postings(scorer)


def _written(folder: Path, postings: Postings) -> Postings:
    if postings.scorer is None:
        return postings  # costs nothing to build
    keep(folder, lambda fresh: postings.scorer.save(fresh, allow_pickle=False, show_progress=False))
    return _read(folder) or postings
