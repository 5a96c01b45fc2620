"""Where a model is reached: an address, and the seam through which the client asks for it."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Address:
    """A server's base URL and the key that it wants.

    Attributes:
        url: base URL, without user, password or query.
        key_variable: the environment variable that holds the key; None where no user ever sets it.
    """

    url: str
    key: str = field(repr=False)
    key_variable: str | None = None


class Endpoint(Protocol):
    """Something that can be reached; a local server may have to start first."""

    async def address(self) -> Address:
        """Where to send the next request.

        Raises:
            ModelError: the model cannot be reached at all.
        """
        ...

    async def aclose(self) -> None:
        """Stop what was started."""
        ...


@dataclass(frozen=True, slots=True)
class Remote:
    """A server that somebody else runs."""

    at: Address

    async def address(self) -> Address:
        return self.at

    async def aclose(self) -> None:
        return None
