"""Kind: the settings of one kind of retriever, which open it over a collection."""
from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, Union

from pydantic import BaseModel, ConfigDict, Discriminator, Tag, model_validator

from retrieval.types import Aids, Collection, Retriever


class Kind(BaseModel):
    """Settings of a retriever: small, frozen and closed. The name of the kind alone stands for its defaults.

    One that is made of others annotates them with `"RetrieverSettings"`, the union of all kinds.
    """

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


def kind_of(value: Any) -> Any:
    """The kind that settings are of: a name alone stands for its defaults."""
    if isinstance(value, str):
        return value
    return value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)


def discriminated(kinds: Iterable[type[BaseModel]]) -> Any:
    """The union of these models by their `kind`."""
    tagged = tuple(Annotated[one, Tag(one.model_fields["kind"].default)] for one in kinds)
    return Annotated[Union[tagged], Discriminator(kind_of)]  # noqa: UP007


if TYPE_CHECKING:
    RetrieverSettings: TypeAlias = Kind
