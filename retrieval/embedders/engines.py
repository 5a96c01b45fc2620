"""Engines that run sentence-transformers models: ONNX Runtime, which is faster, and PyTorch, which runs every model.
Static embeddings are looked up and averaged.

sentence-transformers can export to ONNX itself, but only with the package optimum-onnx, which requires transformers
below 5. So ragbed exports each model once, and checks the export against PyTorch's vectors.
"""
from __future__ import annotations

import importlib.metadata
import json
import logging
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ragbed.documents.errors import ModelError
from ragbed.documents.paths import cache_dir, count_cores
from ragbed.documents.types import digest
from ragbed.retrieval.embedders.embedder_settings import Static
from ragbed.retrieval.embedders.prefixes import PrefixedEmbedder, Prefixes
from ragbed.retrieval.embedders.windows import Reader
from ragbed.retrieval.model_files import (
    BATCH,
    LOAD_OPTIONS,
    WEIGHTS,
    ModelFolder,
    copy_tokenizer,
    find_static,
    loading,
    read_json,
    read_tokenizer,
    running,
)
from ragbed.retrieval.storage.folder import exclusive, is_whole, keep
from ragbed.retrieval.types import Matrix

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer
    from tokenizers import Encoding, Tokenizer

_SLICE = 256  # texts looked up at once


@dataclass(frozen=True, slots=True)
class TokenTable:
    """The vector of each token."""

    vectors: Matrix  # float32 of shape (tokens, d)
    tokenizer: Tokenizer  # without truncation and padding
    unknown: int | None  # id of the token for unknown words; None if the vocabulary covers every text


def read_table(folder: ModelFolder) -> TokenTable:
    """Read the table of a model in the format of model2vec (`embeddings`, possibly with weights and fewer vectors than
    tokens) or of sentence-transformers' StaticEmbedding (`embedding.weight`). Raises ModelError if the files are
    damaged or hold another kind of model."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        arrays = load_file(folder.path / WEIGHTS)
    except (OSError, SafetensorError) as error:
        raise ModelError(f"static model {folder.name} in {folder.path} cannot be loaded: {error}") from error
    if "embedding.weight" not in arrays and "embeddings" not in arrays:
        raise ModelError(f"{folder.name} in {folder.path} is not a static model; remove the prefix static:")
    vectors = np.ascontiguousarray(arrays.get("embedding.weight", arrays.get("embeddings")), np.float32)
    if "embedding.weight" not in arrays:
        vectors = vectors[arrays["mapping"]] if "mapping" in arrays else vectors
        vectors = vectors * np.asarray(arrays["weights"], np.float32)[:, None] if "weights" in arrays else vectors
    file = folder.path / "tokenizer.json"
    tokenizer = read_tokenizer(file)
    tokens = max(tokenizer.get_vocab().values()) + 1
    if len(vectors) < tokens:
        raise ModelError(f"{folder.name} in {folder.path} has {len(vectors)} vectors for {tokens} tokens; its files "
                         "do not belong together")
    model = read_json(file)["model"]
    named = isinstance(model.get("unk_token"), str)
    return TokenTable(vectors, tokenizer, tokenizer.token_to_id(model["unk_token"]) if named else model.get("unk_id"))


class StaticEmbedder(PrefixedEmbedder):
    """A static model in a folder.

    A text's vector is the mean of its tokens' vectors at unit length, without unknown tokens, as in model2vec's
    `StaticModel.encode`.

    Attributes:
        at_once: number of texts to embed per call.
    """

    at_once = _SLICE

    def __init__(self, settings: Static) -> None:
        self.folder = find_static(settings.model)
        self.settings: Static = settings
        self.window = settings.window
        self.prefixes = Prefixes(settings.query_prefix, settings.passage_prefix)

    def identity_with(self, query_prefix: str | None) -> str:
        parts = [self.settings.long, str(self.window), query_prefix or "", self.prefixes.passage]
        return f"static-{self.folder.identity}-{digest(*parts)[:8]}"

    @property
    def dimension(self) -> int:
        return int(self._table.vectors.shape[1])

    def embed(self, texts: Sequence[str], prefix: str) -> Matrix:
        def means(pieces: Sequence[str]) -> Matrix:
            return np.concatenate([self._mean(pieces[first:first + _SLICE]) for first in range(0, len(pieces), _SLICE)])

        return self.reader.embed(texts, prefix, means)

    def _mean(self, pieces: Sequence[str]) -> Matrix:
        tokens = self._table.tokenizer.encode_batch_fast(list(pieces), add_special_tokens=False)
        known = [[token for token in one.ids[:self.window] if token != self._table.unknown] for one in tokens]
        means = np.zeros((len(pieces), self.dimension), np.float32)
        filled = [row for row, ids in enumerate(known) if ids]
        if filled:
            sizes = np.asarray([len(known[row]) for row in filled])
            vectors = self._table.vectors[np.concatenate([known[row] for row in filled])]
            means[filled] = np.add.reduceat(vectors, np.cumsum(sizes) - sizes, axis=0) / sizes[:, None]
        return means

    @cached_property
    def reader(self) -> Reader:
        return Reader(self.name, self._table.tokenizer, self.window, self.settings.long)

    @cached_property
    def _table(self) -> TokenTable:
        return read_table(self.folder)


class Engine(Protocol):
    """A loaded model. Thread-safe."""

    @property
    def dimension(self) -> int: ...

    @property
    def window(self) -> int:
        """Maximum tokens that the model reads of a text, including special tokens."""
        ...

    def tokenizer(self) -> Tokenizer:
        """Return a new tokenizer without truncation and padding."""
        ...

    def encode(self, texts: Sequence[str], batch: int | None) -> Matrix:
        """Return the output vectors of one or more texts, float32 of shape (texts, dimension). Texts longer than the
        window are truncated. `batch` is the number of texts to compute at once; None chooses the fastest."""
        ...


class TorchEngine:
    """Runs a model with PyTorch in float32. Raises ModelError if the files cannot be loaded."""

    def __init__(self, folder: ModelFolder) -> None:
        with loading(folder, "embedding model") as path:
            from sentence_transformers import SentenceTransformer

            self.model: SentenceTransformer = SentenceTransformer(path, **LOAD_OPTIONS)
            self.dimension = int(self.model.get_embedding_dimension() or 0)
            self.window = int(self.model.max_seq_length or 512)

    def tokenizer(self) -> Tokenizer:
        return copy_tokenizer(self.model)

    def encode(self, texts: Sequence[str], batch: int | None) -> Matrix:
        with running("float32", 1 if len(texts) == 1 else None):
            vectors: Matrix = self.model.encode(list(texts), prompt="", batch_size=batch or BATCH,
                                                show_progress_bar=False)
        return np.asarray(vectors, np.float32)


TOKENS = 1_024  # tokens to compute at once per thread: four full windows of 256; more exceed the processor's cache
_STEP = 8  # lengths are padded to multiples of this, because each new input shape takes time to prepare
_VERSION = 1  # version of the export; increase it to export every model again
_MIN_COSINE = 0.9999  # minimum cosine between vectors of the export and of PyTorch; a correct export reaches 0.999999
_OPSET = 18
_FACTS, _TOKENIZER, _GRAPH = "facts.json", "tokenizer.json", "model.onnx"
_TEST_TEXTS = ("Rivers carry sand to the sea.", "", "Die Ausgaben stiegen 2022 um 5,3 % auf 1.234 Mio. Euro; 서울의 "
               "예산은 줄었다. " * 12, "42")
Run = Callable[["NDArray[Any]", "NDArray[Any]"], Matrix]
Side = Literal["left", "right"]


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Settings of a model that its exported graph does not contain."""

    dimension: int
    window: int  # tokens that the model reads, including special tokens
    padding: int  # id of the token that fills shorter texts
    padded: Side  # side on which shorter texts are filled
    truncation: Side  # side on which longer texts are cut


