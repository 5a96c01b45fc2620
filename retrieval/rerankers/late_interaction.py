"""Late interaction: every token of the query against every token of the passage."""
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
from ragbed.retrieval.models import (
    BATCH,
    LOAD_OPTIONS,
    MINILM,
    PROMPTS,
    ModelFolder,
    Precision,
    copy_tokenizer,
    cut_by_tokens,
    find_model,
    loading,
    model_settings,
    running,
)
from ragbed.retrieval.rerankers.reranker import Reranker, RerankerDeps
from ragbed.retrieval.storage.cache import VectorStore
from ragbed.retrieval.storage.files import made
from ragbed.retrieval.types import Matrix

if TYPE_CHECKING:
    from sentence_transformers import MultiVectorEncoder
    from tokenizers import Tokenizer

_WHAT = "reranking model"
KEPT = 512 << 20  # bytes of passages' token vectors kept in memory: with 384 numbers a token some 2,700 abstracts
_MULTI = {"MultiVectorEncoder", "ColBERT"}


@lru_cache(2)
def token_vectors(folder: ModelFolder, precision: Precision) -> TokenVectors:
    """Return the token vectors of a model: one for all retrievers that use it, so that they share what is kept."""
    return TokenVectors(folder, precision)


def token_store(folder: ModelFolder, precision: Precision) -> VectorStore:
    """Return where the token vectors of passages are kept in the user's cache."""
    file = cache_dir() / "tokens" / f"{digest(folder.identity, precision)}.sqlite"
    store = VectorStore(file, "<f2")
    made(file)
    return store


class TokenVectors:
    """Vectors of the tokens of texts, by a model on the processor.

    Those of passages are unit vectors. They are kept in half precision, the latest `kept` bytes of them, and rounded to
    it also where they were just computed, so that a score does not depend on what is kept. Thread-safe.
    """

    def __init__(self, folder: ModelFolder, precision: Precision = "float32", kept: int = KEPT) -> None:
        self._folder, self._precision, self._room = folder, precision, kept
        self._kept: OrderedDict[str, Matrix] = OrderedDict()
        self._bytes = 0
        self._lock = threading.RLock()

    def queries(self, texts: Sequence[str]) -> list[Matrix]:
        """Return for each query an array of shape (tokens, dimension), float32; what is longer than the window is cut.
        Unit vectors where the model was trained for several a text, else of the length that its last layer gives
        them."""
        with self._lock:
            model = self._model
            with running(self._precision):
                return [vectors.astype("<f4") for vectors in model.encode_query(
                    list(texts), batch_size=BATCH, show_progress_bar=False, convert_to_numpy=True)]

    def passages(self, texts: Sequence[str], store: VectorStore | None = None) -> list[Matrix]:
        """Return for each passage an array of shape (tokens, dimension), float16, of the tokens of all its windows.
        `store`: where they are looked for before they are computed, and kept."""
        with self._lock:
            keys = [digest(text) for text in texts]
            found = {key: self._kept[key] for key in keys if key in self._kept}
            found |= self._made({key: text for key, text in zip(keys, texts, strict=True) if key not in found}, store)
            for key in keys:
                if key not in self._kept:
                    self._kept[key] = found[key]
                    self._bytes += found[key].nbytes
                self._kept.move_to_end(key)
                while self._bytes > self._room:
                    self._bytes -= self._kept.popitem(last=False)[1].nbytes
        return [found[key] for key in keys]

    def _made(self, texts: dict[str, str], store: VectorStore | None) -> dict[str, Matrix]:
        """The vectors of texts by their keys, from the disk as far as they are there."""
        width = self._model.get_embedding_dimension() or 1 if store and texts else 1
        found = {key: flat.reshape(-1, width) for key, flat in store.read(list(texts)).items()} if store else {}
        missing = [key for key in texts if key not in found]
        made = dict(zip(missing, self._embedded([texts[key] for key in missing]), strict=True))
        if store and made:
            store.write(made)
        return found | made

    def _embedded(self, texts: Sequence[str]) -> list[Matrix]:
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
        """The tokens of a passage that are read at once, without the special ones and the prompt."""
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
            model = SentenceTransformer(path, **LOAD_OPTIONS)  # one vector a text: its layers without the pooling
            prompts = {name: text for name, text in model.prompts.items() if text}
            return MultiVectorEncoder(modules=[model[0], MultiVectorMask()], device="cpu", prompts=prompts)


