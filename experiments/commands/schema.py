"""`ragbed schema`."""
from __future__ import annotations


def schema() -> None:
    """Print the JSON Schema of a run's settings."""
    from experiments.display import print_json
    from experiments.settings import RunSettings

    print_json(RunSettings.model_json_schema())
