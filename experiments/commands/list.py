"""`ragbed list`."""
from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from experiments.commands.options import AsJson


class What(StrEnum):
    """What can be listed."""

    strategies = "strategies"
    retrievers = "retrievers"
    benchmarks = "benchmarks"
    metrics = "metrics"
    models = "models"


def list_(what: Annotated[What, typer.Argument(help="What to list.")], json: AsJson = False) -> None:
    """Show what there is: strategies, retrievers, benchmarks, metrics or models."""
    from experiments.display import print_json, print_table
    from experiments.inventory import INVENTORY

    rows = INVENTORY[what.value]()
    if json:
        print_json({what.value: rows})
    else:
        print_table(list(rows[0]), [[str(value) for value in row.values()] for row in rows])
