"""A construction from the command line: progress, the yield table, and where the set is."""
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

_NAMED = 6  # sources without an item that the terminal names; the card has all


def build(settings: ConstructSettings, fresh: bool, replay: Path | None, json: bool, shard: Shard | None = None,
          parts: Sequence[Path] = ()) -> None:
    """Build or go on, write the set, and show its yield; of a shard its calls are made alone."""
    kept = 0

    with stoppable("what was asked is kept, and the same command goes on"), Bars() as bars:
        def played(came: Sequence[Outcome]) -> None:
            nonlocal kept
            kept += sum(not one.lost for one in came)
            bars("items", min(kept, settings.n), settings.n)

        built = asyncio.run(construct(settings, played, fresh, replay, shard, parts))
    if shard is not None:
        print_result(json, {"out": str(settings.out), "shard": str(shard), "items": len(built.construction.kept)}, (
            f"shard {shard} has made its calls; when all have theirs, the same command without --shard writes the set"))
        return
    card = write_set(built)
    if json:
        print_json({"out": str(settings.out), **card})
        return
    print_views([yield_view(card)], None)
    barren: dict[str, list[str]] = {}
    for one in card["sources"]:
        if not one["kept"] and settings.benchmark is None:  # of a benchmark each question is a source or several
            why = one["why"] or f"every item of it was lost, at {join_names(list(one['lost']))}"
            barren.setdefault(why, []).append(one["source"])
    for why, sources in barren.items():
        say(f"no item of {plural(len(sources), 'source')} of {len(card['sources'])}, "
            f"{join_names(sources, _NAMED)}: {why}")
    for text in (*(f"not read: {one}" for one in card["unread"]), *card["notes"]):
        note(text)
    for one in card["models"]:
        if one["relation"]:
            note(f"{one['role']}, {one['model']}, is {one['relation']}: what it finds right or hard is no outside view")
    say(f"card: {settings.out / 'card.md'}; report: {settings.out / REPORT}")
    failed = sum(card["yield"]["lost"].get(FAILED, {}).values())
    if failed:
        note(f"{plural(failed, 'item')} ended with a call that failed; the same command asks again")
    if not card["yield"]["kept"]:
        note("no item was kept")
        raise typer.Exit(1)
    say(f"to ask its questions: ragbed run {settings.kind} {settings.out}")


def show_bounds(settings: ConstructSettings, json: bool) -> None:
    """Print what a construction asks at most."""
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
