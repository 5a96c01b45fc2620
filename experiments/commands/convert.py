"""`ragbed convert`."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.commands.options import AsJson

if TYPE_CHECKING:
    from experiments.converters import Sources


def convert(target: Annotated[str, typer.Argument(metavar="TARGET", help="The benchmark in whose format records are "
                                                                         "written; see `ragbed list converters`.")],
            source: Annotated[list[str], typer.Argument(metavar="NAME=PATH", help="What they are made of.")],
            out: Annotated[Path, typer.Option("--out", help="A new folder.")],
            seed: Annotated[int, typer.Option(help="Of everything that is drawn.")] = 0,
            limit: Annotated[int | None, typer.Option(min=1, help="The most questions of each source.")] = None,
            json: AsJson = False) -> None:
    """Write public data of the same capability in the published record format of a benchmark."""
    from documents.errors import SettingsError
    from experiments.benchmarks import BENCHMARKS
    from experiments.converters import CONVERTERS, Draw
    from experiments.converters import convert as write
    from experiments.display import print_json, say

    if target not in CONVERTERS:
        raise SettingsError(f"there is no converter to {target!r}; there are: {', '.join(CONVERTERS)}")
    files = write(target, CONVERTERS[target], _sources(source), Draw(seed, limit), out)
    count = len(BENCHMARKS[target].model_validate({"path": str(out)}).load().questions)
    if json:
        print_json({"out": str(out), "questions": count, "files": [path.relative_to(out).as_posix() for path in files]})
    else:
        say(f"{count} questions in {out}; what they are made of is in {files[-1]}")


def _sources(texts: Sequence[str]) -> Sources:
    from documents.errors import SettingsError

    sources: dict[str, list[Path]] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise SettingsError(f"{text!r}: expected NAME=PATH")
        sources.setdefault(name, []).append(Path(path).expanduser())
    return sources
