"""Finders: the retrievers of a run over each way of cutting and embedding that its settings compare."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from experiments.settings.matrix import retrievers_of
from experiments.settings.naming import label
from experiments.settings.retrievers import RetrieverFactor
from experiments.settings.run import RunSettings

_BETWEEN = " · "


@dataclass(frozen=True, slots=True)
class Finder:
    """A retriever over chunks of one making.

    Attributes:
        retriever: its `name` has those of the chunker and the embedder where the run compares them, and its `build`
            has those in the place of its own.
        cut: whether documents that questions bring are cut by the chunker, rather than searched as they were cut.
    """

    retriever: RetrieverFactor
    cut: bool = False


def finder_name(retriever: str | None, chunker: str | None, embedder: str | None) -> str | None:
    """What a finder is called; None where nothing is searched."""
    return None if retriever is None else _BETWEEN.join(filter(None, (retriever, chunker, embedder)))


def finders_of(settings: RunSettings) -> dict[str, Finder]:
    """Every finder that the settings describe, by name, whether or not a cell uses it."""
    found: dict[str, Finder] = {}
    for retriever in retrievers_of(settings):
        for chunker in (None, *settings.chunkers):
            for embedder in (None, *settings.embedders):
                parts = (label(one) if one else None for one in (chunker, embedder))
                name = finder_name(retriever.name, *parts) or ""
                made: dict[str, Any] = {"chunker": chunker} if chunker else {}
                made |= {"embedder": embedder} if embedder else {}
                build = retriever.build.model_copy(update=made)
                found[name] = Finder(retriever.model_copy(update={"name": name, "build": build}), chunker is not None)
    return found
