"""Beginning a run: its folder, and a manifest that says what it was made of."""
from __future__ import annotations

import json
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import yaml

from agents.models import resolve
from documents.errors import RunError
from documents.types import digest
from experiments.judges.model import prompt as judge_prompt
from experiments.question import Benchmark
from experiments.settings import RunSettings
from experiments.store import RunFolder, question_json
from strategies.prompting import prompts_hash

_PACKAGES = ("ragbed", "langgraph", "langchain-openai", "faiss-cpu", "sentence-transformers", "torch",
             "beautifulsoup4", "pymupdf", "pydantic", "xllamacpp")
_OWN_FILES = ("config.yaml", "manifest.json", "records.sqlite", "records.sqlite-wal", "records.sqlite-shm",
              "summary.json", "report.html")


def begin_run(settings: RunSettings, benchmark: Benchmark) -> RunFolder:
    """The folder of a new run, or of one with equal settings and questions that can be continued.

    Raises:
        RunError: the folder holds another run.
    """
    folder = RunFolder(settings.folder)
    config, manifest = settings.resolved(), _manifest(settings, benchmark)
    known = folder.config()
    try:
        if known is not None and known != config:
            raise RunError(_other_run(settings.folder, f"other settings: {_difference(known, config)}"))
        if known is not None and _questions_hash_of(settings.folder) != manifest["benchmark"]["hash"]:
            raise RunError(_other_run(settings.folder, "other questions: the benchmark's files have changed"))
        folder.begin(config, manifest, benchmark.questions)
    except RunError:
        folder.close()
        raise
    return folder


def remove_run(path: Path) -> None:
    """Remove the files of a run; its index and anything else stays."""
    for name in _OWN_FILES:
        (path / name).unlink(missing_ok=True)


def _manifest(settings: RunSettings, benchmark: Benchmark) -> dict[str, Any]:
    questions = digest(*map(question_json, benchmark.questions))
    return {"settings": digest(settings.resolved()),
            "benchmark": {"name": benchmark.name, "questions": len(benchmark.questions), "hash": questions},
            "prompts": prompts_hash(), "judge_prompt": digest(judge_prompt()),
            "models": {name: resolve(name, calls=False).identity for name in settings.models},
            "python": platform.python_version(), "packages": {name: _version(name) for name in _PACKAGES}}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _questions_hash_of(path: Path) -> str:
    try:
        content = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
        return str(content["benchmark"]["hash"])
    except (OSError, ValueError, KeyError) as error:
        raise RunError(f"{path}: manifest.json is missing or damaged; use --fresh to begin anew") from error


def _other_run(path: Path, why: str) -> str:
    return f"{path} holds a run with {why}; give this one another name, or use --fresh to begin anew"


def _difference(known: str, now: str) -> str:
    """The first setting that differs, with both values."""
    old, new = yaml.safe_load(known), yaml.safe_load(now)
    for key in dict.fromkeys([*old, *new]):
        if old.get(key) != new.get(key):
            return f"{key} was {_short(old.get(key))}, is {_short(new.get(key))}"
    return "the file was edited"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
