"""Settings with several kinds, such as those of retrievers: one pydantic model per kind, and a union of the models."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Union

from pydantic import BaseModel, ConfigDict, Discriminator, Tag, model_validator


class KindModel(BaseModel):
    """Base of the settings of one kind, which are frozen and closed. The name of the kind alone selects its
    defaults."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str

    @model_validator(mode="before")
    @classmethod
    def _expand_name(cls, value: Any) -> Any:
        return {"kind": value} if isinstance(value, str) else value


def tagged_union(kinds: Iterable[type[BaseModel]], default: str | None = None) -> Any:
    """Return the union of these models, discriminated by `kind`. Settings without a kind get the kind `default`."""
    def kind_of(value: Any) -> Any:
        if isinstance(value, str):
            return value
        return value.get("kind", default) if isinstance(value, dict) else getattr(value, "kind", default)

    tagged = tuple(Annotated[one, Tag(one.model_fields["kind"].default)] for one in kinds)
    return Annotated[Union[tagged], Discriminator(kind_of)]  # noqa: UP007
