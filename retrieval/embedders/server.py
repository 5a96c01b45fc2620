"""Embedders behind any OpenAI-compatible `/v1/embeddings`."""
from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, field_validator

from documents.chunkers.spans import Span
from documents.types import digest
from retrieval.embedders.base import EmbedderKind, Prefixes
from retrieval.embedders.reading import cut_by_estimate, pooled, shortened, unit
from retrieval.serving.servers import SERVED, Address, served_at

if TYPE_CHECKING:
    from retrieval.embedder import Matrix
    from retrieval.embedders.requests import Embeddings

_OPENAI = "https://api.openai.com/v1"

MOST = 256
"""Texts given at once where a request has fewer: those that are not kept yet are lost by a kill, and paid again."""


class Server(EmbedderKind):
    """A model that a server embeds with.

    Attributes:
        model: `openai:NAME` or `http(s)://host/v1#NAME`. The key comes from OPENAI_API_KEY or RAGBED_API_KEY.
        dimensions: sent with each request, for models that can shorten their vectors; None sends none.
        window: tokens that the server takes of one text. Where its tokenizer is not known they are estimated from the
            characters, rather too many than too few.
        batch: texts of one request.
        concurrency: requests that are open at once.
        seconds: deadline of one request with all its attempts.
        attempts: requests sent before a failure is final.
        query_prefix: in front of each query; None for what the family of the model's name demands.
        passage_prefix: likewise in front of each passage.
    """

    kind: Literal["server"] = "server"
    model: str
    dimensions: int | None = Field(None, ge=1)
    window: int = Field(8_191, ge=32)
    batch: int = Field(64, ge=1, le=2_048)
    concurrency: int = Field(4, ge=1, le=64)
    seconds: float = Field(120.0, gt=0)
    attempts: int = Field(5, ge=1)
    query_prefix: str | None = None
    passage_prefix: str | None = None

    @field_validator("model")
    @classmethod
    def _of_a_server(cls, model: str) -> str:
        if model.partition(":")[0] not in SERVED:
            raise ValueError("expected openai:NAME or http://host/v1#NAME")
        return model

    def open(self) -> ServerEmbedder:
        return ServerEmbedder(*served_at(self.model, calls=False), self)

    def resolved(self) -> Self:
        prefixes = self.open().prefixes
        return self.model_copy(update={"query_prefix": prefixes.query, "passage_prefix": prefixes.passage})

    def shorthand(self) -> str | None:
        return self.model if self == Server(model=self.model) else None


class ServerEmbedder:
    """A model behind a server. The key is read, and needed, when the first text is sent."""

    def __init__(self, at: Address, served: str, settings: Server) -> None:
        self._url, self._served, self.settings = at.url, served, settings
        self.prefixes = Prefixes.of(served, Prefixes(), settings.query_prefix, settings.passage_prefix)

    @property
    def name(self) -> str:
        return self.settings.model

    @property
    def at_once(self) -> int:
        """Texts that it is to be given at once: so that all requests that may be open are, but not many more."""
        return max(min(self.settings.batch * self.settings.concurrency, MOST), self.settings.batch)

    @cached_property
    def identity(self) -> str:
        """The served name and a hash of the rest, with the address: elsewhere that name may be another model."""
        return self._identified(self.prefixes.query)

    @cached_property
    def passage_identity(self) -> str:
        """The same for all that embed passages as this one does, whatever stands in front of queries."""
        return self._identified("")

    def _identified(self, query_prefix: str) -> str:
        where = "" if self._url == _OPENAI else self._url
        told = [where, self._served, str(self.settings.dimensions), self.settings.long,
                query_prefix, self.prefixes.passage]
        # Long texts are cut by the window, others are the same by any.
        return f"served:{self._served}-{digest(*told, str(self.settings.window))[:16]}"

    @cached_property
    def dimension(self) -> int:
        return self.settings.dimensions or self._requests.dimension()

    @property
    def window(self) -> int:
        return self.settings.window

    def windows(self, texts: Sequence[str], header: str = "") -> list[list[Span]]:
        if self.settings.long == "truncated":
            return [[(0, len(text))] for text in texts]
        return cut_by_estimate(texts, self.window, self.prefixes.passage + header)

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return self._embed(texts, self.prefixes.query)

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        return self._embed(texts, self.prefixes.passage)

    def _embed(self, texts: Sequence[str], prefix: str) -> Matrix:
        import numpy as np

        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        if self.settings.long == "truncated":
            return unit(self._vectors([shortened(prefix + text, self.window) for text in texts]))
        spans = cut_by_estimate(texts, self.window, prefix)
        pieces = [prefix + text[start:end] for text, cuts in zip(texts, spans, strict=True) for start, end in cuts]
        return pooled(self._vectors(pieces), [len(cuts) for cuts in spans], normalise=True)

    def _vectors(self, pieces: Sequence[str]) -> Matrix:
        import numpy as np

        size = self.settings.batch
        batches = [pieces[first:first + size] for first in range(0, len(pieces), size)]
        if len(batches) == 1:
            return self._requests.embed(batches[0])
        with ThreadPoolExecutor(self.settings.concurrency, "embed") as workers:
            return np.concatenate(list(workers.map(self._requests.embed, batches)))

    @cached_property
    def _requests(self) -> Embeddings:
        from retrieval.embedders.requests import Embeddings

        return Embeddings(*served_at(self.name), self.settings)
