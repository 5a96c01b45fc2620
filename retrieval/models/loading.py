"""Loads models of sentence-transformers and runs them on the processor; cuts texts by a model's tokenizer."""
from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from ragbed.documents.chunkers.spans import Span
from ragbed.documents.errors import ModelError
from ragbed.retrieval.models.finding import ModelFolder, uncut

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

SLICE = 256  # texts tokenised at once: their offsets are Python objects, which would otherwise fill the memory


def cut(tokenizer: Tokenizer, texts: Sequence[str], limit: int) -> list[list[Span]]:
    """Return for each text, spans of at most `limit` tokens that cover it, in order and without overlap. A cut falls
    between words where there is one in the second half of the window."""
    spans: list[list[Span]] = []
    for first in range(0, len(texts), SLICE):
        group = list(texts[first:first + SLICE])
        encodings = tokenizer.encode_batch(group, add_special_tokens=False)
        spans += [_cut(tokenizer, text, encoding, limit) for text, encoding in zip(group, encodings, strict=True)]
    return spans


def _cut(tokenizer: Tokenizer, text: str, encoding: Encoding, limit: int) -> list[Span]:
    if len(encoding.ids) <= limit:
        return [(0, len(text))]
    spans: list[Span] = []
    start = 0
    while start < len(text):
        # A token is seldom longer than 16 characters; where the guess is short, the window is merely smaller.
        end = start + _fitting(tokenizer, text[start:start + limit * 16], limit)
        spans.append((start, end))
        start = end
    return spans


def _fitting(tokenizer: Tokenizer, text: str, limit: int) -> int:
    """The characters that fit; tokenised again after a cut, which can change how the last word is read."""
    reach = len(text)
    encoding = tokenizer.encode(text, add_special_tokens=False)
    while len(encoding.ids) > limit and reach > 1:
        reach = _boundary(encoding, limit)
        encoding = tokenizer.encode(text[:reach], add_special_tokens=False)
    return reach


def _boundary(encoding: Encoding, limit: int) -> int:
    words, offsets = encoding.word_ids, encoding.offsets
    for token in range(limit, limit // 2, -1):
        if words[token] != words[token - 1] and offsets[token][0] > 0:
            return int(offsets[token][0])
    # Some characters become several tokens (a Korean syllable, an emoji): never cut inside one.
    return max(int(offsets[limit][0]), 1)


Precision = Literal["float32", "bfloat16"]

BATCH = 16  # texts per forward pass: on two cores 8 to 16 full windows were the fastest, 64 less than half as fast
RUNNING = threading.RLock()  # held while a model loads or runs: torch's number of threads is the process's
LOCAL: dict[str, Any] = {"device": "cpu", "local_files_only": True, "trust_remote_code": False,
                         "model_kwargs": {"use_safetensors": True}}
"""How every model is loaded: on the processor, from what is on this machine, weights only."""


@contextlib.contextmanager
def loading(folder: ModelFolder, what: str) -> Iterator[str]:
    """Within, a model is loaded from the path that is given, without progress bars. Raises ModelError, which calls the
    model `what`, where the files are not a model that can be read."""
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
    """Within, a model runs alone in this process, in float32, or in bfloat16 where that costs little: the products of
    matrices are rounded to it, norms and the softmax are not (PyTorch's automatic mixed precision), which is as fast as
    weights in bfloat16, and 70 times as near to float32. `threads` are torch's: waking a parked second one cost a
    single query 130 ms, working alone 8."""
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
    """Return the tokenizer of a model, apart from its own, which cuts and pads nothing. Raises ModelError where the
    model has none of the fast kind."""
    from tokenizers import Tokenizer

    own = getattr(model.tokenizer, "backend_tokenizer", None)
    if own is None:
        raise ModelError("this model has no fast tokenizer, which is needed to cut long texts: use another")
    return uncut(Tokenizer.from_str(own.to_str()))
