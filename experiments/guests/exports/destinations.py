"""Write a run to a file: its records as JSON Lines, CSV or Parquet, or its answers in another tool's format."""
from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType

from ragbed.documents.errors import RunError, SettingsError
from ragbed.experiments.answer_files import Answer, find_answer_format
from ragbed.experiments.guests.exports.other_tools import new_folder
from ragbed.experiments.guests.exports.record_tables import ExportedRun, write_csv, write_jsonl, write_parquet
from ragbed.experiments.runs.finished import Finished, find_cells
from ragbed.guests import loaded
from ragbed.retrieval.storage.files import check_replaceable, explain_write_error, replacing_file
from ragbed.strategies.reading import renumber_citations

# The first bytes of ragbed's own exports, by form.
_BEGINNINGS: Mapping[str, re.Pattern[bytes]] = MappingProxyType({
    ".jsonl": re.compile(rb'\{"run": "[^"]*", "cell": \{"id": "'), ".csv": re.compile(rb"run,cell,cell_name,")})
_FIRST_COLUMNS = ["run", "cell", "cell_name"]


def _is_ours(path: Path, form: str, beginning: bytes) -> bool:
    return _columns(path) == _FIRST_COLUMNS if form == ".parquet" else bool(_BEGINNINGS[form].match(beginning))


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
    Raises SettingsError for another ending, and RunError if the file cannot be written or is not an earlier export."""
    form = path.suffix.lower()
    write = _WRITERS.get(form)
    if write is None:
        raise SettingsError(f"{path}: unknown ending; use {', '.join(_WRITERS)}")
    check_replaceable(path, partial(_is_ours, path, form))
    try:
        with replacing_file(path) as written:
            write(ExportedRun.of(run), written)
    except OSError as error:
        raise RunError(f"{path}: {explain_write_error(error)}") from error
    return f"{path}: {len(run.folder.done())} records"


def list_writable() -> list[str]:
    """Return the names of the formats of answers that can be written."""
    return [name for name, form in loaded("answers").items() if form.write is not None]


def export_answers(run: Finished, path: Path, format: str, cell: str | None = None) -> str:
    """Write the answers of all cells that match `cell`, in another tool's format. Return a line that says what was
    written. Raises SettingsError if too many cells match, and RunError if the file exists or cannot be written."""
    cells, form = find_cells(run.rows, cell), find_answer_format(format)
    what = "folder" if form.folder else "file"
    if form.write is None:
        raise SettingsError(f"{format} files can only be read")
    if len(cells) > 1 and not form.several_runs:
        raise SettingsError(f"a {format} {what} holds one cell, and this run has {', '.join(cells.values())}; "
                            "choose one with --cell")
    if path.exists():
        raise RunError(f"{path} exists; name another {what}")
    try:
        with (new_folder if form.folder else replacing_file)(path) as written:
            form.write(answers_of(run, cells, form.folder), written)
    except OSError as error:
        raise RunError(f"{path}: {explain_write_error(error)}") from error
    return f"{path}: {len(cells) * len(run.questions)} answers"


def answers_of(run: Finished, cells: Collection[str], traces: bool = False) -> Iterator[Answer]:
    """Yield the answers of cells in the run's order. Citations are positions in the contexts, counted from 1. A
    question without an answer gets a row with `failure`. With `traces`, rows have the number of calls by tool, the
    outcome, the strategy's figures, and the ids of all documents found."""
    for result in (record.result for record in run.folder.records(traces) if record.result.cell in cells):
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
               **({"calls_by_tool": dict(result.calls_by_tool), "outcome": result.outcome, "figures": result.figures,
                   "found": list(dict.fromkeys(one.document for one in result.evidence))} if traces else {}),
               **({"failure": f"{failure.kind}: {failure.message}"} if failure else {})}
