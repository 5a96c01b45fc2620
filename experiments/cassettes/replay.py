"""A cassette as a run is made from it again: what it says of its run, and whether that fits."""
from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from agents.cassette import Cassette
from documents.errors import BenchmarkError, RunError
from experiments.evidence.recording import chunks_pin, embedder_pin, how_pin, index_pin
from experiments.settings import RunSettings
from experiments.settings.difference import difference
from experiments.settings.file import check_settings
from experiments.settings.finders import finders_of
from experiments.settings.retrievers import RetrieverFactor

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
