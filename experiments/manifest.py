"""Beginning a run: its folder, and a manifest that says what it was made of."""
from __future__ import annotations

import contextlib
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from pydantic import BaseModel, ValidationError

from agents.models import resolve
from documents.errors import BenchmarkError, RunError, SettingsError
from documents.types import digest
from experiments.cassettes.replay import Replay
from experiments.difference import difference
from experiments.exemplars import exemplars_hash
from experiments.judges import ModelJudge
from experiments.judges.brief import prompts_hash as judge_prompts_hash
from experiments.lock import hold
from experiments.matrix import models_of
from experiments.question import Benchmark, Question
from experiments.settings import RunSettings
from experiments.settings_file import completed
from experiments.store import RunFolder, question_json, remove
from strategies.prompting import prompts_hash
from strategies.types import Exemplar

_PACKAGES = ("ragbed", "langgraph", "langchain-openai", "faiss-cpu", "sentence-transformers", "torch",
             "beautifulsoup4", "pymupdf", "pydantic", "xllamacpp")
# In the order of their removal: a kill in between leaves settings without records, never records without settings.
_OWN_FILES = ("summary.json", "report.html", "records.sqlite-wal", "records.sqlite-shm", "records.sqlite",
              "manifest.json", "config.yaml")


class Made(BaseModel):
    """What a run was made of, by its manifest. All but `settings` has to be the same for the run to go on."""

    settings: str
    benchmark: dict[str, str | int]
    prompts: str
    judge_prompt: str
    exemplars: str | None = None
    models: dict[str, str]


@dataclass(slots=True)
class Beginning:
    """A run that can begin. Its folder is held, and what an earlier run left there is untouched until `begin`.

    Attributes:
        folder: None until `begin` where the run is to begin anew: the earlier one may be damaged.
        continues: whether the folder holds calls or records of this run.
        replay: the cassette that its calls are from; None where it makes them.
    """

    settings: RunSettings
    manifest: dict[str, Any]
    questions: tuple[Question, ...]
    lock: Connection
    folder: RunFolder | None = None
    continues: bool = False
    replay: Replay | None = None

    def done(self) -> set[tuple[str, str]]:
        """The (cell, question) pairs whose records stay."""
        return self.folder.done() if self.folder and self.continues else set()

    def kept(self) -> Mapping[str, str] | None:
        """The contents of what was searched, by what it is called, where all that was found is kept; else None."""
        if self.replay is not None:
            return self.replay.pins(self.settings)
        return self.folder.pins() if self.folder and self.folder.marked("searches") else None

    def keeps_searches(self) -> None:
        """Note that whatever was found is kept by now."""
        if self.folder is not None:
            self.folder.mark("searches", "kept")
            self.folder.database.flush()

    def begin(self, searched: Mapping[str, str]) -> RunFolder:
        """Remove what does not belong to the run, and write what it is.

        Args:
            searched: a hash of the content of whatever is searched, by what it is called.

        Raises:
            RunError: what was made came from an index with another content, or the folder cannot be written.
        """
        if self.folder is None:
            remove_run(self.settings.folder)
            self.folder = RunFolder(self.settings.folder, self.lock)
        if self.folder.is_empty():
            self.keeps_searches()
            if self.replay is not None:
                self._take(self.replay, self.folder)
        for name, content in searched.items():
            self.folder.pin(name, content)
        if not self.continues:
            self.folder.clear_records()
        self.folder.begin(self.settings.resolved(), self.manifest, self.questions)
        return self.folder

    def _take(self, replay: Replay, folder: RunFolder) -> None:
        """Take all that a cassette holds into an empty folder, or nothing."""
        with folder.database.at_once():
            replay.cassette.read_into(folder.database)
            folder.mark("cassette", replay.cassette.hash)

    def close(self) -> None:
        """Let go of the folder."""
        (self.folder or self.lock).close()


def prepare_run(settings: RunSettings, benchmark: Benchmark, exemplars: tuple[Exemplar, ...] = (),
                fresh: bool = False, replay: Replay | None = None) -> Beginning:
    """What begins a new run, or one with equal settings and questions that can be continued.

    Args:
        fresh: what an earlier run left is of no interest, and `begin` removes it.
        replay: the cassette that its calls are from.

    Raises:
        RunError: the folder holds another run, or one of another origin, or another process works on it.
        BenchmarkError: two questions have one id, or they are not those that were recorded.
        ModelError: a model is unknown.
        SettingsError: two models are one.
    """
    check_ids(benchmark)
    known = {} if fresh else known_models(settings.folder)
    if replay is not None:
        known |= replay.about.models
    config, manifest = settings.resolved(), _manifest(settings, benchmark, exemplars, known)
    if replay is not None:
        replay.check(settings, manifest["benchmark"]["hash"])
    with contextlib.ExitStack() as opened:
        lock = hold(settings.folder)
        opened.callback(lock.close)
        beginning = Beginning(settings, manifest, benchmark.questions, lock, replay=replay)
        if not fresh:
            beginning.folder = RunFolder(settings.folder, lock)
            opened.callback(beginning.folder.close)
            beginning.continues = _continues(beginning.folder, config, manifest)
            if beginning.continues and replay is not None:
                _check_origin(beginning.folder, replay)
        opened.pop_all()
    return beginning


