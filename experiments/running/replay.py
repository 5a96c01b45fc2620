"""Replay a run without a model, from a cassette: a file with its calls and searches."""
from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from ragbed.agents.cassette import Cassette
from ragbed.agents.tools import tools_name
from ragbed.documents.errors import BenchmarkError, RunError, SettingsError
from ragbed.experiments.running.cell_matrix import list_finders, list_strategies
from ragbed.experiments.running.fingerprint import content_name
from ragbed.experiments.runs.run_manifest import compare_settings
from ragbed.experiments.runs.store import RunFolder
from ragbed.experiments.settings import RunSettings
from ragbed.experiments.settings.file import check_settings
from ragbed.experiments.settings.matrix import list_retrievers
from ragbed.experiments.settings.targets import Part, add_setting, narrow, option_name

if TYPE_CHECKING:
    from ragbed.experiments.record import Result
    from ragbed.experiments.running.plan import Plan

LEFT_OUT = ("out", "budget")  # settings that a cassette omits: where a run is stored and when it stops
FORMATS = ("html", "plain")
TAKEN = ("name", "out", "set")  # options that are valid with a cassette
_KIND = "replay_miss"


class RecordedBenchmark(BaseModel):
    """The benchmark's name, number of questions, and hash of the questions."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    questions: int
    hash: str


class RecordedRun(BaseModel):
    """The description of a run in its cassette.

    Attributes:
        settings: resolved settings, except those in `LEFT_OUT`.
        models: identities by name.
        pins: hashes of the searched content, by `fingerprint.content_name`.
        cells: labels of the cells.
        results: a hash of all results. A replay with the same settings has the same hash.
        made_with: notes on the model, the machine and the date, given by the person who recorded the run.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    settings: dict[str, Any]
    benchmark: RecordedBenchmark
    prompts: str
    judge_prompt: str
    exemplars: str | None
    models: dict[str, str]
    pins: dict[str, str]
    cells: list[str]
    results: str
    made_with: dict[str, str] = {}


@dataclass(frozen=True)
class Replay:
    """A cassette that is replayed as a run."""

    cassette: Cassette
    about: RecordedRun

    @classmethod
    def open(cls, path: Path) -> Replay:
        """Open a cassette file. Raises RunError if it is damaged or of another version."""
        cassette = Cassette.open(path)
        try:
            return cls(cassette, RecordedRun.model_validate(cassette.about))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise RunError(f"{path}: the description of the run is damaged: {'.'.join(map(str, first['loc']))}: "
                           f"{first['msg']}") from error

    @property
    def path(self) -> Path:
        return self.cassette.path

    @cached_property
    def recorded(self) -> RunSettings:
        """Return the recorded settings. Raises SettingsError if this version of ragbed no longer has them."""
        return check_settings(self.about.settings, str(self.path), checked=True)

    def same_settings(self, settings: RunSettings) -> bool:
        """Return whether these settings equal the recorded ones, apart from file locations."""
        known, now = ({**portable_settings(one.model_dump(mode="json", by_alias=True)), "name": ""}
                      for one in (self.recorded, settings))
        return compare_settings(known, now, same_questions=True) is None

    def check(self, plan: Plan) -> None:
        """Raise RunError if the plan has the recorded settings but different questions."""
        if self.same_settings(plan.settings) and plan.questions_hash != self.about.benchmark.hash:
            path = self._place_of(plan.settings)
            own = f", which is where {self.path} has them," if path == self._place_of(self.recorded) else ""
            where = "" if path is None else f" at {path}{own}"
            raise RunError(f"{self.about.benchmark.name}: the questions{where} differ from the recorded ones of "
                           f"{self.path}; name the files with the recorded questions by --set benchmark.path=PATH")

    def explained(self, error: BenchmarkError, settings: RunSettings) -> BenchmarkError:
        """Return the error for files that cannot be read. If the path is the cassette's, the message suggests another.
        """
        path = self._place_of(settings)
        if path is None or path != self._place_of(self.recorded):
            return error
        return BenchmarkError(f"{error}; that is where {self.path} has them: name another place with --set "
                              "benchmark.path=PATH")

    def _place_of(self, settings: RunSettings) -> str | None:
        return getattr(settings.benchmark, "path", None)

    def pins(self, plan: Plan) -> dict[str, str]:
        """Return the recorded hashes of the content that a plan searches, for retrievers with recorded settings, and of
        its tools."""
        before, now = ({name: one.retriever.model_copy(update={"name": "", "k": 1}) for name, one in finders.items()}
                       for finders in (list_finders(self.recorded, list_retrievers(self.recorded)), plan.finders))
        names = {one for name, searches in now.items() if before.get(name) == searches
                 for one in (content_name("chunks", name), content_name("embedder", name), content_name("how", name),
                             *(content_name("index", name, format) for format in FORMATS))}
        names |= {content_name("tools", tools_name(plan.tasks(cell).tools)) for cell in plan.cells}
        return {name: value for name, value in self.about.pins.items() if name in names}


