"""`ragbed rescore` and `ragbed verify`: recompute a run's figures from its records."""
from __future__ import annotations

from typing import Annotated, Literal

import typer

from ragbed.experiments.commands.options import AsJson, FinishedRun, Texts

_SHOWN = 10  # maximum differences of one check that the terminal shows


def verify(run: FinishedRun, json: AsJson = False) -> None:
    """Recompute the figures and hashes of a run and compare them.

    Exit status 1: something differs.
    """
    from ragbed.experiments.guests.rescoring.verify import verify as checks_of
    from ragbed.experiments.runs.finished import open_finished
    from ragbed.experiments.terminal.display import print_json, print_table, say

    with open_finished(run, checked=False) as finished:
        checks = list(checks_of(finished))
    agrees = all(check.agrees for check in checks)
    if json:
        print_json({"run": str(run), "agrees": agrees, "checks": [
            {"name": one.name, "agrees": one.agrees if one.checked else None, "detail": one.detail,
             "differences": list(one.differences)} for one in checks]})
    else:
        print_table(["what", "", "compared"], [
            [one.name, "not compared" if not one.checked else "agrees" if one.agrees else
             f"{len(one.differences)} differ", one.detail] for one in checks])
        for check in checks:
            more = len(check.differences) - _SHOWN
            for text in [*check.differences[:_SHOWN], *([f"and {more} more, with --json"] if more > 0 else [])]:
                say(f"{check.name}: {text}")
        wrong = [check.name for check in checks if not check.agrees]
        say(f"Different: {', '.join(wrong)}." if wrong else "Everything that could be compared agrees.")
    if not agrees:
        raise typer.Exit(1)


def rescore(run: FinishedRun,
            scoring: Annotated[Literal["corrected", "as-published"] | None, typer.Option("--scoring", help=(
                "Scoring rules. Default: the run's own."))] = None,
            judge: Annotated[str | None, typer.Option("--judge", metavar="NAME", help=(
                "`lexical` or a model. Default: the run's verdicts."))] = None,
            support: Annotated[str | None, typer.Option("--support", metavar="NAME", help=(
                "Check citations with `lexical`, `nli:MODEL` or a model."))] = None,
            metric: Annotated[Texts, typer.Option("--metric", metavar="NAME", help=(
                "See `ragbed list metrics`, or FILE.py:FUNCTION."))] = None,
            plugin: Annotated[Texts, typer.Option("--plugin", metavar="CODE", help=(
                "Parse replies again with this FILE.py:FUNCTION."))] = None,
            json: AsJson = False) -> None:
    """Recompute a run's scores from its records, and show what differs.

    The run is not changed. --metric takes any metric that the records allow, even one of another benchmark. By default,
    the columns of the run's table are computed. --plugin parses the replies again with your own strategy, whose file
    must not have changed since the run.
    """
    from ragbed.experiments.guests.rescoring.display import show_rescored

    show_rescored(run, scoring, judge, metric or [], json, plugin or [], support)
