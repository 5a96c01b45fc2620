"""The benchmarks that settings can name: from the five papers, from guests, the demo and the user's own questions."""
from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Union

from pydantic import Field

from ragbed.experiments.benchmarks.base import Selection
from ragbed.experiments.benchmarks.crest import Crest
from ragbed.experiments.benchmarks.detectiveqa import DetectiveQa
from ragbed.experiments.benchmarks.jsonl import Demo, OwnQuestions
from ragbed.experiments.benchmarks.mdbench import Mdbench
from ragbed.experiments.benchmarks.mrceval import Mrceval
from ragbed.experiments.benchmarks.mrke import Mrke
from ragbed.guests import load_kinds


def _by_kind(*benchmarks: type[Selection]) -> dict[str, type[Selection]]:
    return {settings.model_fields["kind"].default: settings for settings in benchmarks}


_PAPERS, _USERS = _by_kind(Crest, Mrceval, Mdbench, DetectiveQa, Mrke), _by_kind(Demo, OwnQuestions)
BENCHMARKS: dict[str, type[Selection]] = (
    _PAPERS | load_kinds("benchmark", Selection, [*_PAPERS, *_USERS]) | _USERS)
"""The class of settings of each benchmark, by the `kind` that a run's settings name."""

if TYPE_CHECKING:
    BenchmarkSettings = Selection
else:
    BenchmarkSettings = Annotated[Union[tuple(BENCHMARKS.values())], Field(discriminator="kind")]  # noqa: UP007
