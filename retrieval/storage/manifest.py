"""The manifest of an index folder: what it was made of and with, and the hashes that prove it whole."""
from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from ragbed.documents.errors import IndexFolderError
from ragbed.retrieval.embedders import EmbedderSettings
from ragbed.retrieval.filters.metadata import FieldType
from ragbed.retrieval.settings import IndexSettings, ResolvedVectors
from ragbed.retrieval.storage.files import body_of, changed, hashes_of, seal, unsealed
from ragbed.retrieval.types import Embedder

MANIFEST = "manifest.json"
VECTORS = "vectors."  # beginning of the names of the files that the kind of vectors writes
CHUNKS = "chunks.parquet"
DOCUMENTS = "documents.parquet"
VERSION: Literal[2] = 2


class ManifestModel(BaseModel):
    """Frozen, and refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class EmbedderEntry(ManifestModel):
    """The embedder that made the vectors."""

    name: str
    identity: str
    dimension: int
    window: int  # in tokens
    choice: EmbedderSettings | None = None  # the settings that open it, prefixes said outright; None if not ragbed's


class SourceEntry(ManifestModel):
    """A source that is in the index, with the SHA-256 of its bytes, and its parser where that is another than the
    manifest's: the source was kept while others were added."""

    document: str
    sha256: str
    parser: str | None = None


class Skipped(ManifestModel):
    """A source that is not in the index, and why."""

    source: str
    reason: str


class ShardEntry(ManifestModel):
    """Which part of an index this is, as in 3/16, and a hash of the names of all sources that were divided."""

    part: str
    sources: str


class Manifest(ManifestModel):
    """The manifest of an index folder. It has no times: equal input gives an equal manifest."""

    version: Literal[2] = VERSION
    settings: IndexSettings
    parser: str  # hash of the code and libraries that parsed the sources
    embedder: EmbedderEntry
    kind: ResolvedVectors  # how the vectors are searched, with everything filled in
    how: str  # one sentence on how the vectors are searched
    content: str  # hash of the chunks in order, of what they are searched by, and of the metadata
    documents: int
    chunks: int
    windows: int  # number of vectors; a chunk longer than the embedder's window has several
    sources: dict[str, SourceEntry]  # by path relative to what was indexed
    skipped: tuple[Skipped, ...]
    shard: ShardEntry | None = None  # None where it is a whole index
    fields: dict[str, FieldType] = {}  # the names of the documents' metadata, each with what its values are
    files: dict[str, str] = {}  # SHA-256 of every other file of the folder, by name

    @model_validator(mode="before")
    @classmethod
    def _read_store(cls, fields: Any) -> Any:
        """Accept `store`, as manifests have it from before `milvus` was a kind."""
        if not isinstance(fields, dict) or "store" not in fields:
            return fields
        kept = {name: value for name, value in fields.items() if name != "store"}
        store = fields["store"]
        return {**kept, "kind": {"kind": "milvus", "search": fields.get("kind"), **store}} if store else kept


def write_manifest(manifest: BaseModel, folder: Path) -> None:
    """Hash every file of the folder into the field `files`, and write the manifest with its own hash beside them."""
    whole = manifest.model_copy(update={"files": hashes_of(folder)})
    seal(whole.model_dump(mode="json"), folder / MANIFEST)


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of an index folder, after its own hash was checked; `check_files` checks the others. Raises
    OSError where it cannot be read, and IndexFolderError where there is none, it is damaged, or another version of
    ragbed wrote it."""
    path = folder / MANIFEST
    if not path.is_file():
        if folder.exists() and not folder.is_dir():
            raise IndexFolderError(f"{folder} is a file: name the folder that `ragbed index SOURCES --out DIR` made")
        what = "is no index" if folder.is_dir() else "does not exist"
        raise IndexFolderError(f"{folder} {what}: make one with `ragbed index SOURCES --out {folder}`")
    body = body_of(path)
    if body is None or "sha256" not in body:
        raise _damaged(path)
    if body.get("version") != VERSION:
        raise IndexFolderError(f"{folder} was made by another version of ragbed; build it again")
    said = unsealed(body)
    if said is None:
        raise _damaged(path)
    try:
        return Manifest.model_validate(said)
    except ValidationError as error:
        raise IndexFolderError(f"{folder} was made by another version of ragbed; build it again") from error


def check_embedder(manifest: Manifest, embedder: Embedder, folder: Path) -> None:
    """Raise IndexFolderError where the index was made with another embedder."""
    made = manifest.embedder
    if made.identity != embedder.identity:
        raise IndexFolderError(f"{folder} was made with embedder {made.name} ({made.identity}), not with "
                               f"{embedder.name} ({embedder.identity}): name that one, or build the index anew")


def is_manifest(path: Path) -> bool:
    """Tell whether the file has the fields of an index's manifest, of whatever version, whole or damaged."""
    return path.is_file() and {"sha256", "version", "embedder", "files"} <= (body_of(path) or {}).keys()


def check_files(manifest: Manifest, folder: Path, verify: bool = False) -> None:
    """Compare every file of the folder with its hash; with `verify` every byte also of large files that did not change
    since they were last read (`unchanged_sha256`). Raises OSError where a file cannot be read, and IndexFolderError,
    which names it, where one is missing or damaged."""
    path = changed(manifest.files, folder, verify)
    if path is not None:
        raise _damaged(path) if path.is_file() else IndexFolderError(f"{path} is missing: build the index anew")


def _damaged(path: Path) -> IndexFolderError:
    return IndexFolderError(f"{path} is damaged: build the index anew")
