"""A model as one graph, tokens in and vectors out, exported once and computed by ONNX Runtime or OpenVINO."""
from __future__ import annotations

import importlib.metadata
import json
import logging
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ragbed.documents.errors import MissingExtra, ModelError
from ragbed.documents.paths import cache_dir, count_cores
from ragbed.documents.types import digest
from ragbed.retrieval.embedders.engines import STEP, Facts, PyTorch, batches, padded
from ragbed.retrieval.models.finding import ModelFolder, plain_tokenizer
from ragbed.retrieval.storage.folder import alone, is_whole, keep
from ragbed.retrieval.types import Matrix

if TYPE_CHECKING:
    import torch
    from tokenizers import Tokenizer

VERSION = 1  # of what is kept; a change makes every model be exported anew
NEAREST = 0.9999  # cosine that an exported graph must reach with PyTorch's vectors; float32 reaches 0.999999
OPSET = 18
_TELEMETRY = "openvino_telemetry"
_FACTS, _TOKENIZER, _ONNX, _OPENVINO = "facts.json", "tokenizer.json", "model.onnx", "model.xml"
_PROBES = ("Rivers carry sand to the sea.", "", "Die Ausgaben stiegen 2022 um 5,3 % auf 1.234 Mio. Euro; 서울의 예산은 "
           "줄었다. " * 12, "42")
Run = Callable[["NDArray[Any]", "NDArray[Any]"], Matrix]


class Graph:
    """A model as one graph. Texts of about one length are computed together, and on each thread others."""

    def __init__(self, run: Run, folder: Path, facts: Facts) -> None:
        self._run = run
        self._folder = folder
        self._facts = facts
        self.dimension, self.window = facts.dimension, facts.window
        self._reading = self.tokenizer()
        self._reading.enable_truncation(facts.window, direction=facts.truncation)
        self._workers = ThreadPoolExecutor(count_cores(), "embed")

    @classmethod
    def open(cls, folder: ModelFolder, backend: Literal["onnx", "openvino", "openvino_bfloat16"]) -> Graph:
        """Open the engine of that backend; a model that was not used with it before is exported first, once. Raises
        MissingExtra where a package that the backend needs is not installed, and ModelError where the model cannot be
        exported or loaded."""
        if backend != "onnx":
            MissingExtra.check("openvino", "openvino")
        kept = exported(folder, _ONNX if backend == "onnx" else _OPENVINO)
        try:
            facts = Facts(**json.loads((kept / _FACTS).read_bytes()))
        except (OSError, ValueError, TypeError) as error:
            raise _damaged(kept) from error
        if backend == "onnx":
            return cls(read_onnx(kept / _ONNX), kept, facts)
        run = read_openvino(kept / _OPENVINO, "bf16" if backend == "openvino_bfloat16" else "f32", count_cores())
        return cls(run, kept, facts)

    def tokenizer(self) -> Tokenizer:
        return plain_tokenizer(self._folder / _TOKENIZER)

    def encode(self, pieces: Sequence[str], batch: int | None) -> Matrix:
        tokens = self._reading.encode_batch(list(pieces))
        vectors = np.empty((len(pieces), self.dimension), np.float32)

        def compute(rows: list[int]) -> None:
            vectors[rows] = self._run(*padded([tokens[row] for row in rows], self._facts))

        together = list(batches([len(one) for one in tokens], batch))
        list((map if len(together) == 1 else self._workers.map)(compute, together))
        return vectors


def exported(folder: ModelFolder, file: str) -> Path:
    """Return where the model's graph is: kept and as it was written, or exported now and compared with PyTorch; the
    file's name says the form. Raises ModelError where the model cannot be loaded or exported, or its graph gives other
    vectors, and SettingsError where the cache folder cannot be written."""
    makers = ("torch", "transformers", *(("openvino",) if file == _OPENVINO else ()))  # may change a graph
    versions = (f"{name} {importlib.metadata.version(name)}" for name in makers)
    kept = cache_dir() / "graphs" / digest(folder.identity, file, str(VERSION), *versions)[:32]
    if not is_whole(kept):
        with alone(kept, wait=True):
            if not is_whole(kept):
                keep(kept, lambda fresh: _export(folder, fresh / file))
    return kept


