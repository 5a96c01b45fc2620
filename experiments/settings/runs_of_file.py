"""The runs that a file of settings describes: one for each benchmark that it names."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from documents.errors import SettingsError
from experiments.settings.file import check_settings, content_of
from experiments.settings.run import RunSettings


def read_runs(path: Path) -> list[RunSettings]:
    """The settings of a YAML file, one run for each benchmark that it names.

    Relative paths in it count from the current folder, as on the command line.

    Raises:
        SettingsError: one line that names the file, the key and what is wrong.
    """
    return runs_of(content_of(path), str(path))


def runs_of(content: dict[str, Any], where: str) -> list[RunSettings]:
    """Typed settings of each run: one, or for a list of benchmarks one each, called `NAME-KIND`, then `NAME-KIND-2`.

    Raises:
        SettingsError: as `check_settings`, or an entry of `exclude` or `include` is for a benchmark that is not there.
    """
    benchmarks = content.get("benchmark")
    if not isinstance(benchmarks, list):
        return [check_settings(content, where)]
    if not benchmarks:
        raise SettingsError(f"{where}: benchmark: an empty list; name at least one")
    kinds = [_kind(one, f"{where}: benchmark.{place}") for place, one in enumerate(benchmarks)]
    runs = []
    for place, (kind, benchmark) in enumerate(zip(kinds, benchmarks, strict=True)):
        count = kinds[:place + 1].count(kind)
        name = f"{content['name']}-{kind}" + (f"-{count}" if count > 1 else "")
        parts = {key: _entries_for(kind, kinds, content[key], f"{where}: {key}")
                 for key in ("exclude", "include") if content.get(key)}
        runs.append(check_settings({**content, **parts, "name": name, "benchmark": benchmark}, f"{where}, run {name}"))
    return runs


def _kind(benchmark: Any, where: str) -> str:
    kind = benchmark.get("kind") if isinstance(benchmark, dict) else None
    if not isinstance(kind, str):
        raise SettingsError(f"{where}: give the settings of a benchmark with its kind, as in {{kind: crest, "
                            "path: FOLDER}")
    return kind


def _entries_for(kind: str, kinds: Sequence[str], entries: Any, where: str) -> Any:
    """The entries that are for a benchmark of this kind, out of those in the file."""
    kept = []
    for place, entry in enumerate(entries if isinstance(entries, list) else [entries]):
        named = entry.get("benchmark", kinds) if isinstance(entry, dict) else kinds
        named = named if isinstance(named, list) else [named]
        foreign = [str(one) for one in named if one not in kinds]
        if foreign:
            raise SettingsError(f"{where}.{place}.benchmark: {', '.join(foreign)} is none of the file's; there are: "
                                f"{', '.join(dict.fromkeys(kinds))}")
        if kind in named:
            kept.append({key: value for key, value in entry.items() if key != "benchmark"}
                        if isinstance(entry, dict) else entry)
    return kept
