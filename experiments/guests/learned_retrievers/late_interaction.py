"""Late interaction: compare every token of the query with every token of the passage."""
from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ragbed.documents.paths import cache_dir
from ragbed.documents.types import digest
from ragbed.retrieval.model_files import (
    BATCH,
    LOAD_OPTIONS,
    MINILM,
    PROMPTS,
    ModelFolder,
    Precision,
    check_kind,
    copy_tokenizer,
    cut_by_tokens,
    find_model,
    loading,
    model_settings,
    running,
)
from ragbed.retrieval.rerankers.reranker import Reranker
from ragbed.retrieval.storage.cache import VectorStore
from ragbed.retrieval.storage.files import mark_new
from ragbed.retrieval.types import Matrix, RerankerDeps

if TYPE_CHECKING:
    from sentence_transformers import MultiVectorEncoder
    from tokenizers import Tokenizer

_WHAT = "reranking model"
_MAX_KEPT = 512 << 20  # bytes of passages' token vectors to keep in memory: about 2,700 abstracts at 384 dimensions
_MULTI = {"MultiVectorEncoder", "ColBERT"}


@lru_cache(2)
def token_vectors(folder: ModelFolder, precision: Precision) -> TokenVectors:
    """Return the token vectors of this model, which all retrievers share."""
    return TokenVectors(folder, precision)


def token_store(folder: ModelFolder, precision: Precision) -> VectorStore:
    """Open the cache file with the token vectors of passages."""
    file = cache_dir() / "tokens" / f"{digest(folder.identity, precision)}.sqlite"
    store = VectorStore(file, "<f2")
    mark_new(file)
    return store


class TokenVectors:
    """Computes the token vectors of texts with a model on the CPU. Thread-safe. Token vectors of passages have unit
    length and half precision, and the most recent ones stay in memory, up to `kept` bytes."""

    def __init__(self, folder: ModelFolder, precision: Precision = "float32", kept: int = _MAX_KEPT) -> None:
        self._folder, self._precision, self._room = folder, precision, kept
        self._kept: OrderedDict[str, Matrix] = OrderedDict()
        self._bytes = 0
        self._lock = threading.RLock()

    def queries(self, texts: Sequence[str]) -> list[Matrix]:
        """Return an array of shape (tokens, dimension), float32, per query. Longer queries are truncated. If the model
        was trained for several vectors per text, they have unit length. Otherwise they have their original length."""
        with self._lock:
            model = self._model
            with running(self._precision):
                return [vectors.astype("<f4") for vectors in model.encode_query(
                    list(texts), batch_size=BATCH, show_progress_bar=False, convert_to_numpy=True)]

    def passages(self, texts: Sequence[str], store: VectorStore | None = None) -> list[Matrix]:
        """Return an array of shape (tokens, dimension), float16, per passage, with the tokens of all its windows.
        Vectors that are in `store` are not computed again, and new ones are stored there."""
        with self._lock:
            keys = [digest(text) for text in texts]
            found = {key: self._kept[key] for key in keys if key in self._kept}
            missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
            found |= self._load_or_embed(missing, store)
            for key in keys:
                if key not in self._kept:
                    self._kept[key] = found[key]
                    self._bytes += found[key].nbytes
                self._kept.move_to_end(key)
                while self._bytes > self._room:
                    self._bytes -= self._kept.popitem(last=False)[1].nbytes
        return [found[key] for key in keys]

    def _load_or_embed(self, texts: dict[str, str], store: VectorStore | None) -> dict[str, Matrix]:
        width = self._model.get_embedding_dimension() or 1 if store and texts else 1
        found = {key: flat.reshape(-1, width) for key, flat in store.read(list(texts)).items()} if store else {}
        missing = [key for key in texts if key not in found]
        fresh = dict(zip(missing, self._embed([texts[key] for key in missing]), strict=True))
        if store and fresh:
            store.write(fresh)
        return found | fresh

    def _embed(self, texts: Sequence[str]) -> list[Matrix]:
        if not texts:
            return []
        model, spans = self._model, cut_by_tokens(self._tokenizer, texts, self._window)
        pieces = [text[start:end] for text, cuts in zip(texts, spans, strict=True) for start, end in cuts]
        with running(self._precision):
            vectors = iter(model.encode_document(pieces, batch_size=BATCH, show_progress_bar=False,
                                                 convert_to_numpy=True, normalize_embeddings=True))
        return [np.concatenate([next(vectors) for _ in cuts]).astype("<f2") for cuts in spans]

    @cached_property
    def _window(self) -> int:
        model: Any = self._model
        longest = min(size for size in (model.max_seq_length, model[0].document_length, 512 * 64) if size)
        prompt = self._tokenizer.encode(model.prompts.get("document") or "", add_special_tokens=False)
        return int(max(longest - model.tokenizer.num_special_tokens_to_add(pair=False) - len(prompt.ids), 1))

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return copy_tokenizer(self._model)

    @cached_property
    def _model(self) -> MultiVectorEncoder:
        with loading(self._folder, _WHAT) as path:
            from sentence_transformers import MultiVectorEncoder, SentenceTransformer
            from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

            if is_multi(self._folder):
                return MultiVectorEncoder(path, **LOAD_OPTIONS)
            model = SentenceTransformer(path, **LOAD_OPTIONS)  # the model's layers without the pooling
            prompts = {name: text for name, text in model.prompts.items() if text}
            return MultiVectorEncoder(modules=[model[0], MultiVectorMask()], device="cpu", prompts=prompts)