def _export(folder: ModelFolder, graph: Path) -> None:
    engine = PyTorch(folder, "float32")
    reads: Any = engine.model.tokenizer
    tokenizer = engine.tokenizer()
    try:
        facts = Facts(engine.dimension, engine.window, int(reads.pad_token_id or 0), reads.padding_side,
                      reads.truncation_side)
        write, read = (_write_onnx, read_onnx) if graph.name == _ONNX else (_write_openvino, read_openvino)
        with _quiet():
            write(*_whole(engine), graph)
        _compare(engine, read(graph), facts, tokenizer)
    except (RuntimeError, ValueError, TypeError, KeyError, AttributeError, AssertionError) as error:
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ModelError(f"{folder.name} cannot be exported to {graph.name}: name it float32:{folder.name} "
                         f"({said[:200]})") from error
    tokenizer.save(str(graph.with_name(_TOKENIZER)))
    graph.with_name(_FACTS).write_text(json.dumps(asdict(facts)), encoding="utf-8")


def _whole(engine: PyTorch) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    import torch

    class Whole(torch.nn.Module):
        def __init__(self, model: torch.nn.Module) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            vectors: torch.Tensor = self.model({"input_ids": ids, "attention_mask": mask})["sentence_embedding"]
            return vectors

    example = torch.ones(2, 2 * STEP, dtype=torch.int64)
    return Whole(engine.model).eval(), (example, example.clone())


def _compare(engine: PyTorch, run: Run, facts: Facts, tokenizer: Tokenizer) -> None:
    """Raise ValueError where a graph does not give PyTorch's vectors, of texts alone and padded together."""
    tokenizer.enable_truncation(facts.window, direction=facts.truncation)
    tokens = tokenizer.encode_batch(list(_PROBES))
    wanted = engine.encode(_PROBES, 1)
    alone = np.concatenate([run(*padded([one], facts)) for one in tokens])
    for found in (alone, run(*padded(tokens, facts))):
        cosines = (found * wanted).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(wanted, axis=1)
        if not cosines.min() > NEAREST:
            raise ValueError(f"its vectors have cosine {cosines.min():.4f} with PyTorch's")
    tokenizer.no_truncation()


@contextmanager
def _quiet() -> Iterator[None]:
    """Tracing warns of what `_compare` then tries."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


def read_onnx(path: Path) -> Run:
    """Load a graph for ONNX Runtime, which lets several threads run one session, each call on its own thread. Raises
    ModelError where the file is damaged."""
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    failures = onnxruntime.capi.onnxruntime_pybind11_state
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except (failures.Fail, failures.InvalidProtobuf, failures.InvalidGraph, failures.NoSuchFile,
            failures.InvalidArgument, failures.RuntimeException) as error:
        raise _damaged(path.parent) from error

    def run(ids: NDArray[Any], mask: NDArray[Any]) -> Matrix:
        vectors: Matrix = session.run(None, {"ids": ids, "mask": mask})[0]
        return vectors

    return run


def read_openvino(path: Path, precision: Literal["f32", "bf16"] = "f32", streams: int = 1) -> Run:
    """Compile a graph for OpenVINO, in that precision where the processor has it, with a stream for each thread. Raises
    ModelError where the file is damaged."""
    settings = {"INFERENCE_PRECISION_HINT": precision, "PERFORMANCE_HINT": "THROUGHPUT", "NUM_STREAMS": streams,
                "INFERENCE_NUM_THREADS": streams}
    try:
        compiled = _core().compile_model(str(path), "CPU", settings)
    except RuntimeError as error:
        raise _damaged(path.parent) from error
    own = threading.local()

    def run(ids: NDArray[Any], mask: NDArray[Any]) -> Matrix:
        if not hasattr(own, "request"):
            own.request = compiled.create_infer_request()
        vectors: Matrix = own.request.infer([ids, mask], share_inputs=True)[0]
        return vectors

    return run


def _damaged(folder: Path) -> ModelError:
    return ModelError(f"the exported model in {folder} is damaged: delete that folder")


def _write_onnx(module: torch.nn.Module, example: tuple[torch.Tensor, ...], path: Path) -> None:
    import torch

    free = {name: {0: "texts", 1: "tokens"} for name in ("ids", "mask")}
    torch.onnx.export(module, example, str(path), dynamo=False, opset_version=OPSET, input_names=["ids", "mask"],
                      output_names=["vectors"], dynamic_axes={**free, "vectors": {0: "texts"}})


def _write_openvino(module: torch.nn.Module, example: tuple[torch.Tensor, ...], path: Path) -> None:
    openvino = _openvino()
    openvino.save_model(openvino.convert_model(module, example_input=example), path, compress_to_fp16=False)


@cache
def _core() -> Any:
    """The one engine of the process. It gives the thread that makes it a stack for signal handlers, and frees that with
    itself: every signal that came later, Ctrl-C too, would end the process."""
    return _openvino().Core()


def _openvino() -> Any:
    """The package, kept from reporting to its maker: its import would, and so would each export, both through a package
    apart, without which they stay silent."""
    if _TELEMETRY not in sys.modules:
        sys.modules[_TELEMETRY] = None  # type: ignore[assignment]
    import openvino

    return openvino
