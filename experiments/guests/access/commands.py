"""`ragbed leaks`."""
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragbed.experiments.commands.options import AsJson

if TYPE_CHECKING:
    from ragbed.experiments.guests.access.leaks import LeakReport, Probe

_SHOWN = 5  # leaks that the terminal shows
_PHASES = ("asked", "cached", "stolen", "revoked")


def leaks(index: Annotated[Path, typer.Argument(help="Index; it is not changed.")],
          principals: Annotated[Path, typer.Option("--principals", metavar="FILE", help=(
              "YAML with the rule (allow) and the owners' claims (principals)."))],
          model: Annotated[str | None, typer.Option(help="Model. Default: one that repeats all that it sees.")] = None,
          reasoning: Annotated[str | None, typer.Option(help="Reasoning strategy.")] = None,
          retriever: Annotated[str | None, typer.Option(help="Retriever.")] = None,
          k: Annotated[int | None, typer.Option("-k", min=1, help="Chunks per search.")] = None,
          each: Annotated[int, typer.Option(min=1, max=20, help="Canaries planted per group.")] = 2,
          route: Annotated[list[str] | None, typer.Option("--route", help="Only this route, such as chat.")] = None,
          no_rule: Annotated[bool, typer.Option("--no-rule", help="Serve without the rule, to see what it prevents.")
                             ] = False,
          json: AsJson = False) -> None:
    """Search for leaks between the keys of a server.

    Documents with unmistakable texts (canaries) are planted for each group in a temporary copy of the index. Each key
    asks for those that it may not read, through every route, and again after it lost its claims.

    Exit status 1: something leaked, or the server failed.
    """
    import asyncio

    from ragbed.documents.errors import MissingExtra, SettingsError
    from ragbed.experiments.guests.access.leaks import ROUTES, find_leaks
    from ragbed.experiments.guests.serving.commands import given_settings
    from ragbed.experiments.terminal.display import print_json

    for extra, module in (("serve", "fastapi"), ("mcp", "mcp"), ("tools", "duckdb"), ("tools", "re2")):
        MissingExtra.check(extra, module)
    if unknown := sorted(set(route or ()) - {*ROUTES}):
        raise SettingsError(f"--route {unknown[0]}: choose from: {', '.join(ROUTES)}")
    given = given_settings(model=model, reasoning=reasoning, retriever=retriever, k=k)
    report = asyncio.run(find_leaks(index, principals, given, each=each, routes=route or ROUTES, unprotected=no_rule))
    bad = [one for one in report.probes if one.failure or (one.stages and not one.allowed)]
    if json:
        print_json({"index": str(index), "rules": report.rules, **_summary(report), "leaks": [
            {"route": one.route, "phase": one.phase, "key": one.owner, "document": one.source,
             "stages": sorted(one.stages), "failure": one.failure} for one in bad]})
    else:
        _print(report, bad)
    if bad:
        raise typer.Exit(1)


def _summary(report: LeakReport) -> dict[str, Any]:
    from ragbed.experiments.metrics.intervals import wilson

    forbidden = [one for one in report.probes if not one.allowed]
    allowed = [one for one in report.probes if one.allowed]
    leaked = sum(bool(one.stages) for one in forbidden)
    low, high = wilson(leaked / len(forbidden), len(forbidden)) if forbidden else (None, None)
    return {"forbidden": len(forbidden), "leaked": leaked, "low": low, "high": high, "allowed": len(allowed),
            "reached": sum("shown" in one.stages for one in allowed), "recall": dict(report.recall)}


def _print(report: LeakReport, bad: list[Probe]) -> None:
    from ragbed.experiments.formatting import fmt2, plural
    from ragbed.experiments.guests.access.leak_watch import STAGES
    from ragbed.experiments.terminal.display import print_table, say

    forbidden = [one for one in report.probes if not one.allowed]
    rows = []
    for phase in _PHASES:
        leaky = {one.route: one.route for one in forbidden if one.phase == phase and one.stages}
        routes = dict.fromkeys(leaky.get(one.route, "") for one in forbidden if one.phase == phase)
        clean = {one.route for one in forbidden if one.phase == phase} - leaky.keys()
        for route in sorted(routes, key=lambda name: not name):
            here = [one for one in forbidden if one.phase == phase and leaky.get(one.route, "") == route]
            rows.append([phase, route or plural(len(clean), "clean route"), str(len(here)),
                         *(str(sum(stage in one.stages for one in here) or "-") for stage in STAGES)])
    say(f"rule: {'; '.join(report.rules)}")
    print_table(["when", "route", "n", *STAGES], rows)
    found = _summary(report)
    say(f"leaked: {found['leaked']:,} of {found['forbidden']:,} requests that the rule forbids"
        + (f" [{fmt2(found['low'])}, {fmt2(found['high'])}]" if forbidden else ""))
    say(f"reached: {found['reached']:,} of {found['allowed']:,} requests that the rule allows")
    for owner, share in report.recall.items():
        say(f"recall of what {owner} may read: {fmt2(share)}")
    for one in bad[:_SHOWN]:
        say(f"{one.failure or ', '.join(sorted(one.stages))}: {one.route}, {one.phase}, key {one.owner}, {one.source}")
    if len(bad) > _SHOWN:
        say(f"and {len(bad) - _SHOWN} more, with --json")
