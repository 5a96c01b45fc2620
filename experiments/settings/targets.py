"""Resolve the target of a command: a settings file, or a benchmark with its paper's settings.
"""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragbed.documents.errors import SettingsError, did_you_mean
from ragbed.documents.paths import expand_path, open_file
from ragbed.documents.types import digest
from ragbed.experiments.benchmarks import BENCHMARKS
from ragbed.experiments.benchmarks.base import QUESTION_FILES
from ragbed.experiments.settings.file import check_settings, read_runs
from ragbed.experiments.settings.matrix import COLUMNS
from ragbed.experiments.settings.run_settings import RunSettings
from ragbed.experiments.settings.texts import parse_spec, parse_yaml
from ragbed.strategies.catalogue import CRESTS
from ragbed.strategies.types import FAMILIES

_COLUMNS = {key: column for column, key in COLUMNS.items()}
_MAX_NAME = 80  # longest name of a run, in characters
_MAX_HEAD = 100_000  # bytes
_COUNTS = ("limit", "sample", "seed")
_TARGETS = ("give a YAML settings file, a file of questions, or a benchmark's name and its files, e.g. `ragbed run "
            "mrceval PATH`; `ragbed list benchmarks` has the names")


@dataclass(frozen=True, slots=True)
class Part:
    """A selection of a benchmark's questions. Fields that are None or empty leave the settings unchanged.

    Attributes:
        filter: conditions such as `tag=value`.
        race: whether early stopping chooses each cell's questions during the run.
    """

    limit: int | None = None
    sample: int | None = None
    seed: int | None = None
    filter: tuple[str, ...] = ()
    race: bool = False

    @property
    def name(self) -> str:
        """Return the suffix that the selection adds to the run's name."""
        words = [*self.filter, *["race"] * self.race, *(f"{word} {number}" for word, number in (
            ("sample", self.sample), ("seed", self.seed), ("limit", self.limit)) if number is not None)]
        return "".join("-" + re.sub(r"[^A-Za-z0-9._]+", "-", text) for text in words)


def resolve_target(target: str, path: str | None, options: Mapping[str, Any], part: Part) -> list[RunSettings]:
    """Return the runs of a settings file, or the run of a benchmark. If both exist, the file takes precedence.

    Args:
        target: path of a file, or name of a benchmark.
        path: where the benchmark's files are.
        options: settings of a benchmark's run by key. If they include `name`, no suffix is added.
        part: selection of the questions.

    Raises:
        SettingsError: there is no such file or benchmark, or an option does not fit it.
    """
    if not target.strip():
        raise SettingsError(f"TARGET is empty; {_TARGETS}")
    file = expand_path(target)
    if not file.is_file() and target in BENCHMARKS:
        runs = [_benchmark_run(target, path, options, part)]
    elif holds_questions(target):
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", file.stem.removeprefix("hub:")).strip("-._") or "questions"
        content = {"path": target} if path is None else {"path": target, "corpus": path}
        runs = [_benchmark_run("questions", None, {"name": name, **options}, part, content)]
    else:
        if file.is_dir():
            raise SettingsError(f"{file} is a folder; {_TARGETS}")
        if not file.exists():
            raise SettingsError(f"{file}: neither a file nor a benchmark; {did_you_mean(target, BENCHMARKS)}the "
                                f"benchmarks are {', '.join(BENCHMARKS)}")
        if given := ["PATH"] * (path is not None) + list(map(option_name, options)):
            raise SettingsError(f"{given[0]} works only with the name of a benchmark, and {file} is a settings file; "
                                "change it there")
        runs = read_runs(file)
    return [narrow(settings, part, rename="name" not in options) for settings in runs]


def holds_questions(target: str) -> bool:
    """Return whether a target holds questions instead of settings: `hub:OWNER/NAME`, or a file without `benchmark`."""
    file = expand_path(target)
    if target.startswith("hub:") or not file.is_file():
        return target.startswith("hub:")
    suffix = file.suffix.lower()
    if suffix not in (".yaml", ".yml", ".json"):
        return suffix in QUESTION_FILES
    with open_file(file) as opened:
        head = opened.read(_MAX_HEAD).decode("utf-8", "replace")
    return not re.search(r"""(?:^|["'{,\s])benchmark["']?\s*:""", head) and (
        suffix == ".json" or re.search(r"^(?:-\s.*:|tests:)", head, re.MULTILINE) is not None)