def is_multi(folder: ModelFolder) -> bool:
    """Tell whether the model was saved as one of several vectors a text."""
    saved, config = (model_settings(folder.path / name) for name in (PROMPTS, "config.json"))
    return saved.get("model_type") in _MULTI or "HF_ColBERT" in (config.get("architectures") or ())


_GROUP = 200_000  # characters whose token vectors are computed together, in memory beside those kept: some 80 MB
_NOTHING = -1.0  # the score of a passage without a token: no cosine is lower


class LateInteraction(Reranker):
    """The mean over the query's tokens of each one's highest cosine with a token of the passage (MaxSim).

        score(q, d) = sum_i max_j q_i . d_j / sum_i |q_i|

    with a vector q_i of each token of the query, and a unit vector d_j of each of the passage. Where the q_i are unit
    vectors too, it is the published sum over the number of tokens, which gives the same order (Khattab and Zaharia,
    "ColBERT", SIGIR 2020, equation 3). A passage that is longer than the model's window is read by windows, and its
    tokens are those of all of them. A query is read as far as the window goes.

    Made for models that were trained for it, such as `lightonai/LateOn` or `answerdotai/answerai-colbert-small-v1`,
    which are read as they were saved. Any other sentence-transformers model, as the default, was trained for one vector
    a text: of its last layer every token is compared, and one of the query counts by its vector's length, as in the
    mean that the model was trained for. Its score then counts for half, beside that of before. This was chosen on the
    809 training claims of SciFact with MiniLM over `fused`, whose nDCG@10 is 0.733: alone it has 0.731 (with unit
    vectors 0.724, p = 0.03), by half 0.746. Leaving out special tokens or punctuation made no difference to speak of.

    Attributes:
        model: a folder, or the hub's name, found as embedders are.
        precision: of the model's computation.
        keep: whether the token vectors of passages are kept in the user's cache, so that the next process need not
            compute them: some 0.2 MB an abstract, deleted when nobody used them for 90 days. It changes
            no score.
    """

    kind: Literal["late_interaction"] = "late_interaction"
    model: str = MINILM
    precision: Precision = "float32"
    keep: bool = False

    def open(self, deps: RerankerDeps) -> MaxSim:
        folder = find_model(self.model, _WHAT)
        return MaxSim(token_vectors(folder, self.precision), token_store(folder, self.precision) if self.keep else None)

    def weight(self) -> float:
        """Return a half for a model that was not trained for it, see above."""
        return 1.0 if is_multi(find_model(self.model, _WHAT)) else 0.5

    def identity(self) -> str:
        return f"late_interaction {digest(self.precision, find_model(self.model, _WHAT).identity)}"


class MaxSim:
    """Scores passages by late interaction. `store`: where the token vectors of passages are kept; None keeps them in
    memory alone."""

    def __init__(self, vectors: TokenVectors, store: VectorStore | None = None) -> None:
        self._vectors, self._store = vectors, store

    def scores(self, queries: Sequence[str], texts: Sequence[Sequence[str]]) -> list[list[float]]:
        """From -1 to 1. Each different text is embedded once, however many queries it is a candidate of. Raises
        ModelError where the model cannot be loaded."""
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
    """Return the score of one passage for each query, as `LateInteraction` has it, by vectors of tokens, each of shape
    (tokens, dimension): at least one token of a query, and unit vectors of the passage's, in whatever precision."""
    if not len(passage):
        return [_NOTHING] * len(queries)
    tokens = np.concatenate(queries)
    starts = np.cumsum([0, *map(len, queries[:-1])])
    nearest = (tokens @ passage.astype(np.float32).T).max(axis=1)
    sums, lengths = (np.add.reduceat(of, starts) for of in (nearest, np.linalg.norm(tokens, axis=1)))
    scores: list[float] = (sums / lengths).tolist()
    return scores
