"""A pipeline behind a URL: one POST of JSON a question."""
from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

import httpx2
from pydantic import AfterValidator

from ragbed.agents.pipelines.base import Channel, PipelineSettings
from ragbed.documents.errors import ModelError
from ragbed.documents.http import Response, bounded_client, check_url, transport_errors

if TYPE_CHECKING:
    from ragbed.agents.settings import CallLimits


def _without_secrets(url: str) -> str:
    try:
        return check_url(url, "a pipeline's URL")
    except ModelError as error:
        raise ValueError(str(error)) from None


def key_in(variable: str | None) -> str:
    """Return the key that an environment variable holds; ModelError where it is not set, and no key without one."""
    if variable is None:
        return ""
    key = os.environ.get(variable, "").strip()
    if not (key and key.isascii() and key.isprintable() and " " not in key):
        raise ModelError(f"no key: set {variable} to the key of the pipeline")
    return key


class OfUrl(PipelineSettings):
    """A pipeline behind a URL.

    Attributes:
        url: without user, password and query.
        key_variable: the environment variable with the key that is sent as a bearer token.
    """

    url: Annotated[str, AfterValidator(_without_secrets)]
    key_variable: str | None = None

    def channel(self, url: str, limits: CallLimits) -> HttpChannel:
        """Make the connections to a URL."""
        return HttpChannel(self, url, key_in(self.key_variable), self.concurrency or limits.concurrency)


class Http(OfUrl):
    """An endpoint that takes JSON and returns JSON."""

    kind: Literal["http"] = "http"

    def open(self, limits: CallLimits) -> HttpChannel:
        """Make its connections."""
        return self.channel(self.url, limits)


@dataclass(frozen=True)
class HttpChannel(Channel):
    """Posts the request to the settings' URL."""

    connections: int = 1

    @cached_property
    def _client(self) -> httpx2.AsyncClient:
        return bounded_client(self.url, self.connections)

    async def post(self, body: Any) -> Response:
        """Send one request; raise ConnectionError where no whole reply comes back, BadReply where it is too large."""
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        with transport_errors():
            got = await self._client.post(self.url, json=body, headers=headers)
            return Response(got.status_code, got.headers, got.content)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()
