"""Cross-encoders: models that read a query and a passage together."""
from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from ragbed.documents.errors import ModelError
from ragbed.documents.types import digest
from ragbed.retrieval.model_files import (
    BATCH,
    LOAD_OPTIONS,
    ModelFolder,
    Precision,
    check_kind,
    copy_tokenizer,
    cut_by_tokens,
    find_model,
    loading,
    running,
)
from ragbed.retrieval.rerankers.reranker import Reranker
from ragbed.retrieval.storage.files import unchanged_sha256
from ragbed.retrieval.types import Matrix, RerankerDeps

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder
    from tokenizers import Tokenizer

_WHAT = "reranking model"
_WINDOW = 512  # tokens of the window if the model does not declare it


class CrossEncoding(Reranker):
    """Scores a query and a passage together with a sentence-transformers cross-encoder.

    A passage that does not fit the model's window is split into windows and gets their highest score (MaxP: Dai and
    Callan, "Deeper Text Understanding for IR with Contextual Neural Language Modeling", SIGIR 2019). A query is
    truncated to half of the window. Scores are the logits of the last layer, since a sigmoid would make the best equal.

    Attributes:
        model: a folder or hub name, found like embedders; never downloaded.
        precision: precision of the computation.
    """

    kind: Literal["cross_encoder"] = "cross_encoder"
    model: str = "cross-encoder/ms-marco-MiniLM-L6-v2"
    precision: Precision = "float32"

    def open(self, deps: RerankerDeps) -> CrossScorer:
        return cross_scorer(self._folder(), self.precision)

    def identity(self) -> str:
        folder = self._folder()
        config = unchanged_sha256(folder.path / "config.json")
        return f"cross_encoder {digest(self.precision, folder.identity, config)}"

    def _folder(self) -> ModelFolder:
        return check_kind(find_model(self.model, _WHAT), "a cross-encoder", "cross_encoder", "classifier")


@lru_cache(2)
def cross_scorer(folder: ModelFolder, precision: Precision) -> CrossScorer:
    """Return the scorer of this model, which all retrievers share."""
    return CrossScorer(folder, precision)


class CrossScorer:
    """Scores passages with a cross-encoder on the CPU. Loads the model at the first call. Thread-safe."""

    def __init__(self, folder: ModelFolder, precision: Precision = "float32") -> None:
        self._folder, self._precision = folder, precision
        self._lock = threading.RLock()

    def scores(self, queries: Sequence[str], texts: Sequence[Sequence[str]]) -> list[list[float]]:
        """Return a score per text, any real number. Raises ModelError if the model cannot be used."""
        with self._lock:
            pairs: list[tuple[str, str]] = []
            windows: list[int] = []
            for query, own in zip(queries, texts, strict=True):
                asked, pieces = self._pieces(query, own)
                pairs += [(asked, piece) for cuts in pieces for piece in cuts]
                windows += map(len, pieces)
            scores = iter(self._predict(pairs))
        best = iter([max(islice(scores, count)) for count in windows])
        return [[next(best) for _ in own] for own in texts]

    def _pieces(self, query: str, texts: Sequence[str]) -> tuple[str, list[list[str]]]:
        if not texts:
            return query, []
        room = self._room
        asked = query[:cut_by_tokens(self._tokenizer, [query], max(room // 2, 1))[0][0][1]]
        left = room - len(self._tokenizer.encode(asked, add_special_tokens=False).ids)
        spans = cut_by_tokens(self._tokenizer, texts, left)
        return asked, [[text[start:end] for start, end in cuts] for text, cuts in zip(texts, spans, strict=True)]

    def _predict(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        import torch

        if not pairs:
            return []
        model = self._model
        with running(self._precision):
            scores: Matrix = model.predict(list(pairs), batch_size=BATCH, show_progress_bar=False,
                                           activation_fn=torch.nn.Identity())
        found: list[float] = scores.tolist()
        return found

    @cached_property
    def _room(self) -> int:
        model: Any = self._model
        prompt = model.prompts.get(model.default_prompt_name) or ""
        taken = model.tokenizer.num_special_tokens_to_add(pair=True) + \
            len(self._tokenizer.encode(prompt, add_special_tokens=False).ids)
        room: int = (model.max_seq_length or _WINDOW) - taken
        if room < 2:
            raise ModelError(f"{self._folder.name} reads {model.max_seq_length} tokens, too few for a query and a "
                             "passage; use another model")
        return room

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return copy_tokenizer(self._model)

    @cached_property
    def _model(self) -> CrossEncoder:
        with loading(self._folder, _WHAT) as path:
            from sentence_transformers import CrossEncoder

            model: CrossEncoder = CrossEncoder(path, **LOAD_OPTIONS)
        self._check(model)
        return model

    def _check(self, model: CrossEncoder) -> None:
        if model.num_labels != 1:
            raise ModelError(f"{self._folder.name} has {model.num_labels} classes; use a model that gives one score")


@lru_cache(2)
def entailment_scorer(folder: ModelFolder) -> EntailmentScorer:
    """Return the scorer of this model, which all users share."""
    return EntailmentScorer(folder)


class EntailmentScorer(CrossScorer):
    """Scores the probability that a text entails a sentence, with a model for natural language inference that has a
    class `entailment`. The text is split into windows like a passage, and the sentence is the query."""

    def _predict(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        import torch

        outputs = super()._predict([(text, sentence) for sentence, text in pairs])  # the premise comes first
        found: list[float] = torch.tensor(outputs).softmax(-1)[:, self._entailment].tolist() if outputs else []
        return found

    def _check(self, model: CrossEncoder) -> None:
        config: Any = model.config
        names = [str(config.id2label[place]).lower() for place in range(model.num_labels)]
        if "entailment" not in names:
            raise ModelError(f"{self._folder.name} has no `entailment` class (its classes: {', '.join(names)}); use a "
                             "model trained for natural language inference")
        self._entailment = names.index("entailment")
