"""OpenAI's embeddings, by the embedders of the indexes that are served."""
from __future__ import annotations

import asyncio
import base64
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, BeforeValidator, Field

from ragbed.documents.errors import CallError, UserError
from ragbed.experiments.serving.state import Serving, refused
from ragbed.retrieval.types import Embedder, Matrix

Text = Annotated[str, Field(min_length=1, max_length=100_000)]
Texts = Annotated[list[Text], Field(min_length=1, max_length=512),
                  BeforeValidator(lambda given: [given] if isinstance(given, str) else given)]


class EmbeddingRequest(BaseModel):
    """A request for the vectors of texts.

    Attributes:
        model: the name of an index's embedder.
        dimensions: vectors have those of the index.
        input_type: what the texts are, which many embedders read differently; no field of OpenAI's.
    """

    model: str
    input: Texts
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: None = None
    input_type: Literal["query", "passage"] = "passage"


def embedding_routes(serving: Serving) -> APIRouter:
    """Return the route `/v1/embeddings`. Embedders use every core, so that requests take turns."""
    router, turn = APIRouter(), asyncio.Lock()

    @router.post("/v1/embeddings")
    async def embeddings(given: EmbeddingRequest) -> dict[str, Any]:
        try:
            async with turn:
                vectors = await asyncio.to_thread(_embedded, serving, given)
        except (UserError, CallError) as error:
            raise refused(502, str(error), "embedder_failed") from error
        shown = [base64.b64encode(row.astype("<f4").tobytes()).decode() if given.encoding_format == "base64"
                 else row.tolist() for row in vectors]
        return {"object": "list", "model": given.model, "usage": {"prompt_tokens": 0, "total_tokens": 0},
                "data": [{"object": "embedding", "index": place, "embedding": one} for place, one in enumerate(shown)]}

    return router


def _embedded(serving: Serving, given: EmbeddingRequest) -> Matrix:
    indexes = {one.assistant.index.manifest.embedder.name: one.assistant.index
               for one in serving.configurations.values()}
    if given.model not in indexes:
        raise refused(404, f"no embedder {given.model!r:.100}; there are {', '.join(indexes)}", "model_not_found")
    embedder: Embedder = indexes[given.model].embedder
    long = next((place for place, spans in enumerate(embedder.windows(given.input)) if len(spans) > 1), None)
    if long is not None:
        raise refused(400, f"input {long} is longer than the {embedder.window} tokens that {given.model} reads",
                      "too_long")
    embed = embedder.embed_queries if given.input_type == "query" else embedder.embed_passages
    return embed(given.input)
