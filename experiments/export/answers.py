"""A run's answers in another tool's format."""
from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from ragbed.documents.errors import RunError, SettingsError
from ragbed.experiments.answer_files import Answer, find_answer_format
from ragbed.experiments.runs.finished import Finished, cells_named
from ragbed.retrieval.storage.files import explain_write_error, replacing_file
from ragbed.strategies.reading import renumber_citations


def export_answers(run: Finished, path: Path, format: str, cell: str | None = None) -> str:
    """Write the answers of the cells that match a name in another tool's format. Return a line that says what was
    written. Raises SettingsError: the format holds one run, and several cells match; RunError: the file exists or
    cannot be written."""
    cells, form = cells_named(run.rows, cell), find_answer_format(format)
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
    """Yield the answers of cells in the run's order. Citations are places in the contexts, from 1. A question that
    ended without an answer has a row with `failure`."""
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
