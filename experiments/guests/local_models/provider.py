"""Resolve the names of local models: names in the catalogue, `gguf:PATH`, and `hf:OWNER/REPO/FILE.gguf`."""
from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ragbed.agents.model_settings import Endpoint, LocalSettings, ModelConfig
from ragbed.agents.models import FORMS, REMOTE, ModelTarget
from ragbed.documents.errors import ModelError
from ragbed.experiments.guests.local_models import model_catalogue
from ragbed.experiments.guests.local_models.model_catalogue import HUB, check_hash, hub_path, sha256_of


class LocalModels:
    """A `ModelProvider` for models that llama.cpp serves on this machine."""

    def unused(self, spec: str) -> Collection[str]:
        """Return the settings that need a server elsewhere."""
        return {*REMOTE, "api_version"} - {"seconds", "attempts"}

    def resolve(self, config: ModelConfig, *, calls: bool, known: str | None) -> ModelTarget:
        """Find a model's weights. Raises ModelError if they are missing, unreadable, or have a wrong hash."""
        spec = config.model
        if spec.startswith(HUB):
            return _resolve_file(spec, hub_path(spec, absent=bool(known)), known)
        if spec.startswith("gguf:"):
            path = spec.removeprefix("gguf:")
            if not path.strip():
                raise ModelError(f"{spec!r} does not name a file; write it as one of {FORMS}")
            return _resolve_file(spec, Path(path).expanduser(), known)
        entry = model_catalogue.entry_named(spec)
        assert entry is not None
        path_here = model_catalogue.find_model_files(entry)
        if calls:
            if path_here is None:
                raise ModelError(f"{entry.name} is not on this machine; run: ragbed models pull {entry.name}")
            check_hash(path_here, entry.weights.sha256, f"remove it and run: ragbed models pull {entry.name}")
        from ragbed.experiments.guests.local_models.pull import pull  # imports an HTTP client

        target = ModelTarget(entry.name, f"sha256:{entry.weights.sha256}", entry.name)
        return replace(target, weights=path_here, start=partial(_start, path_here)) if path_here else \
            replace(target, fetch=partial(pull, entry.name))

    def models(self) -> list[dict[str, Any]]:
        """Return rows for `ragbed list models`: the catalogue, then well-known models of the hub."""
        bundled = [(entry.name, entry.kind, entry.size, entry.licence,
                    model_catalogue.find_model_files(entry) is not None,
                    entry.note, entry.weights.sha256) for entry in model_catalogue.ENTRIES]
        of_hub = [(one.name, "chat", one.size, one.licence, hub_path(one.name, absent=True).is_file(), "", one.sha256)
                  for one in model_catalogue.hub_models()]
        return [{"name": name, "kind": kind, "size": f"{size / 1e6:,.0f} MB", "licence": licence, "here": here,
                 "note": note, "sha256": sha256} for name, kind, size, licence, here, note, sha256 in
                [*bundled, *of_hub]]


PROVIDER = LocalModels()


def _resolve_file(spec: str, path: Path, known: str | None) -> ModelTarget:
    if known and not path.exists():
        return ModelTarget(spec, known, path.name)
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise ModelError(f"{spec}: cannot be read: {error.strerror}") from None
    if magic != b"GGUF":
        raise ModelError(f"{spec}: is not a GGUF file")
    return ModelTarget(spec, f"sha256:{sha256_of(path)}", path.name, weights=path, start=partial(_start, path))


def _start(weights: Path, settings: LocalSettings) -> Endpoint:
    from ragbed.experiments.guests.local_models.llama_server import LocalServer

    return LocalServer(weights, settings)
