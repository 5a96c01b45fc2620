"""Kind: the settings of one kind of retriever, which open it over a collection."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import model_validator

from ragbed.retrieval.rerankers.reranker import Aids
from ragbed.retrieval.tagged_union import KindModel
from ragbed.retrieval.types import Collection, Retriever

MOST = 32  # retrievers that one may be made of, whatever their order: each level may double them


class RetrieverKind(KindModel):
    """Settings of a retriever.

    One that is made of others annotates them with `"RetrieverSettings"`, the union of all kinds, and calls them `of`.
    """

    @model_validator(mode="before")
    @classmethod
    def _few(cls, value: Any) -> Any:
        waiting, found = [value], 0
        while waiting:
            one = waiting.pop()
            found += 1
            if found > MOST:
                raise ValueError(f"it is made of more than {MOST} retrievers: leave some out")
            of = one.get("of") if isinstance(one, dict) else getattr(one, "of", None)
            waiting.extend(of if isinstance(of, list | tuple) else [of] if of is not None else [])
        return value

    @property
    def embeds(self) -> bool:
        """True where the collection's embedder has any part in what is found."""
        return True

    def open(self, collection: Collection, aids: Aids) -> Retriever:
        """Return the retriever over that collection; UserError where a model or package that it needs is missing."""
        raise NotImplementedError

    def identity(self) -> str:
        """Return what tells retrievers apart that find or rank otherwise in equal collections: their settings, and what
        they use. The collection's embedder is the collection's. Nothing large is loaded. Raises UserError where a model
        or package that it needs is not to be had."""
        raise NotImplementedError


if TYPE_CHECKING:
    RetrieverSettings: TypeAlias = RetrieverKind
