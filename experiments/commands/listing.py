"""`ragbed list` and `ragbed schema`."""
from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from ragbed.experiments.commands.options import AsJson

What = Literal["strategies", "retrievers", "benchmarks", "conditions", "rules", "perturbations", "metrics", "models",
               "guests"]


def list_(what: Annotated[What, typer.Argument(metavar="WHAT", help=(
        "What to list: strategies, retrievers, metrics and so on."))], json: AsJson = False) -> None:
    """List the available strategies, retrievers, benchmarks, metrics and so on."""
    from ragbed.experiments.terminal.display import print_json, print_records, print_table
    from ragbed.experiments.terminal.lists import INVENTORY

    rows = INVENTORY[what]()
    if json:
        print_json({what: rows})
    elif what == "benchmarks":
        print_records([(f"{row['name']}: {row['is']}", _fields(row)) for row in rows])
    elif what == "strategies":
        print_records([(f"{row['kind']} {row['name']}: {row['does']}", [
            (name, row[name]) for name in ("settings", "from") if row[name] not in ("", "ragbed")]) for row in rows])
    else:
        print_table(list(rows[0]), [[str(value) for value in row.values()] for row in rows])


def _fields(row: dict[str, Any]) -> list[tuple[str, str]]:
    def text(value: Any) -> Any:
        return ", ".join(value) if isinstance(value, list) else value if not isinstance(value, dict) else \
            "; ".join(f"{name}: {text(one)}" for name, one in value.items())

    as_text = {name.replace("_", " "): text(value) for name, value in row.items()}
    return [(name, as_text[name]) for name in ("paper", "licence", "size", "metrics", "judge", "views", "published",
                                               "run as", "as published", "settings", "get", "here") if as_text[name]]


def schema(exemplars: Annotated[bool, typer.Option("--exemplars", help=(
        "Schema of a line in a file of worked examples instead."))] = False) -> None:
    """Print the JSON Schema of a run's settings."""
    from ragbed.experiments.settings.file import settings_schema
    from ragbed.experiments.terminal.display import print_json
    from ragbed.strategies.settings.exemplars import exemplars_schema

    print_json(exemplars_schema() if exemplars else settings_schema())
