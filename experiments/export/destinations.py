"""Where a run is exported to: a file, whose ending says in what form, or MLflow. Nothing but an earlier export of the
same form is replaced."""
from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from ragbed.agents.pipelines.formats import PredictionFormat
from ragbed.documents.errors import RunError, SettingsError
from ragbed.experiments.analysis.cases import causes_of
from ragbed.experiments.export.junit import write_junit
from ragbed.experiments.export.mlflow import log_to_mlflow
from ragbed.experiments.export.predictions import SEVERAL, WRITERS, answers_of
from ragbed.experiments.export.tables import ExportedRun, write_csv, write_jsonl, write_parquet
from ragbed.experiments.runs.finished import Finished, cells_named
from ragbed.retrieval.storage.files import in_place_of, why_unwritten

# How every export of a form begins; what other programs write in it begins otherwise.
_BEGINS: Mapping[str, re.Pattern[bytes]] = MappingProxyType({
    ".jsonl": re.compile(rb'\{"run": "[^"]*", "cell": \{"id": "'),
    ".csv": re.compile(rb"run,cell,cell_name,"),
    ".xml": re.compile(rb"<\?xml version='1\.0' encoding='utf-8'\?>\n<testsuites name=\"[^\"]*\" tests=")})
_PARQUET = ["run", "cell", "cell_name"]
_LOOKED_AT = 4096  # bytes


def check_replaceable(path: Path, form: str) -> None:
    """Make sure that writing there destroys nothing but an earlier export, whose files end in `form` whatever this one
    does; raise RunError where something else is there."""
    if path.is_dir():
        raise RunError(f"{path}: that is a folder; name a file")
    if not path.exists():
        return
    if not path.is_file():
        raise RunError(f"{path}: that is a device or a pipe; name a file")
    try:
        with path.open("rb") as stream:
            begins = stream.read(_LOOKED_AT)
    except OSError as error:
        raise RunError(f"{path} is there, and cannot be read: {error.strerror}; name another file") from error
    ours = _columns(path) == _PARQUET if form == ".parquet" else _BEGINS[form].match(begins)
    if begins and not ours:
        raise RunError(f"{path} is there, and not an earlier export of this form; name another file")


def _columns(path: Path) -> list[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return list(pq.read_schema(path).names[:len(_PARQUET)])
    except (pa.ArrowException, OSError):
        return []


FORMS: MappingProxyType[str, Callable[[ExportedRun, Path], None]] = MappingProxyType({
    ".jsonl": write_jsonl, ".csv": write_csv, ".parquet": write_parquet, ".xml": write_junit})
MLFLOW = "mlflow"


def export(run: Finished, destination: str) -> str:
    """Export a finished run, and say what came of it, in one line. Destinations are a file that ends in .jsonl, .csv,
    .parquet, or .xml for JUnit's; or `mlflow`, or `mlflow:URI`. Raises SettingsError where it is of no known form, and
    RunError where it cannot be written, or is something other than an earlier export of that form."""
    kind, colon, uri = destination.partition(":")
    path = Path(destination)
    form = path.suffix.lower()
    write = FORMS.get(form)
    if kind != MLFLOW and write is None:
        raise SettingsError(f"{destination!r}: end the file's name in {', '.join(FORMS)}, or give {MLFLOW} or "
                            f"{MLFLOW}:URI")
    if kind == MLFLOW and (colon or write is None):
        return f"MLflow: {log_to_mlflow(run, uri)}"
    assert write is not None
    check_replaceable(path, form)
    causes = causes_of(run.cells, run.folder.results(), run.questions, run.scheme.rights, run.scoring)
    try:
        with in_place_of(path) as partial:
            write(ExportedRun(run, causes), partial)
    except OSError as error:
        raise RunError(f"{path}: {why_unwritten(error)}") from error
    return f"{path}: {len(run.folder.done())} records"


def export_predictions(run: Finished, path: Path, format: PredictionFormat, cell: str | None = None) -> str:
    """Write the answers of the cells that a name fits, as another tool has them, and say what came of it. Raises
    SettingsError where a file of the format has one run, and RunError where the file is there or cannot be written."""
    cells = cells_named(run.rows, cell)
    if len(cells) > 1 and format not in SEVERAL:
        raise SettingsError(f"a file of {format} has one run, and there are the cells {', '.join(cells.values())}; "
                            "name one by --cell")
    if path.exists():
        raise RunError(f"{path} is there; name another file")
    try:
        with in_place_of(path) as partial:
            WRITERS[format](answers_of(run, cells), partial)
    except OSError as error:
        raise RunError(f"{path}: {why_unwritten(error)}") from error
    return f"{path}: {len(cells) * len(run.questions)} answers"
