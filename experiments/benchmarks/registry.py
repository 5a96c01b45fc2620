"""The benchmarks that settings can name: those of guests, the demo, and the user's questions."""
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import Field

from ragbed.experiments.benchmarks.base import Selection
from ragbed.experiments.benchmarks.jsonl import Demo, OwnQuestions
from ragbed.guests import load_kinds

_USERS: dict[str, type[Selection]] = {one.model_fields["kind"].default: one for one in (Demo, OwnQuestions)}
BENCHMARKS: dict[str, type[Selection]] = load_kinds("benchmark", Selection, _USERS) | _USERS
"""The class of settings of each benchmark, by the `kind` that a run's settings name."""



def complete_benchmark(value: Any) -> Any:
    """Return the settings of a benchmark that is given by its name, or as questions: a file, `hub:OWNER/NAME`, or
    settings without a `kind`."""
    if isinstance(value, str):
        named = value in BENCHMARKS or not (Path(value).suffix or ":" in value or Path(value).exists())
        value = {"kind": value} if named else {"path": value}
    if isinstance(value, dict) and "kind" not in value:
        path = str(value.get("path", ""))
        value = {"kind": "questions", **value} if path.startswith("hub:") or Path(path).suffix else value
    return value


if TYPE_CHECKING:
    BenchmarkSettings = Selection
else:
    BenchmarkSettings = Annotated[Union[tuple(BENCHMARKS.values())], Field(discriminator="kind")]  # noqa: UP007
