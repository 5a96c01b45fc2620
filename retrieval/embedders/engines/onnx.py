"""ONNX: exported by PyTorch, computed by ONNX Runtime."""
from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from documents.errors import MissingExtra, ModelError
from retrieval.embedders.engines.export import Form

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

    from retrieval.embedder import Matrix

OPSET = 18


def form() -> Form:
    """ONNX files."""
    if find_spec("onnxruntime") is None:
        raise MissingExtra("onnxruntime", "onnx")
    return Form("model.onnx", (), _write, read)


class OnnxSession:
    """A loaded graph. ONNX Runtime lets several threads run one session, each call on its own thread."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def __call__(self, ids: NDArray[Any], mask: NDArray[Any]) -> Matrix:
        vectors: Matrix = self._session.run(None, {"ids": ids, "mask": mask})[0]
        return vectors


def read(path: Path) -> OnnxSession:
    """The graph in a file.

    Raises:
        ModelError: the file is damaged.
    """
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    failures = onnxruntime.capi.onnxruntime_pybind11_state
    try:
        return OnnxSession(onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]))
    except (failures.Fail, failures.InvalidProtobuf, failures.InvalidGraph, failures.NoSuchFile,
            failures.InvalidArgument, failures.RuntimeException) as error:
        raise ModelError(f"the exported model in {path.parent} is damaged: delete that folder") from error


def _write(module: torch.nn.Module, example: tuple[torch.Tensor, ...], path: Path) -> None:
    import torch

    if find_spec("onnx") is None:  # PyTorch's exporter uses it
        raise MissingExtra("onnx", "onnx")
    free = {name: {0: "texts", 1: "tokens"} for name in ("ids", "mask")}
    torch.onnx.export(module, example, str(path), dynamo=False, opset_version=OPSET, input_names=["ids", "mask"],
                      output_names=["vectors"], dynamic_axes={**free, "vectors": {0: "texts"}})
