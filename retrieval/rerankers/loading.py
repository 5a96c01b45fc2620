"""What loading any reranking model of sentence-transformers has in common."""
from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from documents.errors import ModelError
from retrieval.models import ModelFolder

if TYPE_CHECKING:
    from tokenizers import Tokenizer

WHAT = "reranking model"
Precision = Literal["float32", "bfloat16"]


@contextlib.contextmanager
def loading(folder: ModelFolder) -> Iterator[str]:
    """Within, the model is loaded from the path that is given, without progress bars.

    Raises:
        ModelError: the files are not a model that can be read.
    """
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    from safetensors import SafetensorError
    from transformers.utils import logging

    bars: Any = logging
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        yield str(folder.path)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ModelError(f"{WHAT} {folder.name} in {folder.path} cannot be loaded: {said}") from error
    finally:
        if shown:
            bars.enable_progress_bar()


def options(precision: Precision) -> dict[str, Any]:
    """What every model is loaded with: on the processor, from what is on this machine, weights only."""
    import torch

    return {"device": "cpu", "local_files_only": True, "trust_remote_code": False,
            "model_kwargs": {"use_safetensors": True, "dtype": getattr(torch, precision)}}


def tokenizer_of(model: Any, name: str) -> Tokenizer:
    """A tokenizer that cuts and pads nothing.

    Raises:
        ModelError: the model has none of the fast kind.
    """
    from tokenizers import Tokenizer

    if not hasattr(model.tokenizer, "backend_tokenizer"):
        raise ModelError(f"{name} has no fast tokenizer, which is needed to cut long texts")
    tokenizer = Tokenizer.from_str(model.tokenizer.backend_tokenizer.to_str())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
