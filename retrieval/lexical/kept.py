"""Postings kept on disk: built once, then mapped into memory."""
from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock
from weakref import WeakValueDictionary

from documents.errors import IndexFolderError, SettingsError
from documents.paths import cache_dir
from retrieval.lexical.postings import Postings
from retrieval.storage.files import sha256_of, unchanged_sha256, unwritable
from retrieval.storage.folder import replaced
from retrieval.storage.lock import hold

_SUMS = "sums.json"
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
            with _alone(folder):
                found = _read(folder) or _written(folder, build())
        _OPEN[folder] = found
        return found


def _read(folder: Path) -> Postings | None:
    """The postings in a folder; None where they are not there or not whole."""
    import bm25s
    import numpy as np

    try:
        sums = json.loads((folder / _SUMS).read_bytes())
        if not sums or any(unchanged_sha256(folder / name) != sum for name, sum in sums.items()):
            return None
    except (OSError, ValueError, AttributeError):
        return None
    scorer = bm25s.BM25.load(folder, mmap=True, allow_pickle=False, show_progress=False)
    # What is mapped is read as plain arrays: slicing a memmap costs more than the sums over the slice.
    scorer.scores |= {name: np.asarray(scorer.scores[name]) for name in ("data", "indices", "indptr")}
    return Postings(scorer)


def _written(folder: Path, postings: Postings) -> Postings:
    if postings.scorer is None:
        return postings  # costs nothing to build
    try:
        with replaced(folder) as fresh:
            postings.scorer.save(fresh, allow_pickle=False, show_progress=False)
            sums = {path.name: sha256_of(path) for path in sorted(fresh.iterdir())}
            (fresh / _SUMS).write_text(json.dumps(sums), encoding="utf-8")
    except OSError as error:
        raise unwritable(error) from error
    except IndexFolderError as error:
        raise SettingsError(f"{error}; set RAGBED_CACHE to a folder that can be written") from error
    return _read(folder) or postings


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    lock = cache_dir() / "locks" / f"bm25-{folder.name}"
    while True:
        try:
            held = hold(lock)
            break
        except BlockingIOError:
            time.sleep(0.1)
        except OSError as error:
            raise unwritable(error) from error
    with closing(held):
        yield
