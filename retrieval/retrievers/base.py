"""Kind: the settings of one kind of retriever, which open it over a collection."""
from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from retrieval.types import Aids, Collection, Retriever


class Kind(BaseModel):
    """Settings of a retriever: small, frozen and closed. The name of the kind alone stands for its defaults."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, value: Any) -> Any:
        return {"kind": value} if isinstance(value, str) else value

    def open(self, collection: Collection, aids: Aids) -> Retriever:
        """The retriever over that collection.

        Raises:
            UserError: a model or package that it needs is not to be had.
        """
        raise NotImplementedError

    def identity(self) -> str:
        """Tells retrievers apart that find or rank otherwise in equal collections: their settings, and what they use.

        The collection's embedder is the collection's. Nothing large is loaded.

        Raises:
            UserError: a model or package that it needs is not to be had.
        """
        raise NotImplementedError
