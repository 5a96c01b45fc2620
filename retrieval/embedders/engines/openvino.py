"""OpenVINO: exports graphs and computes them."""
from __future__ import annotations

import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from documents.errors import MissingExtra, ModelError
from retrieval.embedders.engines.export import Form

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

    from retrieval.embedder import Matrix

_TELEMETRY = "openvino_telemetry"


def form() -> Form:
    """OpenVINO's own form of graphs."""
    if find_spec("openvino") is None:
        raise MissingExtra("openvino", "openvino")
    return Form("model.xml", ("openvino",), _write, lambda path: read(path, "f32", 1))


def library() -> Any:
    """The package, kept from reporting to its maker: its import would, and so would each export, both through a package
    apart, without which they stay silent."""
    if _TELEMETRY not in sys.modules:
        sys.modules[_TELEMETRY] = None  # type: ignore[assignment]
    import openvino

    return openvino


class OpenVinoSession:
    """A compiled graph, with one stream for each thread."""

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled
        self._own = threading.local()

    def __call__(self, ids: NDArray[Any], mask: NDArray[Any]) -> Matrix:
        request = getattr(self._own, "request", None)
        if request is None:
            request = self._own.request = self._compiled.create_infer_request()
        vectors: Matrix = request.infer([ids, mask], share_inputs=True)[0]
        return vectors


def read(path: Path, precision: Literal["f32", "bf16"], streams: int) -> OpenVinoSession:
    """The graph in a file, computed in that precision where the processor has it.

    Raises:
        ModelError: the file is damaged.
    """
    settings = {"INFERENCE_PRECISION_HINT": precision, "PERFORMANCE_HINT": "THROUGHPUT", "NUM_STREAMS": streams,
                "INFERENCE_NUM_THREADS": streams}
    try:
        return OpenVinoSession(library().Core().compile_model(str(path), "CPU", settings))
    except RuntimeError as error:
        raise ModelError(f"the exported model in {path.parent} is damaged: delete that folder") from error


def _write(module: torch.nn.Module, example: tuple[torch.Tensor, ...], path: Path) -> None:
    openvino = library()
    openvino.save_model(openvino.convert_model(module, example_input=example), path, compress_to_fp16=False)
