"""The manifest of an index folder: its sources, its settings, and the hashes of its files."""
from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from ragbed.documents.errors import IndexFolderError
from ragbed.retrieval.embedders import EmbedderSettings
from ragbed.retrieval.filters.metadata import FieldType
from ragbed.retrieval.index_settings import IndexSettings, ResolvedVectors
from ragbed.retrieval.storage.files import check_seal, find_changed, hash_files, read_object, write_sealed
from ragbed.retrieval.types import Embedder

MANIFEST = "manifest.json"
VECTORS = "vectors."  # prefix of the names of vector files
CHUNKS = "chunks.parquet"
DOCUMENTS = "documents.parquet"
VERSION: Literal[2] = 2


class ManifestModel(BaseModel):
    """A frozen model that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class EmbedderEntry(ManifestModel):
    """The embedder that made the vectors."""

    name: str
    identity: str
    dimension: int
    window: int  # in tokens
    choice: EmbedderSettings | None = None  # settings to open it with, including prefixes; None for a custom embedder


class SourceEntry(ManifestModel):
    """A source that is in the index."""

    document: str  # id of the source's document
    sha256: str  # of its bytes
    parser: str | None = None  # version of the parser that read it, if it differs from the manifest's


class Skipped(ManifestModel):
    """A source that could not be read, and why."""

    source: str
    reason: str


class ShardEntry(ManifestModel):
    """Number of a shard, as in 3/16, and a hash of the names of all sources of the whole index."""

    part: str
    sources: str


class Manifest(ManifestModel):
    """The manifest of an index folder. It contains no times, so that equal input gives an equal manifest."""

    version: Literal[2] = VERSION
    settings: IndexSettings
    parser: str  # hash of the code and libraries that parsed the sources
    embedder: EmbedderEntry
    kind: ResolvedVectors  # how the vectors are searched, with all settings resolved
    how: str  # sentence that says how the vectors are searched
    content: str  # hash of the chunks in order, their searched texts, and the metadata
    documents: int
    chunks: int
    windows: int  # number of vectors; a chunk longer than the embedder's window has several
    sources: dict[str, SourceEntry]  # sources by path, relative to the indexed folder
    skipped: tuple[Skipped, ...]
    shard: ShardEntry | None = None  # shard of the index; None for a whole index
    fields: dict[str, FieldType] = {}  # type of each field that the user gave, by name
    files: dict[str, str] = {}  # SHA-256 of every other file of the folder, by name

    @model_validator(mode="before")
    @classmethod
    def _read_store(cls, fields: Any) -> Any:
        """Read `store`, which older manifests have in addition to `kind`."""
        if not isinstance(fields, dict) or "store" not in fields:
            return fields
        kept = {name: value for name, value in fields.items() if name != "store"}
        store = fields["store"]
        return {**kept, "kind": {"kind": "milvus", "search": fields.get("kind"), **store}} if store else kept


def write_manifest(manifest: BaseModel, folder: Path) -> None:
    """Write the manifest with the hash of every file of the folder in `files`, and a hash of itself."""
    whole = manifest.model_copy(update={"files": hash_files(folder)})
    write_sealed(whole.model_dump(mode="json"), folder / MANIFEST)


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of an index folder and check its own hash; `check_files` checks the other files. Raises OSError
    if it cannot be read. Raises IndexFolderError if it is missing, damaged, or from another version of ragbed."""
    path = folder / MANIFEST
    if not path.is_file():
        if folder.exists() and not folder.is_dir():
            raise IndexFolderError(f"{folder} is a file; name a folder made by `ragbed index SOURCES --out DIR`")
        what = "is not an index" if folder.is_dir() else "does not exist"
        raise IndexFolderError(f"{folder} {what}; make one with `ragbed index SOURCES --out {folder}`")
    body = read_object(path)
    if body is None or "sha256" not in body:
        raise _damaged(path)
    if body.get("version") != VERSION:
        raise IndexFolderError(f"{folder} was made by another version of ragbed; rebuild it")
    fields = check_seal(body)
    if fields is None:
        raise _damaged(path)
    try:
        return Manifest.model_validate(fields)
    except ValidationError as error:
        raise IndexFolderError(f"{folder} was made by another version of ragbed; rebuild it") from error


def check_embedder(manifest: Manifest, embedder: Embedder, folder: Path) -> None:
    """Raise IndexFolderError if the index was made with another embedder."""
    made = manifest.embedder
    if made.identity != embedder.identity:
        raise IndexFolderError(f"{folder} was made with embedder {made.name} ({made.identity}), not with "
                               f"{embedder.name} ({embedder.identity}); use that one, or rebuild the index")


def is_manifest(path: Path) -> bool:
    """Tell whether a file has the fields of an index's manifest, of any version, even if damaged."""
    return path.is_file() and {"sha256", "version", "embedder", "files"} <= (read_object(path) or {}).keys()


def check_files(manifest: Manifest, folder: Path, verify: bool = False) -> None:
    """Compare every file of the folder with its hash, as `find_changed` does. Raises OSError if a file cannot be read.
    Raises IndexFolderError, which names the file, if one is missing or damaged."""
    path = find_changed(manifest.files, folder, verify)
    if path is not None:
        raise _damaged(path) if path.is_file() else IndexFolderError(f"{path} is missing; rebuild the index")


def _damaged(path: Path) -> IndexFolderError:
    return IndexFolderError(f"{path} is damaged; rebuild the index")
