"""Learned sparse retrieval: a model weighs the words of a text, and an inverted index finds the chunks that share them.

The vectors of passages are stored in the cache by hash of the text, so that a changed collection encodes only what is
new. The inverted index is built from them in memory.
"""
from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from ragbed.documents.paths import cache_dir
from ragbed.documents.types import digest
from ragbed.retrieval.model_files import (
    BATCH,
    LOAD_OPTIONS,
    ModelFolder,
    check_kind,
    copy_tokenizer,
    cut_by_tokens,
    find_model,
    loading,
    running,
)
from ragbed.retrieval.storage.cache import VectorStore
from ragbed.retrieval.storage.files import mark_new
from ragbed.retrieval.types import DECIMALS, Collection, Hit, Matrix, RerankerDeps, RetrieverKind

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix, csr_matrix
    from sentence_transformers import SparseEncoder

_WHAT = "sparse encoder"
_GROUP = 64  # passages to encode between two writes to the cache
_QUERIES = 64  # queries whose scores are computed together


class Sparse(RetrieverKind):
    """Ranks chunks by the inner product of learned word weights (SPLADE and other sparse encoders).

    The model is a `SparseEncoder` of sentence-transformers (Formal et al., "SPLADE v2", arXiv:2109.10086). A passage
    longer than the model's window is read by windows, and each word gets its highest weight. A query is truncated to
    the window. Chunks that share no word with the query are not found.

    Attributes:
        model: a folder or hub name, found like embedders.
    """

    kind: Literal["sparse"] = "sparse"
    model: str = Field(min_length=1)

    @property
    def embeds(self) -> bool:
        return False

    def open(self, collection: Collection, deps: RerankerDeps) -> SparseRetriever:
        return SparseRetriever(collection, sparse_vectors(self._folder()))

    def identity(self) -> str:
        return f"sparse {self._folder().identity}"

    def _folder(self) -> ModelFolder:
        return check_kind(find_model(self.model, _WHAT), "a sparse encoder", "sparse", "masked")


@lru_cache(2)
def sparse_vectors(folder: ModelFolder) -> SparseVectors:
    """Return the vectors of this model, which all retrievers share."""
    return SparseVectors(folder)


class SparseVectors:
    """Computes sparse vectors by a model on the CPU. Thread-safe. A vector is an array of shape (words, 2): the number
    of each word, in order, and its weight."""

    def __init__(self, folder: ModelFolder) -> None:
        self._folder = folder
        self._lock = threading.RLock()
        file = cache_dir() / "sparse" / f"{digest(folder.identity)}.sqlite"
        self._store = VectorStore(file)
        mark_new(file)

    def queries(self, texts: Sequence[str]) -> list[Matrix]:
        """Return the vector of each query."""
        with self._lock, running("float32"):
            return _split(self._model.encode_query(list(texts), **self._options))

    def passages(self, texts: Sequence[str]) -> list[Matrix]:
        """Return the vector of each passage, from the cache or by the model."""
        with self._lock:
            by_key = {digest(text): text for text in texts}
            found = {key: flat.reshape(-1, 2) for key, flat in self._store.read(list(by_key)).items()}
            missing = sorted(by_key.keys() - found.keys(), key=lambda key: (len(by_key[key]), key))
            for first in range(0, len(missing), _GROUP):
                group = missing[first:first + _GROUP]
                fresh = dict(zip(group, self._encode([by_key[key] for key in group]), strict=True))
                self._store.write({key: vector.reshape(-1) for key, vector in fresh.items()})
                found |= fresh
            return [found[digest(text)] for text in texts]

    def _encode(self, texts: Sequence[str]) -> list[Matrix]:
        spans = cut_by_tokens(copy_tokenizer(self._model), texts, self._window)
        pieces = [text[start:end] for text, cuts in zip(texts, spans, strict=True) for start, end in cuts]
        with running("float32"):
            windows = _split(self._model.encode_document(pieces, **self._options))
        ends = [0, *accumulate(map(len, spans))]
        return [_highest(windows[first:end]) for first, end in pairwise(ends)]

    @cached_property
    def _window(self) -> int:
        model: Any = self._model
        prompt = model.tokenizer(model.prompts.get("document") or "", add_special_tokens=False)["input_ids"]
        special = model.tokenizer.num_special_tokens_to_add(pair=False)
        return int(max((model.max_seq_length or 512) - special - len(prompt), 1))

    @property
    def _options(self) -> dict[str, Any]:
        return {"batch_size": BATCH, "show_progress_bar": False, "convert_to_sparse_tensor": True, "save_to_cpu": True}

    @cached_property
    def _model(self) -> SparseEncoder:
        with loading(self._folder, _WHAT) as path:
            from sentence_transformers import SparseEncoder

            model: SparseEncoder = SparseEncoder(path, **LOAD_OPTIONS)
        return model


def _split(tensor: Any) -> list[Matrix]:
    """Return the vector of each row of a sparse tensor of shape (texts, words)."""
    whole = tensor.coalesce()
    rows, words = whole.indices().numpy()
    weights = whole.values().numpy()
    starts = np.searchsorted(rows, np.arange(whole.shape[0] + 1))
    pairs = np.stack([words.astype(np.float32), weights.astype(np.float32)], axis=1)
    return [pairs[first:end] for first, end in pairwise(starts)]


def _highest(vectors: Sequence[Matrix]) -> Matrix:
    """Return the vector with the highest weight of each word."""
    if len(vectors) == 1:
        return vectors[0]
    every = np.concatenate(vectors)
    words, places = np.unique(every[:, 0], return_inverse=True)
    weights = np.full(len(words), -np.inf, np.float32)
    np.maximum.at(weights, places, every[:, 1])
    return np.stack([words, weights], axis=1)


class SparseRetriever:
    """Learned sparse retrieval over a collection. The inverted index is built at the first search."""

    def __init__(self, collection: Collection, vectors: SparseVectors) -> None:
        self._collection, self._vectors = collection, vectors
        self._lock = threading.Lock()

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return the hits of each query, ties by row. Raises ModelError if the model cannot be loaded."""
        with self._lock:
            index = self._index
        found: list[list[Hit]] = []
        for first in range(0, len(queries), _QUERIES):
            asked = _to_rows(self._vectors.queries(queries[first:first + _QUERIES]), index.shape[0])
            for scores in (asked @ index).toarray():
                found.append(self._best(np.round(scores, DECIMALS), k))
        return found

    def _best(self, scores: Matrix, k: int) -> list[Hit]:
        among = self._collection.among
        rows = np.flatnonzero(scores > 0 if among is None else (scores > 0) & among)
        best = rows[np.argsort(-scores[rows], kind="stable")[:k]]
        return [Hit(self._collection.chunks[row], round(float(scores[row]), DECIMALS), rank, "sparse")
                for rank, row in enumerate(best.tolist(), 1)]

    @cached_property
    def _index(self) -> csc_matrix:
        passages = self._vectors.passages(list(self._collection.texts()))
        return _to_rows(passages, 1 + int(max((one[-1, 0] for one in passages if len(one)), default=0))).T


def _to_rows(vectors: Sequence[Matrix], size: int) -> csr_matrix:
    """Return a sparse matrix of shape (vectors, size), without words that no passage has."""
    from scipy.sparse import csr_matrix

    vectors = [one[one[:, 0] < size] for one in vectors]
    every = np.concatenate([*vectors, np.zeros((0, 2), np.float32)])
    return csr_matrix((every[:, 1], every[:, 0].astype(np.int32), [0, *accumulate(map(len, vectors))]),
                      (len(vectors), size))
