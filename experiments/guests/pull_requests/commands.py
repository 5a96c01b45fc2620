"""`ragbed gate`."""
from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ragbed.experiments.commands.help import MORE
from ragbed.experiments.commands.options import AsJson, Texts

if TYPE_CHECKING:
    from ragbed.experiments.guests.pull_requests.verdict import GateResult
    from ragbed.experiments.settings import RunSettings

FailOn = Literal["worse", "cannot_tell", "not_equal", "never"]


def gate(base: Annotated[Path, typer.Argument(metavar="BASE", help=(
            "Run folder or cassette of the main branch."))],
         head: Annotated[Path, typer.Argument(metavar="HEAD", help=(
             "Settings file of this branch, or a run folder or cassette of it."))],
         markdown: Annotated[Path | None, typer.Option("--markdown", metavar="FILE", help=(
             "Write the text of a pull request's comment."))] = None,
         fail: Annotated[FailOn | None, typer.Option("--fail", metavar="WHEN", help=(
             "worse, cannot_tell, not_equal or never. Default: worse."))] = None,
         margin: Annotated[float | None, typer.Option("--margin", help=(
             "Differences up to this size do not matter. Default: 0.03."))] = None,
         metric: Annotated[str | None, typer.Option("--metric", metavar="NAME", help=(
             "The metric that decides. Default: the main metric."))] = None,
         cell: Annotated[Texts, typer.Option("--cell", metavar="NAME", help=(
             "Only cells of HEAD whose name contains this."))] = None,
         policy: Annotated[Path | None, typer.Option("--policy", metavar="FILE", help=(
             "YAML file with these settings: fail, margin, metric, cells, race."))] = None,
         race: Annotated[bool | None, typer.Option("--race/--no-race", help=(
             "Stop asking once a verdict is clear. Default: --race."))] = None,
         replay_only: Annotated[bool, typer.Option("--replay-only", help=(
             "Make no calls, and say what was not asked."))] = False,
         report_url: Annotated[str | None, typer.Option("--report-url", metavar="URL", rich_help_panel=MORE, help=(
             "Address of HEAD's report, for links."))] = None,
         json: AsJson = False) -> None:
    """Tell whether this branch is better or worse than the main branch.

    Calls that BASE made are not made again. What changed is asked until the verdict is clear.

    Verdicts: worse, better, equal (no difference larger than --margin), unchanged, and cannot tell. `--fail
    cannot_tell` also fails if there are too few questions; `--fail not_equal` fails unless equal or unchanged.

    Exit status 1: the verdict fails. Exit status 2: the sides cannot be compared.
    """
    given = {"fail": fail, "margin": margin, "metric": metric, "race": race, "cells": tuple(cell) if cell else None}
    result = _compare(base, head, policy, given, replay_only, markdown, report_url)
    if json:
        from ragbed.experiments.terminal.display import print_json

        print_json(result.as_json())
    else:
        _show(result)
    if result.fails:
        raise typer.Exit(1)


def _compare(base: Path, head: Path, policy: Path | None, given: Mapping[str, Any], replay_only: bool,
             markdown: Path | None, report_url: str | None) -> GateResult:
    """Carry out the gate and write its text, also if the sides cannot be compared."""
    from ragbed.documents.errors import UserError
    from ragbed.experiments.guests.pull_requests.gate import carry_out_gate
    from ragbed.experiments.guests.pull_requests.markdown import check_url, write_failure, write_markdown
    from ragbed.experiments.guests.pull_requests.policy import read_policy
    from ragbed.experiments.running.runner import RunCallbacks
    from ragbed.experiments.runs.store import write_text
    from ragbed.experiments.terminal.display import stoppable
    from ragbed.experiments.terminal.progress import RunView

    try:
        chosen = read_policy(policy, given)
        url = check_url(report_url) if report_url else None
        with stoppable("what was answered is kept; rerun the command to continue"), RunView() as view:
            result = carry_out_gate(base, _settings(head), chosen, RunCallbacks(
                view.stage, view.begun, view.record, view.note), replay_only)
    except UserError as error:
        if markdown:
            write_text(markdown, write_failure(error))
        raise
    if markdown:
        write_text(markdown, write_markdown(result, url))
    return result


def _settings(head: Path) -> RunSettings | Path:
    """Return the settings of a file, or the path of a run or cassette."""
    from ragbed.agents.cassette import is_cassette
    from ragbed.experiments.commands.options import refuse
    from ragbed.experiments.settings.file import read_runs

    if head.is_dir() or is_cassette(head):
        return head
    runs = read_runs(head)
    if len(runs) > 1:
        refuse(f"{head} describes {len(runs)} runs, one per benchmark; give a file with one benchmark")
    return runs[0]


def _show(result: GateResult) -> None:
    from ragbed.experiments.formatting import estimate, fmt2, metric_title
    from ragbed.experiments.guests.pull_requests.markdown import TITLES, describe_cost
    from ragbed.experiments.guests.pull_requests.verdict import describe
    from ragbed.experiments.terminal.display import print_table, print_text, say

    print_table(["cell", "n", "main", "branch", "difference", "verdict"], [
        [one.head if one.base == one.head else f"{one.head} (main: {one.base})", f"{one.n}/{one.of}",
         *("-" if value is None else fmt2(value) for value in (one.before, one.after)),
         estimate(one.difference, one.low, one.high, "+z.2f"), TITLES[one.state]] for one in result.cells],
                metric_title(result.metric) + ", with 90 % intervals")
    say("")
    several = len(result.cells) > 1
    for one in result.cells:
        print_text(f"{one.head} – {describe(one, result)}" if several else describe(one, result))
    for text in result.notes:
        print_text(text)
    cost = describe_cost(result.spent) if result.spent["calls"] else "no new calls"
    say(f"{cost}; this branch's run: {result.run}")
    if result.fails:
        print_text(f"fails: the policy is fail: {result.policy.fail}")
