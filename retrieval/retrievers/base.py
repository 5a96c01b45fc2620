"""Kind: the settings of one kind of retriever, which open it over a collection."""
from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from retrieval.kinds import Named
from retrieval.types import Aids, Collection, Retriever


class Kind(Named):
    """Settings of a retriever.

    One that is made of others annotates them with `"RetrieverSettings"`, the union of all kinds.
    """

    @property
    def embeds(self) -> bool:
        """Whether the collection's embedder has any part in what is found."""
        return True

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


if TYPE_CHECKING:
    RetrieverSettings: TypeAlias = Kind
