"""A cassette as a run is made from it again: what it says of its run, and whether that fits.

What a replay found nothing for.

The settings of a run that is made again from its cassette alone.
"""
from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from agents.cassette import Cassette
from documents.errors import BenchmarkError, RunError, SettingsError
from experiments.record import Result, StoredStep
from experiments.running.recording import chunks_pin, embedder_pin, how_pin, index_pin
from experiments.runs.store import RunFolder
from experiments.settings import RunSettings
from experiments.settings.file import check_settings, read_value
from experiments.settings.finders import finders_of
from experiments.settings.retrievers import RetrieverFactor
from experiments.settings.strategies import strategies_of
from experiments.settings.targets import Part, difference, narrowed, option
from strategies.settings.plugins import FAMILIES

LEFT_OUT = ("out", "budget")  # settings: where a run stands and when it stops is no part of what it recorded
FORMATS = ("html", "plain")


class Asked(BaseModel):
    """The benchmark's name, the number of its questions, and their hash."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    questions: int
    hash: str


class About(BaseModel):
    """What a cassette says of its run.

    Attributes:
        settings: resolved; without those of `LEFT_OUT`.
        models: identities by name.
        pins: hashes of what was searched, by what it is called.
        cells: what each is called.
        results: the hash over all results, which a replay under the same settings has too.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    settings: dict[str, Any]
    benchmark: Asked
    prompts: str
    judge_prompt: str
    exemplars: str | None
    models: dict[str, str]
    pins: dict[str, str]
    cells: list[str]
    results: str


@dataclass(frozen=True)
class Replay:
    """A cassette that a run is made from."""

    cassette: Cassette
    about: About

    @classmethod
    def open(cls, path: Path) -> Replay:
        """The cassette in a file; RunError where there is none that is whole and that this ragbed can read."""
        cassette = Cassette.open(path)
        try:
            return cls(cassette, About.model_validate(cassette.about))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise RunError(f"{path}: does not say what its run was: {'.'.join(map(str, first['loc']))}: "
                           f"{first['msg']}") from error

    @property
    def path(self) -> Path:
        return self.cassette.path

    @cached_property
    def recorded(self) -> RunSettings:
        """The settings that were recorded; SettingsError where this ragbed has them no longer."""
        return check_settings(self.about.settings, str(self.path), checked=True)

    def same_settings(self, settings: RunSettings) -> bool:
        """Whether a run with these settings is the recorded one, wherever its files are."""
        known, now = (yaml.safe_dump({**portable(one), "name": ""}) for one in (self.recorded, settings))
        return difference(known, now, same_questions=True) is None

    def check(self, settings: RunSettings, questions: str) -> None:
        """Make sure that the recorded run is made again from the recorded questions; other settings may ask others.

        Args:
            questions: the hash of those that were loaded.

        Raises:
            RunError: they are others.
        """
        if self.same_settings(settings) and questions != self.about.benchmark.hash:
            raise RunError(f"{self.about.benchmark.name}: the questions{self.place(settings)} are not "
                           f"those that {self.path} was recorded with; name the files of those with --set "
                           "benchmark.path=PATH")

    def place(self, settings: RunSettings) -> str:
        """Where the settings have the benchmark's files, and who says so."""
        path, said = (getattr(one.benchmark, "path", None) for one in (settings, self.recorded))
        return "" if path is None else f" at {path}, which is where {self.path} has them," if path == said else \
            f" at {path}"

    def explained(self, error: BenchmarkError, settings: RunSettings) -> BenchmarkError:
        """The error of files that cannot be read, with who says that they are there."""
        paths = [getattr(one.benchmark, "path", None) for one in (settings, self.recorded)]
        if paths[0] is None or paths[0] != paths[1]:
            return error
        return BenchmarkError(f"{error}; that is where {self.path} has them: name another place with --set "
                              "benchmark.path=PATH")

    def pins(self, settings: RunSettings) -> dict[str, str]:
        """The recorded contents of what these settings search: retrievers of one name have to search one thing."""
        before = {name: _searches(one.retriever) for name, one in finders_of(self.recorded).items()}
        now = {name: _searches(one.retriever) for name, one in finders_of(settings).items()}
        names = {pin for name, searches in now.items() if before.get(name) == searches
                 for pin in (chunks_pin(name), embedder_pin(name), how_pin(name),
                             *(index_pin((name, format)) for format in FORMATS))}
        return {name: value for name, value in self.about.pins.items() if name in names}


def portable(settings: RunSettings) -> dict[str, Any]:
    """Every setting but those of `LEFT_OUT`, as plain values."""
    every: dict[str, Any] = yaml.safe_load(settings.resolved())
    return {name: value for name, value in every.items() if name not in LEFT_OUT}


def _searches(retriever: RetrieverFactor) -> tuple[object, ...]:
    return retriever.model_copy(update={"name": "", "k": 1}),


_KIND = "replay_miss"


def misses(folder: RunFolder) -> int:
    """How many calls and searches of a run's records were missed, the judge's and those of sub-questions too."""
    return sum(_missed(result) for result in folder.results_with(_KIND))


def _missed(result: Result) -> int:
    steps = sum(step.failure is not None and step.failure.kind == _KIND for step in _steps(result))
    return steps + (result.verdict is not None and result.verdict.note.endswith(_KIND))


def _steps(result: Result) -> Iterator[StoredStep]:
    yield from result.trace
    for sub in result.subs:
        yield from sub.trace


TAKEN = ("name", "out", "set")


def settings_of_cassette(replay: Replay, options: Mapping[str, Any], part: Part) -> RunSettings:
    """The settings that were recorded, some of them changed.

    Args:
        options: of the command line; those of `TAKEN`, for anything else a TARGET says what is run.

    Raises:
        SettingsError: another option is given, or one that does not fit.
    """
    other = next((name for name in options if name not in TAKEN), None)
    if other is not None:
        raise SettingsError(f"{option(other)} goes with a TARGET; {replay.path} says itself what was run, and --set "
                            "KEY=VALUE changes a part of it")
    content = copy.deepcopy(replay.about.settings)
    content |= {name: str(options[name]) for name in ("name", "out") if name in options}
    _set(content, options.get("set", ()))
    check_named(check_settings(content, str(replay.path), checked=True), replay, options.get("set", ()))
    settings = check_settings(content, str(replay.path))
    return narrowed(settings, part, rename="name" not in options)


def check_named(settings: RunSettings, replay: Replay, said: Sequence[str]) -> None:
    """Make sure that the user names each file that is executed: a cassette may be a stranger's."""
    files = [file for family in FAMILIES for one in strategies_of(settings, family).values() for file in one.files]
    unnamed = next((file for file in files if not any(file in text for text in said)), None)
    if unnamed is not None:
        raise SettingsError(f"{replay.path}: its run used the strategy {unnamed}, which is code; read the file, then "
                            "name the run's strategies with --set, as in "
                            f"--set 'reasoning=[direct, \"{unnamed}\"]', or give the settings as TARGET")


def _set(content: dict[str, Any], texts: Sequence[str]) -> None:
    """Put values in the place of those that were recorded, each given as `key.key=value`."""
    for text in texts:
        place, equals, value = text.partition("=")
        *keys, last = place.split(".")
        inner: Any = content
        for key in keys:
            inner = inner.get(key) if isinstance(inner, dict) else None
        if not equals or not last or not isinstance(inner, dict):
            raise SettingsError(f"--set {text!r}: expected KEY=VALUE with the key of a setting, as in --set "
                                "benchmark.path=FOLDER")
        inner[last] = read_value(value, f"--set {text!r}")
