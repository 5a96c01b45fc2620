"""What a command is pointed at: a file of settings, a benchmark by name, run as its paper ran it, or a retriever."""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragbed.documents.errors import SettingsError
from ragbed.documents.paths import expand_path
from ragbed.documents.types import digest
from ragbed.experiments.benchmarks import BENCHMARKS
from ragbed.experiments.settings.file import check_settings, read_runs, read_value, said
from ragbed.experiments.settings.matrix import COLUMNS
from ragbed.experiments.settings.run import RunSettings
from ragbed.strategies.catalogue import CRESTS
from ragbed.strategies.settings.plugins import FAMILIES

_COLUMNS = {key: column for column, key in COLUMNS.items()}
_LONGEST = 80  # characters of a run's name
_COUNTED = ("limit", "sample", "seed")
_TARGETS = ("give a YAML file of settings, or a benchmark's name and its files, as in `ragbed run mrceval PATH`; "
            "`ragbed list benchmarks` names them")


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a benchmark's questions that is asked; None and empty leave what the settings say. `filter` has texts
    of the form `tag=value`. In a race the part is found out while they are asked."""

    limit: int | None = None
    sample: int | None = None
    seed: int | None = None
    filter: tuple[str, ...] = ()
    race: bool = False

    @property
    def name(self) -> str:
        """What a run of this part adds to its name."""
        given = [*self.filter, *["race"] * self.race, *(f"{word} {number}" for word, number in (
            ("sample", self.sample), ("seed", self.seed), ("limit", self.limit)) if number is not None)]
        return "".join("-" + re.sub(r"[^A-Za-z0-9._]+", "-", text) for text in given)


def runs_of_target(target: str, path: str | None, options: Mapping[str, Any], part: Part) -> list[RunSettings]:
    """Return the runs of a file, or that of a benchmark by its kind; a file of that name goes before a kind. A
    benchmark may need a `path`, where its files are, if it knows no place, and takes options, settings of the run by
    name: with `name` the run is called just so. Raises SettingsError for neither a file nor a kind, and for an option
    that does not fit it."""
    if not target.strip():
        raise SettingsError(f"an empty TARGET; {_TARGETS}")
    file = expand_path(target)
    if not file.is_file() and target in BENCHMARKS:
        runs = [_of_kind(target, path, options, part)]
    else:
        if file.is_dir():
            raise SettingsError(f"{file} is a folder; {_TARGETS}")
        if not file.exists():
            raise SettingsError(f"{file}: No such file, and no benchmark is called so; there are: "
                                f"{', '.join(BENCHMARKS)}")
        if given := ["FOLDER"] * (path is not None) + list(map(option, options)):
            raise SettingsError(f"{given[0]} goes with a benchmark's name; {file} says itself what is run")
        runs = read_runs(file)
    return [narrowed(settings, part, rename="name" not in options) for settings in runs]


def _of_kind(kind: str, path: str | None, options: Mapping[str, Any], part: Part) -> RunSettings:
    fields = BENCHMARKS[kind].model_fields
    if path is None and "path" in fields and fields["path"].is_required():
        raise SettingsError(f"{kind}: say where its files are, as in `ragbed run {kind} PATH`; "
                            f"PATH is {BENCHMARKS[kind].about.get}")
    if path is not None and "path" not in fields:
        raise SettingsError(f"{kind} needs no PATH: `ragbed run {kind}`")
    chosen: dict[str, Any] = dict(options) if path is None else {"benchmark": {"path": path}, **options}
    for family in FAMILIES:
        if family in chosen:
            chosen[family] = [said(text, f"--{family}") for text in chosen[family]]
    if "all" in chosen.get("reasoning", ()):
        chosen["reasoning"] = list(CRESTS)
    for text in chosen.pop("set", ()):
        put(chosen, text)
    named = chosen.get("benchmark", {})
    if not isinstance(named, dict) or named.get("kind", kind) != kind:
        raise SettingsError(f"--set says another benchmark than {kind}; give its name in the place of {kind}")
    twice = next((name for name in _COUNTED if name in named and getattr(part, name) is not None), None)
    if twice is not None:
        raise SettingsError(f"--{twice} and --set benchmark.{twice} are one setting; give one of the two")
    return check_settings({"name": kind, **chosen, "benchmark": {"kind": kind, **named}}, kind)


def put(settings: dict[str, Any], text: str, replacing: bool = False) -> None:
    """Add a setting given as `key.key=value`, the value in YAML; or put it in the place of one that is there."""
    place, equals, value = text.partition("=")
    *keys, last = place.split(".")
    if not equals or not all((*keys, last)):
        raise SettingsError(f"--set {text!r}: expected KEY=VALUE, as in --set limits.max_tokens=256")
    for key in keys:
        settings = settings.setdefault(key, {})
        if not isinstance(settings, dict):
            raise SettingsError(f"--set {text!r}: {key} is set already, and holds no settings of its own")
    if last in settings and not replacing:
        raise SettingsError(f"--set {text!r}: {place} is given twice; give it once")
    settings[last] = read_value(value, f"--set {text!r}")


def option(name: str) -> str:
    """Return the option of the command line that gives a setting."""
    return f"--{_COLUMNS.get(name, name)}"


def narrowed(settings: RunSettings, part: Part, rename: bool) -> RunSettings:
    """Return the settings for a part of the questions; with `rename` the run is called after the part too."""
    chosen: dict[str, Any] = {name: value for name in _COUNTED if (value := getattr(part, name)) is not None}
    if part.filter:
        chosen["filter"] = {**settings.benchmark.filter, **_tags(part.filter)}
    benchmark = settings.benchmark.model_copy(update=chosen)
    name = settings.name + part.name if rename else settings.name
    if rename and len(name) > _LONGEST:
        name = f"{name[:_LONGEST - 9]}-{digest(name)[:8]}"
    return settings.model_copy(update={"benchmark": benchmark, "name": name,
                                     "race": settings.race or part.race})


def _tags(texts: Sequence[str]) -> dict[str, str]:
    tags: dict[str, str] = {}
    for text in texts:
        tag, equals, value = text.partition("=")
        if not (tag and equals and value):
            raise SettingsError(f"--filter {text!r}: expected TAG=VALUE, as in --filter language=en")
        if tag in tags:
            raise SettingsError(f"--filter names the tag {tag!r} twice; a question must have both values of none")
        tags[tag] = value
    return tags
