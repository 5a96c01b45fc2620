"""Show a construction in the terminal: progress, the yield table, and the path of the set."""
from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import typer

from ragbed.documents.shards import Shard
from ragbed.experiments.formatting import format_price, join_names, plural
from ragbed.experiments.guests.construct.construct_settings import ConstructSettings
from ragbed.experiments.guests.construct.set_builder import construct, read_library
from ragbed.experiments.guests.construct.set_files import REPORT, write_set, yield_view
from ragbed.experiments.guests.construct.stage_runner import FAILED
from ragbed.experiments.guests.construct.stages import Outcome
from ragbed.experiments.guests.construct.usage_estimate import estimate_usage
from ragbed.experiments.terminal.display import Bars, note, print_json, print_result, print_table, say, stoppable
from ragbed.experiments.terminal.run_tables import print_views

_MAX_NAMED = 6  # number of sources without items that the terminal lists; the card lists all of them


def build(settings: ConstructSettings, fresh: bool, replay: Path | None, json: bool, shard: Shard | None = None,
          parts: Sequence[Path] = ()) -> None:
    """Build or continue a set, write it, and show its yield. A shard only makes its calls."""
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
        if not one["kept"] and settings.benchmark is None:  # a benchmark has at least one source per question
            why = one["why"] or f"all items were lost, at {join_names(list(one['lost']))}"
            empty.setdefault(why, []).append(one["source"])
    for why, sources in empty.items():
        say(f"{len(sources)} of {plural(len(card['sources']), 'source')} gave no item, "
            f"{join_names(sources, _MAX_NAMED)}: {why}")
    for text in (*(f"not read: {one}" for one in card["unread"]), *card["notes"]):
        note(text)
    for one in card["models"]:
        if one["relation"]:
            note(f"{one['role']}, {one['model']}, is {one['relation']}, so it does not judge independently of it")
    say(f"card: {settings.out / 'card.md'}; report: {settings.out / REPORT}")
    failed = sum(card["yield"]["lost"].get(FAILED, {}).values())
    if failed:
        note(f"{plural(failed, 'item')} ended with a failed call; rerun the command to retry")
    if not card["yield"]["kept"]:
        note("no item was kept")
        raise typer.Exit(1)
    say(f"to run the benchmark: ragbed run {settings.kind} {settings.out}")


def show_bounds(settings: ConstructSettings, json: bool) -> None:
    """Print upper bounds on the calls, tokens and price of a construction."""
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
