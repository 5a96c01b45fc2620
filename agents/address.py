"""Endpoint: the seam through which the client asks where a model is reached."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from retrieval.serving.servers import Address


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
