"""`ragbed verify`."""
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.commands.options import AsJson

if TYPE_CHECKING:
    from experiments.running.verify import Check

_SHOWN = 10  # differences of one check that a terminal shows


def verify(run: Annotated[Path, typer.Argument(help="A finished run's folder.")], json: AsJson = False) -> None:
    """Compute every figure of a run again from its records, and take its hashes again. Exit status 1: any differs."""
    from experiments.running.verify import verify as checks_of
    from experiments.runs.finished import open_finished
    from experiments.terminal.display import print_json

    with open_finished(run) as finished:
        checks = checks_of(finished)
    agrees = all(check.agrees for check in checks)
    if json:
        print_json({"run": str(run), "agrees": agrees, "checks": [_row(check) for check in checks]})
    else:
        _show(checks)
    if not agrees:
        raise typer.Exit(1)


def _row(check: Check) -> dict[str, object]:
    return {"name": check.name, "agrees": check.agrees if check.checked else None, "detail": check.detail,
            "differences": list(check.differences)}


def _show(checks: list[Check]) -> None:
    from experiments.terminal.display import print_table, say

    print_table(["what", "", "compared"], [[check.name, _said(check), check.detail] for check in checks])
    for check in checks:
        for text in check.differences[:_SHOWN]:
            say(f"{check.name}: {text}")
        if len(check.differences) > _SHOWN:
            say(f"{check.name}: and {len(check.differences) - _SHOWN} more, with --json")
    wrong = [check.name for check in checks if not check.agrees]
    say(f"What differs: {', '.join(wrong)}." if wrong else "Everything that could be compared agrees.")


def _said(check: Check) -> str:
    if not check.checked:
        return "not compared"
    return "agrees" if check.agrees else f"{len(check.differences)} differ"
