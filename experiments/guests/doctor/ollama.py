"""Read the context that Ollama gives a model, and request a larger one.

Ollama cuts a prompt beyond its context without an error. Its OpenAI-compatible API has no parameter for the context, so
a larger one needs a model with another `num_ctx`. That model shares the weights of the first.
"""
from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ragbed.agents.model_settings import Context
from ragbed.documents.http import Address, is_loopback, transport_errors
from ragbed.documents.http_client import bounded_client
from ragbed.documents.json import loads

if TYPE_CHECKING:
    import httpx2

_PORT = 11434  # Ollama's port; on other machines, only servers at this port are asked
_SECONDS, _LOAD_SECONDS = 1.0, 180.0  # timeouts of a request, and of loading a model


async def request_context(at: Address, served: str, wanted: int | None) -> tuple[str, Context | None]:
    """Return the name and context of a model of Ollama. For other servers, return the same name and no context.

    The model is loaded, because only then its context is known. If `wanted` is larger than its context, another model
    with the wanted context is created from it.
    """
    url = urlsplit(at.url)
    if not is_loopback(at.url) and url.port != _PORT:
        return served, None
    client = bounded_client(at.url, 1)
    client.base_url, client.headers["Authorization"] = f"{url.scheme}://{url.netloc}", f"Bearer {at.key}"
    larger = f"{served if ':' in served else f'{served}:latest'}-ctx{wanted}"
    async with client:
        try:
            known = wanted and await _context(client, larger)
            if known:
                return larger, Context(known, whole_reply=False)
            known = await _context(client, served)
            if known and wanted and wanted > known:
                await _call(client, "create", {"model": larger, "from": served, "parameters": {"num_ctx": wanted},
                                               "stream": False})
                given = await _context(client, larger) or 0
                logging.getLogger(__name__).warning(
                    "Ollama gives %s a context of %d tokens%s", served, max(given, known),
                    f" under the new name {larger}" if given > known else f", not {wanted}")
                served, known = (larger, given) if given > known else (served, known)
        except (ConnectionError, ValueError):
            return served, None
    return served, Context(min(known, wanted or known), whole_reply=False) if known else None


async def _context(client: httpx2.AsyncClient, served: str) -> int | None:
    """Return the context of a model once it is loaded; None if the server is not Ollama or does not report it."""
    if "models" not in await _call(client, "ps"):
        return None
    await _call(client, "generate", {"model": served, "stream": False}, _LOAD_SECONDS)
    loaded = (await _call(client, "ps")).get("models")
    names = {served, f"{served}:latest"}
    sizes = [one.get("context_length") for one in loaded or () if isinstance(one, dict) and one.get("name") in names]
    shown = str((await _call(client, "show", {"model": served})).get("parameters"))
    sizes += [int(size) for size in re.findall(r"^num_ctx\s+(\d{1,9})$", shown, re.MULTILINE)]
    return next((size for size in sizes if type(size) is int and size > 0), None)


async def _call(client: httpx2.AsyncClient, name: str, body: Any = None, seconds: float = _SECONDS) -> dict[str, Any]:
    """Return what Ollama replies to a request; empty for an error. Raises ConnectionError if no reply arrives."""
    with transport_errors():
        got = await client.request("POST" if body else "GET", f"/api/{name}", json=body, timeout=seconds)
    data = loads(got.content, mend=True) if got.status_code == 200 else {}
    return data if isinstance(data, dict) else {}
