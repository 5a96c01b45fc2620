"""A sentence-transformers model exported once, with its pooling, to one graph in the cache."""
from __future__ import annotations

import importlib.metadata
import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from documents.errors import ModelError
from documents.places import cache_dir
from documents.types import digest
from retrieval.embedders.engines import STEP, Facts, PyTorch, padded
from retrieval.models.finding import ModelFolder, plain_tokenizer
from retrieval.storage.folder import alone, is_whole, keep
from retrieval.types import Matrix

if TYPE_CHECKING:
    import torch
    from tokenizers import Tokenizer

VERSION = 1
"""Of what is kept; a change makes every model be exported anew."""

NEAREST = 0.9999
"""Cosine that an exported graph must reach with PyTorch's vectors; float32 reaches 0.999999."""

_FACTS, _TOKENIZER = "facts.json", "tokenizer.json"
_PROBES = ("Rivers carry sand to the sea.", "", "Die Ausgaben stiegen 2022 um 5,3 % auf 1.234 Mio. Euro; 서울의 예산은 "
           "줄었다. " * 12, "42")
Run = Callable[["NDArray[Any]", "NDArray[Any]"], "Matrix"]


@dataclass(frozen=True, slots=True)
class Form:
    """A form of graphs.

    Attributes:
        file: what the graph's file is called.
        maker: distributions whose versions may change a graph.
        write: writes the graph of a module, given example inputs, to a file.
        read: what computes the graph in a file.
    """

    file: str
    maker: tuple[str, ...]
    write: Callable[[torch.nn.Module, tuple[torch.Tensor, ...], Path], None]
    read: Callable[[Path], Run]


@dataclass(frozen=True, slots=True)
class ExportedGraph:
    """A graph in the cache."""

    graph: Path
    facts: Facts

    def tokenizer(self) -> Tokenizer:
        """Return a new tokenizer, as the model reads texts."""
        return plain_tokenizer(self.graph.parent / _TOKENIZER)


def exported(folder: ModelFolder, form: Form) -> ExportedGraph:
    """Return the model's graph: kept and as it was written, or exported now and compared with PyTorch.

    Raises:
        ModelError: the model cannot be loaded or exported, or its graph gives other vectors.
        SettingsError: the cache folder cannot be written.
    """
    versions = (f"{name} {importlib.metadata.version(name)}" for name in ("torch", "transformers", *form.maker))
    kept = cache_dir() / "graphs" / digest(folder.identity, form.file, str(VERSION), *versions)[:32]
    if not is_whole(kept):
        with alone(kept, wait=True):
            if not is_whole(kept):
                keep(kept, lambda fresh: _export(folder, form, fresh))
    try:
        return ExportedGraph(kept / form.file, Facts(**json.loads((kept / _FACTS).read_bytes())))
    except (OSError, ValueError, TypeError) as error:
        raise ModelError(f"the exported model in {kept} is damaged: delete that folder") from error


def _export(folder: ModelFolder, form: Form, fresh: Path) -> None:
    engine = PyTorch(folder, "float32")
    reads: Any = engine.model.tokenizer
    tokenizer = engine.tokenizer()
    try:
        facts = Facts(engine.dimension, engine.window, int(reads.pad_token_id or 0), reads.padding_side,
                      reads.truncation_side)
        with _quiet():
            form.write(*_whole(engine), fresh / form.file)
        _compare(engine, form.read(fresh / form.file), facts, tokenizer)
    except (RuntimeError, ValueError, TypeError, KeyError, AttributeError, AssertionError) as error:
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ModelError(f"{folder.name} cannot be exported to {form.file}: use the backend float32 or bfloat16 "
                         f"({said[:200]})") from error
    tokenizer.save(str(fresh / _TOKENIZER))
    (fresh / _FACTS).write_text(json.dumps(asdict(facts)), encoding="utf-8")


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
    import logging

    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
