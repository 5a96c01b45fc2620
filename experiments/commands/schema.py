"""`ragbed schema`."""
from __future__ import annotations


def schema() -> None:
    """Print the JSON Schema of a run's settings."""
    from experiments.settings.schema import settings_schema
    from experiments.terminal.display import print_json

    print_json(settings_schema())
