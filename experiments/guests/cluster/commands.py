"""The command `ragbed merge`."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragbed.documents.shards import SUFFIX
from ragbed.experiments.commands.options import AsJson, Fresh, refuse

Parts = Annotated[list[Path], typer.Argument(metavar="DIR...", help=(
    "All shards' folders, or the folder that contains them."))]
Out = Annotated[Path | None, typer.Option("--out", help=(
    "Output folder. Default: the one the shards were made for."))]


def merge(dirs: Parts, out: Out = None, fresh: Fresh = False, json: AsJson = False) -> None:
    """Merge the shards of an index or a run.

    The result is the same as without shards: the same index, or a run with the same summary.json, byte for byte. If a
    shard is missing, incomplete or has different settings, the command names it and merges nothing.
    """
    folders = [inside for path in dirs
               for inside in (sorted(path.glob("*-of-*")) if path.is_dir() else []) or [path]]
    place = out or _find_merge_target(folders[0])
    if place is None:
        refuse(f"{folders[0]} is not in a folder NAME{SUFFIX}; name the output folder with --out DIR")
    if any((folder / "records.sqlite").is_file() for folder in folders):
        if not any((folder / "manifest.json").is_file() for folder in folders):
            refuse(f"{folders[0]} is not a shard of a run; if it belongs to a constructed set, run the same "
                   "`ragbed construct` command without --shard")
        _merge_run(folders, place, fresh, json)
    else:
        _merge_index(folders, place, json)


def _find_merge_target(shard: Path) -> Path | None:
    """Return the folder to merge a shard into; None if the shard was moved elsewhere."""
    place = shard.parent if shard.parent.name else shard.absolute().parent
    return place.with_name(place.name.removesuffix(SUFFIX)) if place.name.endswith(SUFFIX) else None


def _merge_run(folders: list[Path], out: Path, fresh: bool, json: bool) -> None:
    from ragbed.experiments.guests.cluster.merge_shards import merged_run
    from ragbed.experiments.terminal.display import print_json
    from ragbed.experiments.terminal.execution import show_merged

    with merged_run(folders, out, fresh) as folder:
        show_merged(folder, len(folders), print_json if json else None)


def _merge_index(folders: list[Path], out: Path, json: bool) -> None:
    from ragbed.experiments.commands.index import show_built
    from ragbed.experiments.guests.cluster.merge_shards import merge_indexes
    from ragbed.experiments.terminal.display import Bars

    with Bars() as bars:
        report = merge_indexes(folders, out, bars)
    show_built(report, out, {"shards": len(folders)} if json else None)
