"""`ragbed cassette`."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.commands.options import AsJson


def export(run: Annotated[Path, typer.Argument(help="A finished run's folder.")],
           out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help=(
               "The file; by default NAME.cassette.jsonl.gz in this folder. A cassette there is replaced."))] = None,
           json: AsJson = False) -> None:
    """Write a run's calls and searches into one file, from which `ragbed run --replay FILE` makes it again anywhere."""
    from experiments.running.write_cassette import export_cassette
    from experiments.runs.finished import open_finished
    from experiments.terminal.display import print_json, say

    with open_finished(run) as finished:
        done = export_cassette(finished, out)
    if json:
        print_json({"run": str(run), "file": str(done.path), "bytes": done.size, **done.counts})
    else:
        say(f"{done.path}: {_counted(done.counts)}, {done.size} bytes; `ragbed run --replay {done.path}` makes the run "
            "again from it, with the benchmark's files and without a model, an index or a network")


def show(file: Annotated[Path, typer.Argument(help="A cassette.")], json: AsJson = False) -> None:
    """What a cassette holds, once all of it was checked."""
    from experiments.running.cassette import Replay
    from experiments.running.write_cassette import holdings
    from experiments.terminal.display import print_json, print_records

    held = holdings(Replay.open(file))
    if json:
        print_json(held)
    else:
        print_records([(str(file), _lines(held))])


def _lines(held: dict[str, Any]) -> list[tuple[str, str]]:
    from experiments.words import price

    tokens = held["tokens"]
    return [("run", f"{held['run']}, by ragbed {held['ragbed']}"),
            ("benchmark", f"{held['benchmark']}, {held['questions']} questions"),
            *(("model", name if name.endswith(f"#{identity}") else f"{name} ({identity})")
              for name, identity in held["models"].items()),
            *(("cell", name) for name in held["cells"]),
            ("holds", f"{_counted(held)}; {held['failed']} of the calls failed"),
            ("tokens", f"{tokens['prompt']} of prompts, {tokens['cached']} of them cached, and "
                       f"{tokens['completion']} of replies"),
            ("price", f"{price(held['price'])} for these calls made live")]


def _counted(counts: Any) -> str:
    return f"{counts['calls']} calls, {counts['searches']} searches, {counts['texts']} texts"
