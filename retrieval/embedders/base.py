"""EmbedderKind: the settings of one kind of embedder, which open it."""
from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict

from retrieval.embedder import Embedder


class EmbedderKind(BaseModel):
    """Settings of an embedder: small, frozen and closed.

    Attributes:
        long: what becomes of a text that is longer than the model reads. By `windows` every part of it is embedded;
            `truncated`, its beginning stands for it, as in most published figures.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str
    long: Literal["windows", "truncated"] = "windows"

    def open(self) -> Embedder:
        """The embedder. What is large is loaded when first needed.

        Raises:
            ModelError: the model is not to be had.
            MissingExtra: a package that the settings need is not installed.
        """
        raise NotImplementedError

    def resolved(self) -> Self:
        """These settings with what they leave to the model, such as its prefixes, said outright.

        Raises:
            ModelError: the model is not to be had.
        """
        return self

    def shorthand(self) -> str | None:
        """The name that alone stands for these settings; None where they say more than a name can."""
        raise NotImplementedError
