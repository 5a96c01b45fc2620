"""`ragbed merge`: joins what shards made."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragbed.experiments.commands.options import AsJson, Fresh, refuse

if TYPE_CHECKING:
    from ragbed.experiments.terminal.run import Put

Parts = Annotated[list[Path], typer.Argument(metavar="DIR...", help=(
    "The folders of all shards, of an index or of a run; or the one folder that holds them, as in idx.shards."))]
Out = Annotated[Path | None, typer.Option("--out", help=(
    "Folder of the whole; by default the one that shards were made for, as in idx."))]


def merge(dirs: Parts, out: Out = None, fresh: Fresh = False, json: AsJson = False) -> None:
    """Join the shards of an index or of a run.

    The index is the one that one build makes, and the run's summary.json has the bytes of the run that was never
    divided. A shard that is missing, lacks records, or was made with other settings is named, and nothing is joined.
    """
    from ragbed.documents.shards import whole_of
    from ragbed.experiments.terminal.display import print_json

    folders = list(_parts(dirs))
    place = out or whole_of(folders[0])
    if place is None:
        refuse(f"{folders[0]} does not stand in a folder NAME.shards, so say where the whole is to be: --out DIR")
    if any((folder / "records.sqlite").is_file() for folder in folders):
        if not any((folder / "manifest.json").is_file() for folder in folders):
            refuse(f"{folders[0]} is no shard of a run; if it is one of a set, the same `ragbed construct` without "
                   "--shard takes it over")
        merge_and_show(folders, place, fresh, print_json if json else None)
    else:
        merge_indexes(folders, place, json)


def _parts(given: Sequence[Path]) -> Iterator[Path]:
    for path in given:
        inside = sorted(path.glob("*-of-*")) if path.is_dir() else []
        yield from inside or [path]


def merge_and_show(folders: Sequence[Path], out: Path, fresh: bool, put: Put | None) -> None:
    """Join the shards of a run, and show it as `ragbed run` does; exit status 1 likewise."""
    from shlex import join

    from ragbed.experiments.running.merge import merged_run
    from ragbed.experiments.terminal.run import show_finished
    from ragbed.experiments.terminal.tables import all_failed

    with merged_run(folders, out, fresh) as folder:
        retry = join(["ragbed", "run", str(out / "config.yaml"), "--out", str(out.parent), "--retry"])
        show_finished(folder, f"`{retry}`", put, f"{len(folder.done()):,} records of {len(folders)} shards")
        if all_failed(folder):
            raise typer.Exit(1)


def merge_indexes(folders: Sequence[Path], out: Path, json: bool, told: bool = False) -> None:
    """Join the shards of an index, and say what is in it, and what was skipped where nobody told that yet."""
    from ragbed.experiments.commands.index import show_built
    from ragbed.experiments.terminal.display import Bars
    from ragbed.retrieval.building import merge

    with Bars() as bars:
        report = merge.merge_indexes(folders, out, bars)
    show_built(report, out, {"shards": len(folders)} if json else None, told)
