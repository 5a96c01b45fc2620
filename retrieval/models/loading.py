"""Models of sentence-transformers out of a folder, and running them on the processor."""
from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from documents.errors import ModelError
from retrieval.models.files import uncut
from retrieval.models.finding import ModelFolder

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Precision = Literal["float32", "bfloat16"]

BATCH = 16
"""Texts per forward pass: on two cores 8 to 16 full windows were the fastest, 64 less than half as fast."""

RUNNING = threading.RLock()
"""Held while a model is loaded or runs: torch's number of threads is the process's, not the caller's."""

LOCAL: dict[str, Any] = {"device": "cpu", "local_files_only": True, "trust_remote_code": False,
                         "model_kwargs": {"use_safetensors": True}}
"""How every model is loaded: on the processor, from what is on this machine, weights only."""


@contextlib.contextmanager
def loading(folder: ModelFolder, what: str) -> Iterator[str]:
    """Within, a model is loaded from the path that is given, without progress bars.

    Args:
        what: what to call the model.

    Raises:
        ModelError: the files are not a model that can be read.
    """
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    from safetensors import SafetensorError
    from transformers.utils import logging

    bars: Any = logging
    with RUNNING:
        shown = bars.is_progress_bar_enabled()
        bars.disable_progress_bar()
        try:
            yield str(folder.path)
        except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
            said = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise ModelError(f"{what} {folder.name} in {folder.path} cannot be loaded: {said}") from error
        finally:
            if shown:
                bars.enable_progress_bar()


@contextlib.contextmanager
def running(precision: Precision, threads: int | None = None) -> Iterator[None]:
    """Within, a model runs alone in this process, in float32, or in bfloat16 where that costs little.

    In bfloat16 the products of matrices are rounded to it, norms and the softmax are not (PyTorch's automatic mixed
    precision): as fast as weights in bfloat16, and 70 times as near to float32.

    Args:
        threads: torch's, if given. Waking a parked second thread cost a single query 130 ms, working alone 8.
    """
    import torch

    with RUNNING, torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
        before = torch.get_num_threads()
        if threads is not None:
            torch.set_num_threads(threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def fast_tokenizer(model: Any) -> Tokenizer:
    """The tokenizer of a model, apart from its own, which cuts and pads nothing.

    Raises:
        ModelError: the model has none of the fast kind.
    """
    from tokenizers import Tokenizer

    own = getattr(model.tokenizer, "backend_tokenizer", None)
    if own is None:
        raise ModelError("this model has no fast tokenizer, which is needed to cut long texts: use another")
    return uncut(Tokenizer.from_str(own.to_str()))