def is_multi(folder: ModelFolder) -> bool:
    """Tell whether the model was trained for several vectors per text."""
    saved, config = (model_settings(folder.path / name) for name in (PROMPTS, "config.json"))
    return saved.get("model_type") in _MULTI or "HF_ColBERT" in (config.get("architectures") or ())


_GROUP = 200_000  # characters whose token vectors are computed together: about 80 MB in memory
_EMPTY_SCORE = -1.0  # score of a passage without tokens; no cosine is lower


class LateInteraction(Reranker):
    """Scores a passage by the mean, over the query's tokens, of the highest cosine with any of its tokens (MaxSim).

        score(q, d) = sum_i max_j q_i . d_j / sum_i |q_i|

    Here q_i is the vector of a token of the query, and d_j the unit vector of a token of the passage. If the q_i are
    unit vectors, this is the published sum divided by the number of tokens, which gives the same order (Khattab and
    Zaharia, "ColBERT", SIGIR 2020, equation 3). A passage longer than the model's window is split into windows. A
    query is truncated to the window.

    Use a model that was trained for late interaction, such as `lightonai/LateOn` or
    `answerdotai/answerai-colbert-small-v1`. Other sentence-transformers models, such as the default, were trained for
    one vector per text. For them, the length of a query token's vector is its weight in the mean, and the reranker's
    score has the weight 0.5; the first retriever's score has the other half. This was chosen on the 809 training claims
    of SciFact with MiniLM over `fused`: nDCG@10 is 0.733 for `fused`, 0.731 for late interaction alone (0.724 with unit
    vectors, p = 0.03) and 0.746 for both. Leaving out special tokens or punctuation made little difference.

    Attributes:
        model: a folder or hub name, found like embedders.
        precision: precision of the computation.
        keep: whether to store token vectors of passages in the cache for later runs. They take about 0.2 MB per
            abstract and are deleted after 90 days without use.
    """

    kind: Literal["late_interaction"] = "late_interaction"
    model: str = MINILM
    precision: Precision = "float32"
    keep: bool = False

    def open(self, deps: RerankerDeps) -> MaxSim:
        folder = self.folder()
        return MaxSim(token_vectors(folder, self.precision), token_store(folder, self.precision) if self.keep else None)

    def folder(self) -> ModelFolder:
        """Return the model's folder. Raises ModelError if there is none, or its model gives no vectors of tokens."""
        return check_kind(find_model(self.model, _WHAT), "a late interaction or embedding model", "multi_vector",
                          "embedder")

    def weight(self) -> float:
        """Return 0.5 for a model that was not trained for late interaction, and 1 for others."""
        return 1.0 if is_multi(self.folder()) else 0.5

    def identity(self) -> str:
        return f"late_interaction {digest(self.precision, self.folder().identity)}"


class MaxSim:
    """Scores passages by late interaction. Token vectors of passages are kept in `store`, or only in memory."""

    def __init__(self, vectors: TokenVectors, store: VectorStore | None = None) -> None:
        self._vectors, self._store = vectors, store

    def scores(self, queries: Sequence[str], texts: Sequence[Sequence[str]]) -> list[list[float]]:
        """Return scores from -1 to 1. Each distinct text is embedded once, even if it is a candidate of several
        queries. Raises ModelError if the model cannot be loaded."""
        readers: dict[str, list[int]] = {}
        for place, own in enumerate(texts):
            for text in dict.fromkeys(own):
                readers.setdefault(text, []).append(place)
        asked = self._vectors.queries(queries) if readers else []
        scored: dict[tuple[int, str], float] = {}
        ordered = sorted(readers, key=len)
        ends = accumulate(map(len, ordered))
        for _, those in groupby(zip(ordered, ends, strict=True), key=lambda one: one[1] // _GROUP):
            group = [text for text, _ in those]
            for text, passage in zip(group, self._vectors.passages(group, self._store), strict=True):
                places = readers[text]
                found = maxsim([asked[place] for place in places], passage)
                scored |= {(place, text): score for place, score in zip(places, found, strict=True)}
        return [[scored[place, text] for text in own] for place, own in enumerate(texts)]


def maxsim(queries: Sequence[Matrix], passage: Matrix) -> list[float]:
    """Return the score of one passage for each query, by the formula of `LateInteraction`.

    Args:
        queries: token vectors of each query, of shape (tokens, dimension), at least one token.
        passage: unit vectors of its tokens, of shape (tokens, dimension), in any precision.
    """
    if not len(passage):
        return [_EMPTY_SCORE] * len(queries)
    tokens = np.concatenate(queries)
    starts = np.cumsum([0, *map(len, queries[:-1])])
    nearest = (tokens @ passage.astype(np.float32).T).max(axis=1)
    sums, lengths = (np.add.reduceat(of, starts) for of in (nearest, np.linalg.norm(tokens, axis=1)))
    scores: list[float] = (sums / lengths).tolist()
    return scores
