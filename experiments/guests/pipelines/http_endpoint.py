"""A pipeline behind a URL: one POST of JSON per question."""
from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator

from ragbed.documents.errors import ModelError
from ragbed.documents.http import Response, check_url, transport_errors
from ragbed.documents.http_client import bounded_client
from ragbed.experiments.guests.pipelines.pipeline import Channel, JSONPipeline

if TYPE_CHECKING:
    import httpx2

    from ragbed.agents.model_settings import CallLimits


def _check_url(url: str) -> str:
    try:
        return check_url(url, "a pipeline's URL")
    except ModelError as error:
        raise ValueError(str(error)) from None


class URLPipeline(JSONPipeline):
    """A pipeline behind a URL.

    Attributes:
        url: URL without user name, password and query.
        key_variable: environment variable that holds the key, which is sent as a bearer token.
    """

    url: Annotated[str, AfterValidator(_check_url)]
    key_variable: str | None = None

    def connect(self, url: str, limits: CallLimits) -> HttpChannel:
        """Return a connection to a URL. Raises ModelError if the environment variable of the key is not set."""
        key = "" if self.key_variable is None else os.environ.get(self.key_variable, "").strip()
        if self.key_variable is not None and not (key and key.isascii() and key.isprintable() and " " not in key):
            raise ModelError(f"pipeline {self.name}: no key; set {self.key_variable} to the pipeline's key")
        return HttpChannel(self, url, key, self.concurrency or limits.concurrency)


class Http(URLPipeline):
    """An endpoint that takes JSON and returns JSON."""

    kind: Literal["http"] = "http"

    def open(self, limits: CallLimits) -> HttpChannel:
        """Return a connection to the endpoint."""
        return self.connect(self.url, limits)


@dataclass(frozen=True)
class HttpChannel(Channel):
    """Posts the request to the pipeline's URL."""

    connections: int = 1

    @cached_property
    def _client(self) -> httpx2.AsyncClient:
        return bounded_client(self.url, self.connections)

    async def post(self, body: Any) -> Response:
        """Send one request. Raises ConnectionError if no complete reply arrives, and BadReply if the reply is too
        large."""
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        with transport_errors():
            got = await self._client.post(self.url, json=body, headers=headers)
            return Response(got.status_code, got.headers, got.content)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()
