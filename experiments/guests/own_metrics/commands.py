"""`ragbed check metric`."""
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragbed.experiments.commands.options import AsJson

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ragbed.experiments.guests.own_metrics.record_view import MetricRecord

_MOST = 20  # records of a run that are shown


def check_metric(metric: Annotated[str, typer.Argument(metavar="METRIC", help=(
                     "FILE.py:FUNCTION, package.module:FUNCTION, or YAML such as '{metric: ...}'."))],
                 run: Annotated[Path | None, typer.Option("--run", metavar="RUN", help=(
                     "Use the first records of this run. Default: made-up records."))] = None,
                 json: AsJson = False) -> None:
    """Try a custom metric on a few records, each twice, and print its values.

    Exit status 1: it fails on a record, or its values differ between the two calls.
    """
    from ragbed.agents.watchdog import watchdog
    from ragbed.experiments.guests.own_metrics.measuring import measure_one, read_metrics
    from ragbed.experiments.settings.texts import parse_spec
    from ragbed.experiments.terminal.display import print_json, print_table, say

    one, = read_metrics([parse_spec(metric, "METRIC")]).root
    function, _ = one.load()
    rows = []
    with watchdog():
        for record in _records(run):
            first, again = (measure_one(one, function, record) for _ in range(2))
            rows.append((record, first, first == again))
    failed = sum(isinstance(first, str) for _, first, _ in rows)
    varied = sum(not same for _, _, same in rows)
    if json:
        print_json({"metric": one.name, "passed": not failed and not varied, "records": [
            {"question": record.id, "outcome": record.outcome, "values": None if isinstance(found, str) else found,
             "error": found if isinstance(found, str) else None, "same": same} for record, found, same in rows]})
    else:
        print_table(["question", "outcome", "answer", "value"], [
            [record.id, record.outcome, record.answer[:40], found if isinstance(found, str) else ", ".join(
                f"{name} {'none' if value is None else f'{value:g}'}" for name, value in found.items())]
            for record, found, _ in rows])
        say(f"{one.name}: {len(rows)} records, {failed} failed, {varied} with another value when called again")
    if failed or varied:
        raise typer.Exit(1)


def _records(run: Path | None) -> Iterator[MetricRecord]:
    from itertools import islice

    from ragbed.experiments.guests.own_metrics.record_view import MADE_UP, view_record
    from ragbed.experiments.runs.finished import open_finished

    if run is None:
        yield from MADE_UP
        return
    with open_finished(run) as finished:
        cells = {cell.id: cell for cell in finished.cells}
        for one in islice(finished.folder.results(traces=True), _MOST):
            yield view_record(one, finished.questions[one.question], cells[one.cell], finished.folder.database.text)