class OnnxEngine:
    """Runs a model with ONNX Runtime, and exports it on first use. Texts of similar length are computed together, each
    batch on its own thread. Raises ModelError if the model cannot be exported or loaded. Raises SettingsError if the
    cache folder cannot be written."""

    def __init__(self, folder: ModelFolder) -> None:
        self._folder = _find_or_export(folder)
        try:
            self._facts = ModelFacts(**json.loads((self._folder / _FACTS).read_bytes()))
        except (OSError, ValueError, TypeError) as error:
            raise _damaged_export(self._folder) from error
        self.dimension, self.window = self._facts.dimension, self._facts.window
        self._run = _load_graph(self._folder / _GRAPH)
        self._truncating = self.tokenizer()
        self._truncating.enable_truncation(self.window, direction=self._facts.truncation)
        self._workers = ThreadPoolExecutor(count_cores(), "embed")

    def tokenizer(self) -> Tokenizer:
        return read_tokenizer(self._folder / _TOKENIZER)

    def encode(self, texts: Sequence[str], batch: int | None) -> Matrix:
        tokens = self._truncating.encode_batch(list(texts))
        vectors = np.empty((len(texts), self.dimension), np.float32)

        def compute(rows: list[int]) -> None:
            vectors[rows] = self._run(*_pad([tokens[row] for row in rows], self._facts))

        groups = list(group_by_length([len(one) for one in tokens], batch))
        list((map if len(groups) == 1 else self._workers.map)(compute, groups))
        return vectors


