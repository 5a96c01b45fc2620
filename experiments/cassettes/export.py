"""A finished run's calls and searches as a cassette."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from agents.cassette import is_cassette, write_cassette
from documents.errors import RunError
from experiments.cassettes.replay import About, Asked, portable
from experiments.runs.finished import Finished
from experiments.runs.manifest import manifest_of

ENDING = ".cassette.jsonl.gz"


@dataclass(frozen=True, slots=True)
class Exported:
    """A cassette that was written. `counts` is of texts, calls and searches; `size` in bytes."""

    path: Path
    counts: Mapping[str, int]
    size: int


def export_cassette(run: Finished, out: Path | None = None) -> Exported:
    """Write the cassette of a finished run.

    Args:
        out: by default the run's name and `.cassette.jsonl.gz`, in the current folder. A cassette there is replaced.

    Raises:
        RunError: the run did not keep what its searches found; or the file is something else, or cannot be written.
    """
    about = _about(run)
    path = out or Path(f"{about.name}{ENDING}")
    if path.exists() and not is_cassette(path):
        raise RunError(f"{path} is there, and no cassette; name another file with --out")
    counts = write_cassette(path, version("ragbed"), about.model_dump(mode="json"), run.folder.database)
    return Exported(path, counts, path.stat().st_size)


def _about(run: Finished) -> About:
    made = manifest_of(run.path)
    if not run.folder.marked("searches") and any(cell.retriever for cell in run.cells):
        raise RunError(f"{run.path}: was made by a ragbed that did not keep what searches find; give its `ragbed run` "
                       "command once with --journal replay, where what it searches is, and export it then")
    return About(name=run.name, settings=portable(run.settings),
                 benchmark=Asked.model_validate({name: made.benchmark[name] for name in Asked.model_fields}),
                 prompts=made.prompts, judge_prompt=made.judge_prompt, exemplars=made.exemplars, models=made.models,
                 pins=run.folder.pins(), cells=list(run.labels.values()), results=run.summary["results"])
