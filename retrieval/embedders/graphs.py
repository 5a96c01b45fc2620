"""A model as one graph, tokens in and vectors out, computed by ONNX Runtime or OpenVINO without PyTorch."""
from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from documents.errors import MissingExtra, ModelError
from documents.places import processors
from retrieval.embedders.engines import batches, padded
from retrieval.embedders.exporting import ExportedGraph, Form, Run, exported
from retrieval.models.finding import ModelFolder
from retrieval.types import Matrix

if TYPE_CHECKING:
    import torch
    from tokenizers import Tokenizer

OPSET = 18
_TELEMETRY = "openvino_telemetry"


class Graph:
    """A model as one graph. Texts of about one length are computed together, and on each thread others."""

    def __init__(self, run: Run, kept: ExportedGraph) -> None:
        self._run = run
        self._kept = kept
        self._reading = kept.tokenizer()
        self._reading.enable_truncation(kept.facts.window, direction=kept.facts.truncation)
        self._workers = ThreadPoolExecutor(processors(), "embed")

    @classmethod
    def open(cls, folder: ModelFolder, backend: Literal["onnx", "openvino", "openvino_bfloat16"]) -> Graph:
        """Open the engine of that backend; a model that was not used with it before is exported first, once.

        Raises:
            MissingExtra: a package that the backend needs is not installed.
            ModelError: the model cannot be exported or loaded.
        """
        library = "onnxruntime" if backend == "onnx" else "openvino"
        if find_spec(library) is None:
            raise MissingExtra(library, "onnx" if backend == "onnx" else "openvino")
        if backend == "onnx":
            kept = exported(folder, Form("model.onnx", (), _write_onnx, read_onnx))
            return cls(read_onnx(kept.graph), kept)
        kept = exported(folder, Form("model.xml", ("openvino",), _write_openvino, read_openvino))
        return cls(read_openvino(kept.graph, "bf16" if backend == "openvino_bfloat16" else "f32", processors()), kept)

    @property
    def dimension(self) -> int:
        return self._kept.facts.dimension

    @property
    def window(self) -> int:
        return self._kept.facts.window

    def tokenizer(self) -> Tokenizer:
        return self._kept.tokenizer()

    def encode(self, pieces: Sequence[str], batch: int | None) -> Matrix:
        tokens = self._reading.encode_batch(list(pieces))
        vectors = np.empty((len(pieces), self.dimension), np.float32)

        def compute(rows: list[int]) -> None:
            vectors[rows] = self._run(*padded([tokens[row] for row in rows], self._kept.facts))

        together = list(batches([len(one) for one in tokens], batch))
        if len(together) == 1:
            compute(together[0])
        else:
            list(self._workers.map(compute, together))
        return vectors


def read_onnx(path: Path) -> Run:
    """Load a graph for ONNX Runtime, which lets several threads run one session, each call on its own thread.

    Raises:
        ModelError: the file is damaged.
    """
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    failures = onnxruntime.capi.onnxruntime_pybind11_state
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except (failures.Fail, failures.InvalidProtobuf, failures.InvalidGraph, failures.NoSuchFile,
            failures.InvalidArgument, failures.RuntimeException) as error:
        raise _damaged(path) from error

    def run(ids: NDArray[Any], mask: NDArray[Any]) -> Matrix:
        vectors: Matrix = session.run(None, {"ids": ids, "mask": mask})[0]
        return vectors

    return run


def read_openvino(path: Path, precision: Literal["f32", "bf16"] = "f32", streams: int = 1) -> Run:
    """Compile a graph for OpenVINO, in that precision where the processor has it, with a stream for each thread.

    Raises:
        ModelError: the file is damaged.
    """
    settings = {"INFERENCE_PRECISION_HINT": precision, "PERFORMANCE_HINT": "THROUGHPUT", "NUM_STREAMS": streams,
                "INFERENCE_NUM_THREADS": streams}
    try:
        compiled = _openvino().Core().compile_model(str(path), "CPU", settings)
    except RuntimeError as error:
        raise _damaged(path) from error
    own = threading.local()

    def run(ids: NDArray[Any], mask: NDArray[Any]) -> Matrix:
        if not hasattr(own, "request"):
            own.request = compiled.create_infer_request()
        vectors: Matrix = own.request.infer([ids, mask], share_inputs=True)[0]
        return vectors

    return run


def _damaged(path: Path) -> ModelError:
    return ModelError(f"the exported model in {path.parent} is damaged: delete that folder")


def _write_onnx(module: torch.nn.Module, example: tuple[torch.Tensor, ...], path: Path) -> None:
    import torch

    if find_spec("onnx") is None:  # PyTorch's exporter uses it
        raise MissingExtra("onnx", "onnx")
    free = {name: {0: "texts", 1: "tokens"} for name in ("ids", "mask")}
    torch.onnx.export(module, example, str(path), dynamo=False, opset_version=OPSET, input_names=["ids", "mask"],
                      output_names=["vectors"], dynamic_axes={**free, "vectors": {0: "texts"}})


def _write_openvino(module: torch.nn.Module, example: tuple[torch.Tensor, ...], path: Path) -> None:
    openvino = _openvino()
    openvino.save_model(openvino.convert_model(module, example_input=example), path, compress_to_fp16=False)


def _openvino() -> Any:
    """The package, kept from reporting to its maker: its import would, and so would each export, both through a package
    apart, without which they stay silent."""
    if _TELEMETRY not in sys.modules:
        sys.modules[_TELEMETRY] = None  # type: ignore[assignment]
    import openvino

    return openvino
