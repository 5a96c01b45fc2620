"""Prefixes that embedding models expect in front of queries and passages, found by the model's files or name."""
from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ragbed.documents.chunkers.spans import Span
from ragbed.retrieval.embedders.embedder_settings import EmbedderKind
from ragbed.retrieval.embedders.windows import Reader
from ragbed.retrieval.types import Embedder, Matrix

_BGE = "Represent this sentence for searching relevant passages: "
_E5_TASK = "Given a web search query, retrieve relevant passages that answer the query"

FAMILIES: tuple[tuple[str, str, str], ...] = (
    # Pattern of the model's name, query prefix, passage prefix. The first match counts.
    (r"e5-.*instruct|e5-mistral", f"Instruct: {_E5_TASK}\nQuery: ", ""),  # model card of multilingual-e5-large-instruct
    (r"(^|[/_-])e5-", "query: ", "passage: "),  # model cards of intfloat/e5-* and multilingual-e5-*
    (r"bge-(small|base|large)-en", _BGE, ""),  # FlagEmbedding's README: for short queries, not for passages
    (r"bge-(small|base|large)-zh", "为这个句子生成表示以用于检索相关文章：", ""),
    (r"nomic-embed-text", "search_query: ", "search_document: "),  # model card of nomic-embed-text-v1 and v1.5
    (r"mxbai-embed|snowflake-arctic-embed-(xs|s|m|l)($|-v1|-long)|uae-large", _BGE, ""),  # model cards of these models
    (r"snowflake-arctic-embed-.*-v2", "query: ", ""),
    (r"embeddinggemma", "task: search result | query: ", "title: none | text: "),
)
"""Families of models whose cards require prefixes that some copies of their files do not declare."""


@dataclass(frozen=True, slots=True)
class Prefixes:
    """Texts put in front of each query and each passage before they are embedded."""

    query: str = ""
    passage: str = ""

    @classmethod
    def choose(cls, name: str, declared: Prefixes, query: str | None, passage: str | None) -> Prefixes:
        """Return the prefixes in the settings. A missing one comes from the model's files, or from its family."""
        usual = declared if declared != cls() else family_prefixes(name)
        return cls(usual.query if query is None else query, usual.passage if passage is None else passage)


def family_prefixes(name: str) -> Prefixes:
    """Return the prefixes of the family that a model's name belongs to; empty for other names."""
    short = name.rstrip("/").rsplit("/", 1)[-1].lower()
    found = ((query, passage) for pattern, query, passage in FAMILIES if re.search(pattern, short))
    return Prefixes(*next(found, ("", "")))


class PrefixedEmbedder:
    """Base class of embedders that are opened from settings, and put prefixes in front of queries and passages."""

    settings: EmbedderKind
    prefixes: Prefixes

    @property
    def name(self) -> str:
        return self.settings.shorthand() or self.settings.model

    @cached_property
    def identity(self) -> str:
        return self.identity_with(self.prefixes.query)

    @cached_property
    def passage_identity(self) -> str:
        """Identity of the passage vectors, which is equal for embedders that differ only in the query prefix."""
        return self.identity_with(None)

    def identity_with(self, query_prefix: str | None) -> str:
        """Return text that differs between embedders with different vectors. Ignore queries if `query_prefix` is
        None."""
        raise NotImplementedError

    @property
    def dimension(self) -> int:
        raise NotImplementedError

    @property
    def reader(self) -> Reader:
        """Reader that cuts texts into windows for the model."""
        raise NotImplementedError

    def windows(self, texts: Sequence[str], header: str = "") -> list[list[Span]]:
        return self.reader.windows(texts, self.prefixes.passage + header)

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return self.embed(texts, self.prefixes.query) if texts else np.zeros((0, self.dimension), np.float32)

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        return self.embed(texts, self.prefixes.passage) if texts else np.zeros((0, self.dimension), np.float32)

    def embed(self, texts: Sequence[str], prefix: str) -> Matrix:
        """Return the vectors of one or more texts, each with the prefix in front."""
        raise NotImplementedError


def settings_of(embedder: Embedder) -> EmbedderKind | None:
    """Return settings that open this embedder again, with its prefixes. None if it was not opened from settings."""
    if not isinstance(embedder, PrefixedEmbedder):
        return None
    prefixes = embedder.prefixes
    changed: dict[str, str | None] = {"query_prefix": prefixes.query, "passage_prefix": prefixes.passage}
    changed |= {name: None for name in ("query_prompt", "passage_prompt") if hasattr(embedder.settings, name)}
    return embedder.settings.model_copy(update=changed)
