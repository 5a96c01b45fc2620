"""Embedders: one file a kind. The union of their settings is the registry; a name alone stands for usual settings."""
from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, WrapSerializer

from retrieval.embedders.base import EmbedderKind
from retrieval.embedders.opening import by_name, shortest
from retrieval.embedders.sentence import Sentence
from retrieval.embedders.server import Server
from retrieval.embedders.static import Static

EmbedderSettings = Annotated[
    Annotated[Sentence | Static | Server, Field(discriminator="kind")],
    BeforeValidator(by_name, json_schema_input_type=str | Sentence | Static | Server), WrapSerializer(shortest)]

__all__ = ["EmbedderKind", "EmbedderSettings", "Sentence", "Server", "Static"]