def portable_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return every resolved setting except those in `LEFT_OUT`."""
    return {name: value for name, value in config.items() if name not in LEFT_OUT}


def count_misses(folder: RunFolder) -> int:
    """Count the calls and searches that a replay did not find, including those of judges and sub-questions."""
    return sum(misses for _, misses in list_misses(folder))


def list_misses(folder: RunFolder) -> Iterator[tuple[Result, int]]:
    """Yield each result for which a replay did not find a call or search, with their number; see `count_misses`."""
    for result in folder.results_with(_KIND):
        steps = [*result.trace, *(step for sub in result.subs for step in sub.trace)]
        found = sum(step.failure is not None and step.failure.kind == _KIND for step in steps)
        found += sum(probe.failure is not None and probe.failure.kind == _KIND for probe in result.probes)
        found += result.verdict is not None and result.verdict.note.endswith(_KIND)
        found += sum(one.note.endswith(_KIND) for one in result.support.labels) if result.support else 0
        if found:
            yield result, found


def settings_of_cassette(replay: Replay, options: Mapping[str, Any], part: Part) -> RunSettings:
    """Return the recorded settings, changed by the options. Raises SettingsError if an option is invalid."""
    other = next((name for name in options if name not in TAKEN), None)
    if other is not None:
        raise SettingsError(f"{option_name(other)} needs a TARGET; {replay.path} has its own settings, and --set "
                            "KEY=VALUE changes one of them")
    content = copy.deepcopy(portable_settings(replay.about.settings))
    content |= {name: str(options[name]) for name in ("name", "out") if name in options}
    for text in options.get("set", ()):
        add_setting(content, text, replace=True)
    check_named(check_settings(content, str(replay.path), checked=True), replay, options.get("set", ()))
    settings = check_settings(content, str(replay.path))
    return narrow(settings, part, rename="name" not in options)


def check_named(settings: RunSettings, replay: Replay, texts: Sequence[str]) -> None:
    """Raise SettingsError if an untrusted cassette would execute code that the user did not name."""
    files = [file for family in list_strategies(settings).values() for one in family.values() for file in one.files]
    own = getattr(settings, "metrics", None)
    for place in [one.metric for one in own.root] if own else ():
        if not any(place in text for text in texts):
            raise SettingsError(f"{replay.path}: its run used the metric {place}, which is code; read it, then name "
                                f"the metrics with --set, as in --set 'metrics=[\"{place}\"]', or leave them out by "
                                "--set metrics=null")
    for place in (file for one in settings.own_judges for file in one.files):
        if not any(place in text for text in texts):
            raise SettingsError(f"{replay.path}: its run used the judge {place}, which is code; read it, then name the "
                                f"judge with --set, as in --set 'judge={{kind: python, factory: \"{place}\"}}'")
    unnamed = next((file for file in files if not any(file in text for text in texts)), None)
    if unnamed is not None:
        raise SettingsError(f"{replay.path}: its run used the strategy {unnamed}, which is code; read the file, then "
                            "name the run's strategies with --set, as in "
                            f"--set 'reasoning=[direct, \"{unnamed}\"]', or give the settings as TARGET")
