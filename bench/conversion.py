"""Base of the converters, which write public data that tests the same capability in a benchmark's published format."""
from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from ragbed.documents import SettingsError, digest
from ragbed.experiments.runs.store import write_text

Item = TypeVar("Item")
Sources = Mapping[str, Sequence[Path]]
CREDITS = "ATTRIBUTION.md"


@dataclass(frozen=True, slots=True)
class Source:
    """Data that can be converted.

    Attributes:
        what: the dataset and where it is had.
        path: what the path names.
        becomes: what is made of it, and what is not as in the benchmark itself.
    """

    what: str
    licence: str
    path: str
    becomes: str


@dataclass(frozen=True, slots=True)
class Draw:
    """Everything that is drawn, by one seed; equal seeds give equal files.

    Attributes:
        limit: the most questions of each source.
        left_out: how many records were left out, by why; counted while the files are made.
    """

    seed: int = 0
    limit: int | None = None
    left_out: Counter[str] = field(default_factory=Counter)

    def told(self) -> list[str]:
        """What was left out, and how many of it, in words."""
        return [f"{count} left out: {why}" for why, count in self.left_out.items() if count]

    def ranked(self, items: Iterable[Item], key: Callable[[Item], str], *of: str) -> list[Item]:
        """The items in an order that the seed, and what they are drawn for, decide."""
        return sorted(items, key=lambda item: digest(str(self.seed), *of, key(item)))

    def percent(self, *of: str) -> int:
        """A number from 0 to 99 for what is drawn."""
        return int(digest(str(self.seed), *of)[:8], 16) % 100

    def limited(self, items: Sequence[Item], key: Callable[[Item], str]) -> list[Item]:
        """At most `limit` of the items, in their order."""
        if self.limit is None or self.limit >= len(items):
            return list(items)
        places = self.ranked(range(len(items)), lambda place: key(items[place]), "limit")[:self.limit]
        return [items[place] for place in sorted(places)]


@dataclass(frozen=True, slots=True)
class Converter:
    """How records of one benchmark are made.

    Attributes:
        sources: by the name that the command line gives a path to.
        files: the content of each file to write, by its name.
    """

    sources: Mapping[str, Source]
    files: Callable[[Sources, Draw], Mapping[str, str]]


def json_lines(records: Iterable[Mapping[str, Any]]) -> str:
    """Records as JSON Lines."""
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def write_records(target: str, converter: Converter, sources: Sources, draw: Draw, out: Path) -> list[Path]:
    """Write the converted records into a folder that is empty or not there yet, and what they are made of.

    Raises:
        SettingsError: a source is not known or given twice, or there is something in the folder.
        BenchmarkError: a source cannot be read, or does not fit.
    """
    unknown = [name for name in sources if name not in converter.sources]
    if unknown or not sources:
        raise SettingsError(f"{target} is made of NAME=PATH with the names {', '.join(converter.sources)}"
                            + (f"; {unknown[0]!r} is none of them" if unknown else ""))
    _check_distinct(path for paths in sources.values() for path in paths)
    try:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise SettingsError(f"{out}: something is there already; give a new folder")
        files = {**converter.files(sources, draw), CREDITS: _credits(target, converter, sources, draw)}
        for name, content in files.items():
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            write_text(out / name, content)
    except OSError as error:
        raise SettingsError(f"{error.filename}: {error.strerror}") from error
    return [out / name for name in files]


def _check_distinct(paths: Iterable[Path]) -> None:
    seen: set[Path] = set()
    for path in paths:
        if path.resolve() in seen:
            raise SettingsError(f"{path}: given twice; its questions would be counted twice")
        seen.add(path.resolve())


def _credits(target: str, converter: Converter, sources: Sources, draw: Draw) -> str:
    rows = "".join(f"| {source.what} | {source.licence} | {source.becomes} |\n"
                   for name, source in converter.sources.items() if name in sources)
    files = "".join(f"- `{name}`: {path.name}\n" for name, paths in sources.items() for path in paths)
    limit = "" if draw.limit is None else f", at most {draw.limit} questions of each source"
    return (f"# Records in the format of {target}\n\nMade by `bench/convert.py {target}` with seed {draw.seed}{limit}. "
            f"They are not {target}'s own questions, and figures over them are not comparable with its paper's.\n\n"
            f"| made of | licence | how |\n|---|---|---|\n{rows}\nFiles read:\n\n{files}"
            + "".join(f"\n{line}.\n" for line in draw.told()))