def remove_run(path: Path) -> None:
    """Remove the files of a run; its index and anything else stays."""
    for name in _OWN_FILES:
        remove(path / name)


def check_ids(benchmark: Benchmark) -> None:
    """Make sure that no two questions have one id; BenchmarkError where two have."""
    seen: set[str] = set()
    for question in benchmark.questions:
        if question.id in seen:
            raise BenchmarkError(f"{benchmark.name}: two questions have the id {question.id!r}; give each its own")
        seen.add(question.id)


def _continues(folder: RunFolder, config: str, manifest: Mapping[str, Any]) -> bool:
    """Refuse to mix two runs. Settings under which nothing was made yet may still be mended."""
    known = folder.config()
    if known is None or folder.is_empty():
        return False
    if apart := what_differs(folder.path, known, config, manifest["benchmark"]["hash"]):
        raise RunError(_other_run(folder.path, apart))
    made = manifest_of(folder.path)
    if (made.prompts, made.judge_prompt) != (manifest["prompts"], manifest["judge_prompt"]):
        raise RunError(_other_run(folder.path, "other prompts: those of ragbed have changed since"))
    if made.exemplars != manifest["exemplars"]:
        raise RunError(_other_run(folder.path, "other worked examples: the file of exemplars has changed"))
    for name, identity in manifest["models"].items():
        if made.models.get(name) != identity:
            raise RunError(_other_run(folder.path, f"another model under the name {name}: its weights have changed"))
    return True


def _check_origin(folder: RunFolder, replay: Replay) -> None:
    """Replies of two origins would stand beside each other."""
    if folder.marked("cassette") != replay.cassette.hash:
        raise RunError(f"{folder.path} holds a run that is not from {replay.path}; give this one another name, as in "
                       "--name replayed, or use --fresh to begin anew")


def what_differs(path: Path, known: str, config: str, questions: str) -> str | None:
    """What a folder's run has other than these settings and questions, in words; None where both are the same.

    Args:
        known, config: the resolved settings of the run there, and of the one to be begun.
        questions: the hash of the latter's.
    """
    same_questions = manifest_of(path).benchmark.get("hash") == questions
    if known != config and (apart := difference(completed(known), config, same_questions)):
        return f"other settings: {apart}"
    return None if same_questions else "other questions: the benchmark's files have changed"


def known_models(path: Path) -> dict[str, str]:
    """The identities of the models that a run's manifest names; empty where there is none."""
    try:
        return Made.model_validate_json((path / "manifest.json").read_bytes()).models
    except (OSError, ValidationError):
        return {}


def _manifest(settings: RunSettings, benchmark: Benchmark, exemplars: tuple[Exemplar, ...],
              known: Mapping[str, str]) -> dict[str, Any]:
    return {"settings": digest(settings.resolved()),
            "benchmark": {"name": benchmark.name, "questions": len(benchmark.questions),
                          "hash": questions_hash(benchmark),
                          "stored": digest(*(question_json(one.without_chunks()) for one in benchmark.questions))},
            "prompts": prompts_hash(), "judge_prompt": judge_prompts_hash(),
            "exemplars": exemplars_hash(exemplars), "models": identities(settings, known),
            "python": platform.python_version(), "packages": {name: _version(name) for name in _PACKAGES}}


def questions_hash(benchmark: Benchmark) -> str:
    """One hash over the questions and all that they bring."""
    return digest(*map(_content, benchmark.questions))


def _content(question: Question) -> str:
    """The question with the ids of its chunks, which are hashes of their content."""
    return digest(question_json(question.without_chunks()), *(chunk.id for chunk in question.chunks))


def identities(settings: RunSettings, known: Mapping[str, str]) -> dict[str, str]:
    """The identity of every model by name, the judge's too. Of two with one identity, one would get no call.

    Args:
        known: of an earlier beginning of the run.

    Raises:
        ModelError: a model is unknown.
        SettingsError: two models are one.
    """
    names: dict[str, str] = {}
    for name in models_of(settings):
        identity = resolve(name, calls=False, known=known.get(name)).identity
        if identity in names:
            raise SettingsError(f"models: {names[identity]} and {name} are one model, {identity}, to the journal, "
                                "which knows neither host nor path; name one of them, or serve them under two names")
        names[identity] = name
    models = {name: identity for identity, name in names.items()}
    if isinstance(settings.judge, ModelJudge):
        name = settings.judge.model
        models[name] = resolve(name, calls=False, known=known.get(name)).identity
    return models


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def manifest_of(path: Path) -> Made:
    """What the manifest of a run's folder says; RunError where it is missing or damaged."""
    try:
        return Made.model_validate_json((path / "manifest.json").read_bytes())
    except (OSError, ValidationError) as error:
        raise RunError(f"{path}: manifest.json is missing or damaged; use --fresh to begin anew") from error


def _other_run(path: Path, why: str) -> str:
    return f"{path} holds a run with {why}; give this one another name, or use --fresh to begin anew"
