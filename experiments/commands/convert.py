"""`ragbed convert`."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.options import AsJson


def convert(target: Annotated[str, typer.Argument(metavar="TARGET", help="The benchmark in whose format records are "
                                                                         "written; see `ragbed list converters`.")],
            source: Annotated[list[str], typer.Argument(metavar="NAME=PATH", help="What they are made of.")],
            out: Annotated[Path, typer.Option("--out", help="A new folder.")],
            seed: Annotated[int, typer.Option(help="Of everything that is drawn.")] = 0,
            limit: Annotated[int | None, typer.Option(min=1, help="The most questions of each source.")] = None,
            json: AsJson = False) -> None:
    """Write public data of the same capability in the published record format of a benchmark."""
    from experiments.converters import Draw
    from experiments.converters import convert as write
    from experiments.terminal.display import print_json, say

    files, count = write(target, source, Draw(seed, limit), out)
    if json:
        print_json({"out": str(out), "questions": count, "files": [path.relative_to(out).as_posix() for path in files]})
    else:
        say(f"{count} questions in {out}; what they are made of is in {files[-1]}")
