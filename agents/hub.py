"""Model files of the Hugging Face hub, named `hf:OWNER/REPO/FILE.gguf` and checked against the hash it states."""
from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.weights import sha256_of
from documents.errors import ModelError
from documents.paths import cache_dir

if TYPE_CHECKING:
    from agents.fetch import Progress

HUB = "hf:"
_NAME = re.compile(r"hf:([\w-][\w.-]*)/([\w-][\w.-]*)/((?:[\w-][\w.-]*/)*[\w-][\w.-]*\.gguf)", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}")


def place(spec: str) -> Path:
    """Where a pull puts the file; ModelError where the name does not fit."""
    owner, repo, file = _parts(spec)
    return cache_dir() / "models" / "hf" / owner / repo / file


def found_on_disk(spec: str) -> Path:
    """Where an earlier pull put the file.

    Raises:
        ModelError: the name does not fit, or the file was never pulled.
    """
    path = place(spec)
    if not path.is_file():
        raise ModelError(f"{spec} is not on this machine; run: ragbed models pull {spec}")
    return path


def pull_from_hub(spec: str, progress: Progress) -> Path:
    """Fetch a file with huggingface_hub, which resumes what was broken off.

    Raises:
        ModelError: no such file, no network, no stated hash, or another hash than stated.
    """
    path = place(spec)
    owner, repo, file = _parts(spec)
    from httpx2 import HTTPError
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError
    endpoint = os.environ.get("HF_ENDPOINT")
    incoming = path.parent / ".incoming"
    try:
        url = hf_hub_url(f"{owner}/{repo}", file, endpoint=endpoint)
        stated = get_hf_file_metadata(url, endpoint=endpoint)
        if not _SHA256.fullmatch(stated.etag or ""):
            raise ModelError(f"{spec}: the hub states no sha256 for it")
        if not (path.is_file() and sha256_of(path) == stated.etag):
            fetched = Path(hf_hub_download(f"{owner}/{repo}", file, revision=stated.commit_hash, local_dir=incoming,
                                           endpoint=endpoint, tqdm_class=_bar(progress)))
            _put_in_place(spec, fetched, str(stated.etag), path)
    except HfHubHTTPError as error:
        raise ModelError(f"{spec}: the hub answers HTTP {error.response.status_code}") from None
    except (HTTPError, HFValidationError) as error:
        raise ModelError(f"{spec}: the hub cannot be reached ({type(error).__name__})") from None
    except OSError as error:
        raise ModelError(f"{spec}: cannot be fetched: {error.strerror or type(error).__name__}") from None
    return path


def _put_in_place(spec: str, fetched: Path, sha256: str, path: Path) -> None:
    found = sha256_of(fetched)
    if found != sha256:
        fetched.unlink()
        raise ModelError(f"{spec}: came with sha256 {found[:16]}… where the hub states {sha256[:16]}…; try again")
    os.replace(fetched, path)


def _parts(spec: str) -> tuple[str, str, str]:
    match = _NAME.fullmatch(spec)
    if match is None:
        raise ModelError(f"{spec!r}: a model of the hub is written hf:OWNER/REPO/FILE.gguf")
    return match[1], match[2], match[3]


def _bar(progress: Progress) -> type[Any]:
    """huggingface_hub reports to a tqdm bar; this one hands on its counts and draws nothing."""
    from huggingface_hub.utils.tqdm import tqdm

    class Bar(tqdm):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **{**kwargs, "disable": True})  # type: ignore[no-untyped-call]
            self.n, self.total = kwargs.get("initial") or 0, kwargs.get("total")

        def update(self, n: float | None = 1) -> None:
            self.n += n or 0
            progress(int(self.n), self.total)

    return Bar
