"""Finders: the retrievers of a run over each way of cutting and embedding that its settings compare.

How to find, as the command line says it: a retriever by its kind or by settings, and conditions.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from documents.errors import SettingsError
from experiments.settings.file import explain, read_value
from experiments.settings.matrix import retrievers_of
from experiments.settings.retrievers import RetrieverFactor, label
from experiments.settings.run import RunSettings
from retrieval.filters.terms import Where
from retrieval.retrievers import RetrieverKind, RetrieverSettings


class Finding(BaseModel):
    """A retriever, and among which chunks it looks."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    retriever: RetrieverSettings
    where: Where = ()


def finding(retriever: str, where: list[str]) -> tuple[RetrieverKind, tuple[str, ...]]:
    """The retriever's settings and the conditions.

    Args:
        retriever: a kind such as `bm25`, or settings in YAML such as `{kind: fused, of: [dense, bm25]}`.
        where: texts such as `page >= 3`.

    Raises:
        SettingsError: one line for what does not fit.
    """
    try:
        given = Finding(retriever=read_value(retriever, "--retriever"), where=where)
    except ValidationError as error:
        raise SettingsError(explain(error.errors(include_url=False)[0], Finding)) from error
    return given.retriever, given.where


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
