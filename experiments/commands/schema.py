"""`ragbed schema`."""
from __future__ import annotations


def schema() -> None:
    """Print the JSON Schema of a run's settings."""
    from experiments.settings import RunSettings
    from experiments.terminal.display import print_json

    print_json(RunSettings.model_json_schema())
