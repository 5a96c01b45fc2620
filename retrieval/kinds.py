"""Settings by their kind: small closed models, a name alone for the defaults, and unions of them."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Union

from pydantic import BaseModel, ConfigDict, Discriminator, Tag, model_validator


class Named(BaseModel):
    """Settings of one kind of something: small, frozen, closed. The name of the kind alone stands for its defaults."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, value: Any) -> Any:
        return {"kind": value} if isinstance(value, str) else value


def discriminated(kinds: Iterable[type[BaseModel]], usual: str | None = None) -> Any:
    """Return the union of these models by their `kind`, `usual` where none is named; a name stands for its defaults."""
    def kind_of(value: Any) -> Any:
        if isinstance(value, str):
            return value
        return value.get("kind", usual) if isinstance(value, dict) else getattr(value, "kind", usual)

    tagged = tuple(Annotated[one, Tag(one.model_fields["kind"].default)] for one in kinds)
    return Annotated[Union[tagged], Discriminator(kind_of)]  # noqa: UP007
