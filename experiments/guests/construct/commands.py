"""`ragbed construct`: build a benchmark from documents or from another benchmark."""
from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragbed.experiments.commands.help import MORE
from ragbed.experiments.commands.options import AsJson, Fresh, Launcher, ShardName, Texts, part_of, refuse

if TYPE_CHECKING:
    from ragbed.documents.shards import Shard
    from ragbed.experiments.guests.construct.construct_settings import ConstructSettings

Kind = Annotated[str, typer.Argument(metavar="KIND", help=(
    "Benchmark: crest, mdbench, mrke, mrceval, detectiveqa or computed."))]
Sources = Annotated[Texts, typer.Argument(metavar="SRC...", help="Documents: files, folders or globs.")]
Source = Annotated[str | None, typer.Option("--from", metavar="KIND:PATH", help=(
    "Start from a benchmark's questions instead of documents."))]
Solver = Annotated[Texts, typer.Option(help="Model that checks items by answering. Repeatable.")]
Judge = Annotated[Texts, typer.Option("--judge", help="Model that judges items of mrceval. Repeatable.")]
Assignments = Annotated[Texts, typer.Option("--set", metavar="KEY=VALUE", help=(
    "Any other setting, e.g. retriever=dense. Repeatable."))]
Formats = Annotated[Texts, typer.Option("--format", metavar="NAME", rich_help_panel=MORE, help=(
    "Extra output: beir, ragas, autorag or yourbench. Repeatable."))]
Replay = Annotated[Path | None, typer.Option("--replay", metavar="FILE", rich_help_panel=MORE, help=(
    "Use the replies in this cassette instead of models."))]


def construct(
        kind: Kind, src: Sources = None, benchmark: Source = None,
        out: Annotated[Path, typer.Option("--out", help="Folder of the set.")] = Path("set"),
        writer: Annotated[str | None, typer.Option(help="Model that writes questions.")] = None,
        solver: Solver = None, judge: Judge = None,
        n: Annotated[int, typer.Option("--n", min=1, help="Number of items to keep.")] = 100,
        tries: Annotated[int | None, typer.Option(min=1, rich_help_panel=MORE, help=(
            "Maximum number of attempts. Default: 5 per item."))] = None,
        seed: Annotated[int, typer.Option(help="Random seed.")] = 0, set: Assignments = None, format: Formats = None,
        budget: Annotated[Texts, typer.Option("--budget", metavar="PART=AMOUNT", help=(
            "Stop at this limit, e.g. usd=2 or tokens=200000. Repeatable."))] = None,
        shard: ShardName = None, launcher: Launcher = None, fresh: Fresh = False, replay: Replay = None,
        licence: Annotated[str, typer.Option(rich_help_panel=MORE, help=(
            "Licence of the documents, written in the dataset card."))] = "",
        dry: Annotated[bool, typer.Option("--dry-run", help=(
            "Show the maximum calls, tokens and price, and stop."))] = False,
        json: AsJson = False) -> None:
    """Build a benchmark from documents, and report why items were rejected.

    One model writes items, others check them by answering, and filters reject flawed items. Without --solver the writer
    also checks, and without --judge the solvers judge. With --from, mrke makes an edited twin of each question, and
    mrceval makes a multiple-choice item of it.

    A rerun continues where the command stopped. Without --shard it also reuses the work of shards. `ragbed run KIND
    DIR` asks the questions. Exit status 1: no item was kept.
    """
    from ragbed.experiments.guests.construct.construct_settings import parse_settings
    from ragbed.experiments.guests.construct.display import show_bounds

    given: dict[str, Any] = {"kind": kind, "sources": tuple(src or ()), "out": out, "writer": writer,
                             "solvers": tuple(solver or ()), "judges": tuple(judge or ()), "n": n, "tries": tries,
                             "seed": seed, "licence": licence, "exports": tuple(format or ())}
    settings = parse_settings(given, set or (), budget or (), benchmark)
    part = part_of(shard, *["--launcher"] * bool(launcher), *["--replay"] * bool(replay), *["--dry-run"] * dry)
    if dry:
        show_bounds(settings, json)
    else:
        _build(settings, part, launcher, fresh, replay, json)


def _build(settings: ConstructSettings, part: Shard | None, launcher: str | None, fresh: bool, replay: Path | None,
           json: bool) -> None:
    from ragbed.documents.shards import parts
    from ragbed.experiments.commands.options import find_launcher
    from ragbed.experiments.guests.construct.display import build

    if part:
        build(settings.for_shard(part), fresh, None, json, part)
    elif launcher and replay:
        refuse("--launcher does not go with --replay")
    elif launcher:
        shards = find_launcher(launcher).launch(sys.argv[1:], launcher, [settings.work_folder], [settings])
        build(settings, fresh, None, json, parts=[one.folder(settings.work_folder) for one in shards])
    else:
        build(settings, fresh, replay, json, parts=() if fresh or replay else parts(settings.work_folder))
