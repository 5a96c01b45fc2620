"""A construction from the command line: progress, the yield table, and where the set is."""
from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.construct.build import construct
from experiments.construct.play import Played, Watch, counted
from experiments.construct.settings import ConstructSettings
from experiments.construct.writing import write_set
from experiments.terminal.display import Bars, note, print_json, print_table, say, stoppable


def build(settings: ConstructSettings, fresh: bool, replay: Path | None, json: bool) -> None:
    """Build or go on, write the set, and show its yield."""
    kept = 0

    with stoppable("what was asked is kept, and the same command goes on"), Bars() as bars:
        def played(came: Sequence[Played]) -> None:
            nonlocal kept
            kept += sum(not one.lost for one in came)
            bars("items", min(kept, settings.n), settings.n)

        built = asyncio.run(construct(settings, Watch(played), fresh, replay))
    write_set(built)
    counts = counted(built.construction)
    if json:
        print_json({"out": str(settings.out), **counts})
        return
    show_yield(counts)
    for text in built.unread:
        note(f"not read: {text}")
    say(f"{settings.out}; to ask its questions: ragbed run {settings.kind} {settings.out}")


def show_yield(counts: Mapping[str, Any]) -> None:
    """Print the yield: what was asked for, and where the rest was lost."""
    rows = [["asked for", str(counts["asked_for"]), ""], ["instances begun", str(counts["instances"]), ""],
            ["items generated", str(counts["generated"]), ""]]
    for name, reasons in counts["lost"].items():
        most = sorted(reasons.items(), key=lambda one: -one[1])[:3]
        rows.append([f"lost: {name}", str(sum(reasons.values())), "; ".join(f"{why} ({n})" for why, n in most)])
    print_table(["yield", "n", "why"], [*rows, ["kept", str(counts["kept"]), ""]], keys=1)
