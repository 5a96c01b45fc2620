"""`ragbed construct`: build a benchmark from documents or from another benchmark."""
from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragbed.experiments.commands.options import AsJson, Fresh, Launcher, ShardName, Texts, part_of, refuse

if TYPE_CHECKING:
    from ragbed.documents.shards import Shard
    from ragbed.experiments.guests.construct.settings import ConstructSettings

Kind = Annotated[str, typer.Argument(metavar="KIND", help="crest, mdbench, mrke, mrceval, detectiveqa or computed.")]
Sources = Annotated[Texts, typer.Argument(metavar="SRC...", help="Files, folders and globs.")]


def construct(
        kind: Kind, src: Sources = None,
        benchmark: Annotated[str | None, typer.Option("--from", metavar="KIND:PATH", help=(
            "In the place of documents, a benchmark whose questions items are made of: mrke makes an edited twin of "
            "each, mrceval a multiple-choice item."))] = None,
        out: Annotated[Path, typer.Option("--out", help="Folder of the set.")] = Path("set"),
        writer: Annotated[str | None, typer.Option(help="The model that writes, named as for `ragbed ask`.")] = None,
        solver: Annotated[Texts, typer.Option(help="A model that answers, to check what was written; may be given "
                                                   "again. By default the writer.")] = None,
        judge: Annotated[Texts, typer.Option("--judge", help="A model that judges, for kinds that ask judges; may be "
                                             "given again. By default the solvers.")] = None,
        n: Annotated[int, typer.Option("--n", min=1, help="How many items.")] = 100,
        tries: Annotated[int | None, typer.Option(min=1, help="How many instances may be begun; by default five for "
                                                  "each item.")] = None,
        seed: Annotated[int, typer.Option(help="Of everything that is drawn.")] = 0,
        set: Annotated[Texts, typer.Option("--set", metavar="KEY=VALUE", help="Any other setting, as in --set "
                                           "options.most=3 or --set retriever=dense; may be given again.")] = None,
        format: Annotated[Texts, typer.Option("--format", metavar="NAME", help="A further format of the set: beir, "
                                              "ragas, autorag or yourbench; may be given again.")] = None,
        budget: Annotated[Texts, typer.Option("--budget", metavar="PART=AMOUNT", help="As for `ragbed run`.")] = None,
        shard: ShardName = None, launcher: Launcher = None, fresh: Fresh = False,
        replay: Annotated[Path | None, typer.Option("--replay", metavar="FILE", help=(
            "A cassette of the set, in the place of models."))] = None,
        licence: Annotated[str, typer.Option(help="Of the sources, in words, for the card.")] = "",
        dry: Annotated[bool, typer.Option("--dry-run", help="Only say what would be asked at most: calls, tokens, "
                                                            "price.")] = False,
        json: AsJson = False) -> None:
    """Build a benchmark from documents, and say of each item that is missing where it was lost.

    The same command goes on where it stopped, and without --shard takes over what shards have made. The set is run with
    `ragbed run KIND DIR`. Exit status 1: no item was kept.
    """
    from ragbed.experiments.guests.construct.display import show_bounds
    from ragbed.experiments.guests.construct.settings import parse_settings

    given: dict[str, Any] = {"kind": kind, "sources": tuple(src or ()), "out": out, "writer": writer,
                             "solvers": tuple(solver or ()), "judges": tuple(judge or ()), "n": n, "tries": tries,
                             "seed": seed, "licence": licence, "exports": tuple(format or ())}
    settings = parse_settings(given, set or (), budget or (), benchmark)
    part = part_of(shard, *["--launcher"] * bool(launcher), *["--replay"] * bool(replay), *["--dry-run"] * dry)
    if dry:
        show_bounds(settings, json)
    else:
        _carry_out(settings, part, launcher, fresh, replay, json)


def _carry_out(settings: ConstructSettings, part: Shard | None, launcher: str | None, fresh: bool, replay: Path | None,
               json: bool) -> None:
    from ragbed.documents.shards import parts
    from ragbed.experiments.commands.shards import find_launcher
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
