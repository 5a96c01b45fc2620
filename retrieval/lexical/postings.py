"""Postings: what each token adds to a chunk's score, by bm25s; large ones are kept on disk and mapped into memory."""
from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Literal
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from documents.places import cache_dir
from retrieval.lexical.tokens import Tokenizer
from retrieval.storage.folder import alone, is_whole, keep

Scores = NDArray[np.float32]
Bm25Method = Literal["lucene", "robertson", "atire", "bm25l", "bm25+"]


class Postings:
    """The scores of every token in every chunk that holds it, computed once; `scorer` is None where no chunk has a
    token. Searching is thread-safe."""

    def __init__(self, scorer: Any) -> None:
        self.scorer = scorer

    @classmethod
    def build(cls, texts: Iterable[str], tokenizer: Tokenizer, weights: Mapping[str, Any]) -> Postings:
        """Build the postings of texts. Of their tokens, numbers alone are in memory: four bytes for each. `weights`:
        bm25s's parameters; see `retrieval.retrievers.bm25`."""
        import bm25s

        vocabulary: dict[str, int] = {}
        held = [array("i", [vocabulary.setdefault(token, len(vocabulary)) for token in tokens])
                for tokens in tokenizer.tokens(texts)]
        if not vocabulary:
            return cls(None)
        scorer = bm25s.BM25(**weights)
        scorer.index(bm25s.tokenization.Tokenized(ids=held, vocab=vocabulary), create_empty_token=False,
                     show_progress=False)
        return cls(scorer)

    def best(self, tokens: Sequence[str], k: int, among: Scores | None = None) -> list[tuple[int, float]]:
        """Return at most `k` rows that hold any of the tokens, with their score, best first, then by row. A token that
        stands twice counts twice. `among`, shape (chunks,), is 1 for the rows that may be found and 0 for the others;
        None for all."""
        ids = self.scorer.get_tokens_ids(tokens) if self.scorer else []
        if not ids or k < 1:
            return []
        scores: Scores = self.scorer.get_scores_from_ids(ids, weight_mask=among)
        absent = self.scorer.nonoccurrence_array  # what a chunk without the token has: BM25L and BM25+ give it some
        rows = np.flatnonzero(scores > (0.0 if absent is None else float(absent[ids].sum())))
        if len(rows) > k:
            found = scores[rows]
            rows = rows[found >= np.partition(found, len(found) - k)[len(found) - k]]
        best = rows[np.argsort(-scores[rows], kind="stable")[:k]]
        return list(zip(best.tolist(), scores[best].tolist(), strict=True))


_OPEN: WeakValueDictionary[Path, Postings] = WeakValueDictionary()
_LOCK = Lock()


def kept(key: str, build: Callable[[], Postings]) -> Postings:
    """Return the postings of that key, a hash of all that they depend on: open already, else from the cache folder,
    else built and put there. A process that needs what another is building waits for it. What is damaged is built anew.
    Raises SettingsError where the cache folder cannot be written."""
    folder = cache_dir() / "bm25" / key
    with _LOCK:
        found = _OPEN.get(folder) or _read(folder)
        if found is None:
            with alone(folder, wait=True):
                found = _read(folder)
                if found is None:
                    found = build()
                    if found.scorer is not None:  # else it costs nothing to build
                        write = partial(found.scorer.save, allow_pickle=False, show_progress=False)
                        keep(folder, write)
                        found = _read(folder) or found
        _OPEN[folder] = found
        return found


def _read(folder: Path) -> Postings | None:
    import bm25s

    if not is_whole(folder):
        return None
    scorer = bm25s.BM25.load(folder, mmap=True, allow_pickle=False, show_progress=False)
    # What is mapped is read as plain arrays: slicing a memmap costs more than the sums over the slice.
    scorer.scores |= {name: np.asarray(scorer.scores[name]) for name in ("data", "indices", "indptr")}
    return Postings(scorer)
