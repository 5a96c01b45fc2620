"""Show a construction in the terminal: progress, the yield table, and where the set is."""
from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import typer

from ragbed.documents.shards import Shard
from ragbed.experiments.formatting import format_price, join_names, plural
from ragbed.experiments.guests.construct.build import construct, read_library
from ragbed.experiments.guests.construct.dry_run import estimate_usage
from ragbed.experiments.guests.construct.play import FAILED, Outcome
from ragbed.experiments.guests.construct.set_files import REPORT, write_set, yield_view
from ragbed.experiments.guests.construct.settings import ConstructSettings
from ragbed.experiments.terminal.display import Bars, note, print_json, print_result, print_table, say, stoppable
from ragbed.experiments.terminal.tables import print_views

_MAX_NAMED = 6  # maximum sources without an item to list in the terminal; the card lists all


def build(settings: ConstructSettings, fresh: bool, replay: Path | None, json: bool, shard: Shard | None = None,
          parts: Sequence[Path] = ()) -> None:
    """Build a set or continue it, write it, and show its yield. For a shard, only make its calls."""
    kept = 0

    with stoppable("replies are kept; rerun the command to continue"), Bars() as bars:
        def show_progress(outcomes: Sequence[Outcome]) -> None:
            nonlocal kept
            kept += sum(not one.lost for one in outcomes)
            bars("items", min(kept, settings.n), settings.n)

        built = asyncio.run(construct(settings, show_progress, fresh, replay, shard, parts))
    if shard is not None:
        print_result(json, {"out": str(settings.out), "shard": str(shard), "items": len(built.construction.kept)}, (
            f"shard {shard} is done; when all shards are, rerun the command without --shard to write the set"))
        return
    card = write_set(built)
    if json:
        print_json({"out": str(settings.out), **card})
        return
    print_views([yield_view(card)], None)
    empty: dict[str, list[str]] = {}
    for one in card["sources"]:
        if not one["kept"] and settings.benchmark is None:  # a benchmark has a source or more per question
            why = one["why"] or f"all items were lost, at {join_names(list(one['lost']))}"
            empty.setdefault(why, []).append(one["source"])
    for why, sources in empty.items():
        say(f"{len(sources)} of {plural(len(card['sources']), 'source')} gave no item, "
            f"{join_names(sources, _MAX_NAMED)}: {why}")
    for text in (*(f"not read: {one}" for one in card["unread"]), *card["notes"]):
        note(text)
    for one in card["models"]:
        if one["relation"]:
            note(f"{one['role']}, {one['model']}, is {one['relation']}, so its verdicts are not independent of it")
    say(f"card: {settings.out / 'card.md'}; report: {settings.out / REPORT}")
    failed = sum(card["yield"]["lost"].get(FAILED, {}).values())
    if failed:
        note(f"{plural(failed, 'item')} ended with a failed call; rerun the command to repeat it")
    if not card["yield"]["kept"]:
        note("no item was kept")
        raise typer.Exit(1)
    say(f"to ask its questions: ragbed run {settings.kind} {settings.out}")


def show_bounds(settings: ConstructSettings, json: bool) -> None:
    """Print the most that a construction can cost."""
    library, unread = read_library(settings)
    found = {**estimate_usage(settings, library), "unread": list(unread)}
    if json:
        print_json(found)
        return
    say(f"{plural(found['documents'], 'document')} in {plural(found['chunks'], 'chunk')}; at most "
        f"{plural(found['instances'], 'instance')} for {plural(found['asked_for'], 'item')}")
    print_table(["model", "calls", "prompt tokens", "completion tokens", "price"],
                [[one["model"], *(f"up to {one[name]:,}" for name in ("calls", "prompt_tokens", "completion_tokens")),
                  format_price(one["price"], "?")] for one in found["models"]])
    for text in found["unread"]:
        note(f"not read: {text}")
