"""The engine of each backend, of which the last two that were used stay loaded."""
from __future__ import annotations

import threading
from functools import lru_cache

from retrieval.embedders.engines.base import Backend, Engine
from retrieval.models.finding import ModelFolder

_LOADING = threading.Lock()


def engine_of(folder: ModelFolder, backend: Backend) -> Engine:
    """The engine of that backend for a model.

    Raises:
        MissingExtra: a package that the backend needs is not installed.
        ModelError: the model cannot be loaded, or the backend does not give the vectors that PyTorch gives.
    """
    with _LOADING:
        return _loaded(folder, backend)


@lru_cache(2)  # those before are loaded again when needed: a matrix of embedders may have more than fit in memory
def _loaded(folder: ModelFolder, backend: Backend) -> Engine:
    if backend == "float32" or backend == "bfloat16":
        from retrieval.embedders.engines.pytorch import PyTorch

        return PyTorch(folder, backend)
    from retrieval.embedders.engines.graph import Graph

    return Graph.open(folder, backend)