def group_by_length(lengths: Sequence[int], size: int | None) -> Iterator[list[int]]:
    """Group texts of similar length, longest first, so that no thread gets a long batch at the end. Yields row numbers.
    Each group has `size` rows or, if `size` is None, about `TOKENS` tokens."""
    order = sorted(range(len(lengths)), key=lambda row: (-_round_up(lengths[row]), row))
    for length, group in groupby(order, key=lambda row: _round_up(lengths[row])):
        rows = list(group)
        most = size or max(TOKENS // length, 1)
        yield from (rows[first:first + most] for first in range(0, len(rows), most))


def _pad(tokens: Sequence[Encoding], facts: ModelFacts) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return token ids and mask, int64 of shape (texts, tokens)."""
    longest = min(_round_up(max(len(one) for one in tokens)), facts.window)
    ids = np.full((len(tokens), longest), facts.padding, np.int64)
    mask = np.zeros((len(tokens), longest), np.int64)
    for row, one in enumerate(tokens):
        place = slice(0, len(one)) if facts.padded == "right" else slice(longest - len(one), longest)
        ids[row, place] = one.ids
        mask[row, place] = 1
    return ids, mask


def _round_up(length: int) -> int:
    return max(-(-length // _STEP) * _STEP, _STEP)


def _find_or_export(folder: ModelFolder) -> Path:
    versions = (f"{name} {importlib.metadata.version(name)}" for name in ("torch", "transformers"))
    kept = cache_dir() / "graphs" / digest(folder.identity, _GRAPH, str(_VERSION), *versions)[:32]
    if not is_whole(kept):
        with exclusive(kept, wait=True):
            if not is_whole(kept):
                keep(kept, lambda fresh: _export(folder, fresh / _GRAPH))
    return kept


def _export(folder: ModelFolder, graph: Path) -> None:
    engine = TorchEngine(folder)
    own: Any = engine.model.tokenizer
    tokenizer = engine.tokenizer()
    try:
        facts = ModelFacts(engine.dimension, engine.window, int(own.pad_token_id or 0), own.padding_side,
                           own.truncation_side)
        with _hide_tracer_warnings():
            _write_graph(engine, graph)
        _compare(engine, _load_graph(graph), facts, tokenizer)
    except (RuntimeError, ValueError, TypeError, KeyError, AttributeError, AssertionError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ModelError(f"{folder.name} cannot be exported to ONNX ({reason[:200]}); use the embedder "
                         f"{{model: {folder.name}, backend: float32}}") from error
    tokenizer.save(str(graph.with_name(_TOKENIZER)))
    graph.with_name(_FACTS).write_text(json.dumps(asdict(facts)), encoding="utf-8")


def _write_graph(engine: TorchEngine, path: Path) -> None:
    import torch

    class Whole(torch.nn.Module):
        def __init__(self, model: torch.nn.Module) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            vectors: torch.Tensor = self.model({"input_ids": ids, "attention_mask": mask})["sentence_embedding"]
            return vectors

    example = torch.ones(2, 2 * _STEP, dtype=torch.int64)
    free = {name: {0: "texts", 1: "tokens"} for name in ("ids", "mask")}
    torch.onnx.export(Whole(engine.model).eval(), (example, example.clone()), str(path), dynamo=False,
                      opset_version=_OPSET, input_names=["ids", "mask"], output_names=["vectors"],
                      dynamic_axes={**free, "vectors": {0: "texts"}})


def _compare(engine: TorchEngine, run: Run, facts: ModelFacts, tokenizer: Tokenizer) -> None:
    """Raise ValueError if a graph does not give PyTorch's vectors, for single texts and for texts padded together."""
    tokenizer.enable_truncation(facts.window, direction=facts.truncation)
    tokens = tokenizer.encode_batch(list(_TEST_TEXTS))
    wanted = engine.encode(_TEST_TEXTS, 1)
    single = np.concatenate([run(*_pad([one], facts)) for one in tokens])
    for found in (single, run(*_pad(tokens, facts))):
        cosines = (found * wanted).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(wanted, axis=1)
        if not cosines.min() > _MIN_COSINE:
            raise ValueError(f"its vectors differ from PyTorch's: cosine {cosines.min():.4f}")
    tokenizer.no_truncation()


@contextmanager
def _hide_tracer_warnings() -> Iterator[None]:
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


def _load_graph(path: Path) -> Run:
    """Load a graph, which several threads may run at once. Raises ModelError if the file is damaged."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # otherwise the import stores an id of the machine in ~/.cache
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    failures = onnxruntime.capi.onnxruntime_pybind11_state
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except (failures.Fail, failures.InvalidProtobuf, failures.InvalidGraph, failures.NoSuchFile,
            failures.InvalidArgument, failures.RuntimeException) as error:
        raise _damaged_export(path.parent) from error

    def run(ids: NDArray[Any], mask: NDArray[Any]) -> Matrix:
        vectors: Matrix = session.run(None, {"ids": ids, "mask": mask})[0]
        return vectors

    return run


def _damaged_export(folder: Path) -> ModelError:
    return ModelError(f"the exported model in {folder} is damaged; delete this folder")


@lru_cache(2)  # at most two, to limit memory; an older one is loaded again when needed
def load_engine(folder: ModelFolder, backend: Literal["onnx", "float32"]) -> Engine:
    """Load a model. Raises ModelError if it cannot be loaded, or its export does not give PyTorch's vectors."""
    return TorchEngine(folder) if backend == "float32" else OnnxEngine(folder)