def _benchmark_run(kind: str, path: str | None, options: Mapping[str, Any], part: Part,
                   given: Mapping[str, Any] | None = None) -> RunSettings:
    fields = BENCHMARKS[kind].model_fields
    given = given or ({} if path is None else {"path": path})
    if "path" not in given and "path" in fields and fields["path"].is_required():
        raise SettingsError(f"{kind}: PATH is missing, as in `ragbed run {kind} PATH`; it is "
                            f"{BENCHMARKS[kind].about.get}")
    if path is not None and "path" not in fields:
        raise SettingsError(f"{kind} takes no PATH: `ragbed run {kind}`")
    content: dict[str, Any] = {"benchmark": dict(given), **options} if given else dict(options)
    for family in FAMILIES:
        if family in content:
            content[family] = [parse_spec(text, f"--{family}") for text in content[family]]
    if "all" in content.get("reasoning", ()):
        content["reasoning"] = list(CRESTS)
    for text in content.pop("set", ()):
        add_setting(content, text)
    benchmark = content.get("benchmark", {})
    if not isinstance(benchmark, dict) or benchmark.get("kind", kind) != kind:
        raise SettingsError(f"--set names a different benchmark from {kind}; name the benchmark as TARGET")
    twice = next((name for name in _COUNTS if name in benchmark and getattr(part, name) is not None), None)
    if twice is not None:
        raise SettingsError(f"--{twice} and --set benchmark.{twice} are the same setting; give one of the two")
    return check_settings({"name": kind, **content, "benchmark": {"kind": kind, **benchmark}}, kind)


def add_setting(settings: dict[str, Any], text: str, replace: bool = False) -> None:
    """Add a setting written as `key.key=value`, with the value in YAML. Raises SettingsError if it is malformed, or if
    the setting exists and `replace` is False."""
    place, equals, value = text.partition("=")
    *keys, last = place.split(".")
    if not equals or not all((*keys, last)):
        raise SettingsError(f"--set {text!r}: expected KEY=VALUE, e.g. limits.max_tokens=256")
    for key in keys:
        settings = settings.setdefault(key, {})
        if not isinstance(settings, dict):
            raise SettingsError(f"--set {text!r}: {key} already has a value, so its parts cannot be set; give "
                                "only one of the two")
    if last in settings and not replace:
        raise SettingsError(f"--set {text!r}: {place} is given twice; give it once")
    settings[last] = parse_yaml(value, f"--set {text!r}")


def option_name(setting: str) -> str:
    """Return the command-line option that gives a setting, such as `--model` for `models`."""
    return f"--{_COLUMNS.get(setting, setting)}"


def narrow(settings: RunSettings, part: Part, rename: bool) -> RunSettings:
    """Return the settings for a selection of the questions. With `rename`, the run's name gets its suffix."""
    changes: dict[str, Any] = {name: value for name in _COUNTS if (value := getattr(part, name)) is not None}
    if part.filter:
        changes["filter"] = {**settings.benchmark.filter, **_parse_tags(part.filter)}
    name = settings.name + part.name if rename else settings.name
    if rename and len(name) > _MAX_NAME:
        name = f"{name[:_MAX_NAME - 9]}-{digest(name)[:8]}"
    return settings.model_copy(update={"benchmark": settings.benchmark.model_copy(update=changes), "name": name,
                                       "race": settings.race or part.race})


def _parse_tags(texts: Sequence[str]) -> dict[str, str | list[str]]:
    tags: dict[str, list[str]] = {}
    for text in texts:
        tag, equals, value = text.partition("=")
        if not (tag and equals and value):
            raise SettingsError(f"--only {text!r}: expected TAG=VALUE or id=ID, e.g. language=en")
        tags.setdefault(tag, []).append(value)
    return {tag: values[0] if len(values) == 1 else values for tag, values in tags.items()}
