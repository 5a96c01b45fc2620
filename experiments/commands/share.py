"""Commands that keep a run in one file."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ragbed.experiments.commands.options import AsJson, FinishedRun


def cassette_export(run: FinishedRun, out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help=(
        "Default: NAME.cassette.jsonl.gz in this folder."))] = None,
                    json: AsJson = False) -> None:
    """Write a run's calls and searches into one file.

    `ragbed run --replay FILE` repeats the run from it anywhere. An existing cassette is replaced.
    """
    from ragbed.experiments.benchmarks.hub import CARD
    from ragbed.experiments.running.replay import export_cassette, export_set_cassette
    from ragbed.experiments.runs.finished import open_finished
    from ragbed.experiments.terminal.display import print_result

    if (run / CARD).is_file():
        path, counts = export_set_cassette(run, out)
        print_result(json, {"set": str(run), "file": str(path), "bytes": path.stat().st_size, **counts}, (
            f"{path}: {_counted(counts)}, {path.stat().st_size} bytes; `ragbed construct ... --replay {path}` "
            "repeats it from the same sources, without a model"))
        return
    with open_finished(run) as finished:
        path, counts = export_cassette(finished, out)
    size = path.stat().st_size
    print_result(json, {"run": str(run), "file": str(path), "bytes": size, **counts}, (
        f"{path}: {_counted(counts)}, {size} bytes; `ragbed run --replay {path}` repeats the run with the "
        "benchmark's files, without a model, an index or a network"))


def cassette_show(file: Annotated[Path, typer.Argument(help=(
    "A cassette: recorded calls in one file."))], json: AsJson = False) -> None:
    """Check a cassette, and show what it holds."""
    from ragbed.experiments.formatting import format_price
    from ragbed.experiments.running.replay import Replay, describe_cassette
    from ragbed.experiments.terminal.display import print_json, print_records

    held = describe_cassette(Replay.open(file))
    if json:
        print_json(held)
    else:
        tokens = held["tokens"]
        print_records([(str(file), [
            ("run", f"{held['run']}, by ragbed {held['ragbed']}"),
            ("benchmark", f"{held['benchmark']}, {held['questions']} questions"),
            *(("model", name if name.endswith(f"#{identity}") else f"{name} ({identity})")
              for name, identity in held["models"].items()),
            *(("cell", name) for name in held["cells"]),
            ("holds", f"{_counted(held)}; {held['failed']} of the calls failed"),
            ("tokens", f"{tokens['prompt']} of prompts, {tokens['cached']} of them cached, and "
                       f"{tokens['completion']} of replies"),
            ("price", f"{format_price(held['price'])} for these calls made live")])])


def _counted(counts: Any) -> str:
    return f"{counts['calls']} calls, {counts['searches']} searches, {counts['texts']} texts"
