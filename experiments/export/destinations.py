"""Write a run to a file: its records as JSON Lines, CSV or Parquet, or its answers in another tool's format."""
from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from ragbed.documents.errors import RunError, SettingsError
from ragbed.experiments.analysis.cases import find_causes
from ragbed.experiments.answer_files import Answer, find_answer_format
from ragbed.experiments.export.tables import ExportedRun, write_csv, write_jsonl, write_parquet
from ragbed.experiments.runs.finished import Finished, find_cells
from ragbed.retrieval.storage.files import explain_write_error, replacing_file
from ragbed.strategies.reading import renumber_citations

# The first bytes of ragbed's own files, by form.
_BEGINNINGS: Mapping[str, re.Pattern[bytes]] = MappingProxyType({
    ".jsonl": re.compile(rb'\{"run": "[^"]*", "cell": \{"id": "'),
    ".csv": re.compile(rb"run,cell,cell_name,"),
    ".xml": re.compile(rb"<\?xml version='1\.0' encoding='utf-8'\?>\n<testsuites name=\"[^\"]*\" tests=")})
_FIRST_COLUMNS = ["run", "cell", "cell_name"]
_MAX_BEGINNING = 4096  # bytes


def check_replaceable(path: Path, form: str) -> None:
    """Raise RunError unless the path is free or holds an earlier export of the form, such as ".csv"."""
    if path.is_dir():
        raise RunError(f"{path} is a folder; name a file")
    if not path.exists():
        return
    if not path.is_file():
        raise RunError(f"{path} is a device or a pipe; name a file")
    try:
        with path.open("rb") as stream:
            beginning = stream.read(_MAX_BEGINNING)
    except OSError as error:
        raise RunError(f"{path} exists and cannot be read: {error.strerror}; name another file") from error
    ours = _columns(path) == _FIRST_COLUMNS if form == ".parquet" else _BEGINNINGS[form].match(beginning)
    if beginning and not ours:
        raise RunError(f"{path} exists and is not an earlier export in this format; name another file")


def _columns(path: Path) -> list[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return list(pq.read_schema(path).names[:len(_FIRST_COLUMNS)])
    except (pa.ArrowException, OSError):
        return []


_WRITERS: MappingProxyType[str, Callable[[ExportedRun, Path], None]] = MappingProxyType({
    ".jsonl": write_jsonl, ".csv": write_csv, ".parquet": write_parquet})


def export(run: Finished, path: Path) -> str:
    """Write a finished run to a file that ends in .jsonl, .csv or .parquet. Return a line that says what was written.
    Raises SettingsError if the file has another ending. Raises RunError if it cannot be written, or would replace a
    file that is not an earlier export."""
    form = path.suffix.lower()
    write = _WRITERS.get(form)
    if write is None:
        raise SettingsError(f"{path}: unknown ending; use {', '.join(_WRITERS)}")
    check_replaceable(path, form)
    causes = find_causes(run.cells, run.folder.results(), run.questions, run.scheme.correctness_metrics, run.scoring)
    try:
        with replacing_file(path) as partial:
            write(ExportedRun(run, causes), partial)
    except OSError as error:
        raise RunError(f"{path}: {explain_write_error(error)}") from error
    return f"{path}: {len(run.folder.done())} records"


def export_answers(run: Finished, path: Path, format: str, cell: str | None = None) -> str:
    """Write the answers of the cells that match a name in another tool's format. Return a line that says what was
    written. Raises SettingsError if several cells match but the format holds one run. Raises RunError if the file
    exists or cannot be written."""
    cells, form = find_cells(run.rows, cell), find_answer_format(format)
    if len(cells) > 1 and not form.several_runs:
        raise SettingsError(f"a {format} file holds one cell, and this run has {', '.join(cells.values())}; "
                            "choose one with --cell")
    if path.exists():
        raise RunError(f"{path} exists; name another file")
    try:
        with replacing_file(path) as partial:
            form.write(answers_of(run, cells), partial)
    except OSError as error:
        raise RunError(f"{path}: {explain_write_error(error)}") from error
    return f"{path}: {len(cells) * len(run.questions)} answers"


def answers_of(run: Finished, cells: Collection[str]) -> Iterator[Answer]:
    """Yield the answers of cells in the run's order. Citations are positions in the contexts, counted from 1. A
    question that ended without an answer has a row with `failure`."""
    for result in (record.result for record in run.folder.records() if record.result.cell in cells):
        question, failure, usage = run.questions[result.question], result.failure, result.usage
        place_of = {passage.number: place for place, passage in enumerate(result.in_view, start=1)}
        yield {"run": run.name if len(run.labels) == 1 else f"{run.name}: {run.labels[result.cell]}",
               "id": question.id, "question": question.text, "gold": list(question.answers),
               "answer": renumber_citations(result.text, place_of, len(place_of)) or None,
               "citations": [place_of[number] for number in result.cited], "refused": result.refused,
               "contexts": [{"document": passage.source, "text": run.folder.database.text(passage.text),
                             **({"start": passage.start, "end": passage.end} if passage.format == "plain"
                                and passage.end > passage.start else {})} for passage in result.in_view],
               "prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens,
               "price": usage.price, "scores": result.scores,
               **({"failure": f"{failure.kind}: {failure.message}"} if failure else {})}
