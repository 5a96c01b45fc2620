"""`ragbed list`."""
from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from experiments.commands.options import AsJson


class What(StrEnum):
    """What can be listed."""

    strategies = "strategies"
    retrievers = "retrievers"
    benchmarks = "benchmarks"
    conditions = "conditions"
    rules = "rules"
    perturbations = "perturbations"
    converters = "converters"
    metrics = "metrics"
    models = "models"


def list_(what: Annotated[What, typer.Argument(help="What to list.")], json: AsJson = False) -> None:
    """Show what there is: strategies, retrievers, benchmarks, conditions, rules, perturbations, converters, metrics
    or models."""
    from experiments.terminal.display import print_json, print_records, print_table
    from experiments.terminal.lists import INVENTORY

    rows = INVENTORY[what.value]()
    if json:
        print_json({what.value: rows})
    elif what is What.benchmarks:
        print_records([(f"{row['name']}: {row['is']}", _shown(row)) for row in rows])
    elif what is What.strategies:
        print_records([(f"{row['kind']} {row['name']}: {row['does']}", [
            (name, row[name]) for name in ("settings", "from") if row[name] not in ("", "ragbed")]) for row in rows])
    else:
        print_table(list(rows[0]), [[str(value) for value in row.values()] for row in rows])


def _shown(row: dict[str, Any]) -> list[tuple[str, str]]:
    """The fields of a benchmark that a reader chooses by."""
    as_text = {name: ", ".join(value) if isinstance(value, list) else value for name, value in row.items()}
    for field in ("run_as", "as_published"):
        as_text[field.replace("_", " ")] = "; ".join(
            f"{name}: {', '.join(value) if isinstance(value, list) else value}" for name, value in row[field].items())
    return [(name, as_text[name]) for name in ("paper", "licence", "size", "metrics", "judge", "views", "published",
                                               "run as", "as published", "settings", "get", "here") if as_text[name]]
