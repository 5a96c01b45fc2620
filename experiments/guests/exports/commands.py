"""The command that exports a run."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ragbed.experiments.commands.options import AnyRun, AsJson, CellName, refuse


def export(run: AnyRun,
           to: Annotated[Path, typer.Argument(metavar="FILE", help=(
               "Output: a table (.csv, .parquet), whole records (.jsonl), or what --as writes."))],
           form: Annotated[str | None, typer.Option("--as", metavar="FORMAT", help=(
               "Another tool's format, from those above."))] = None,
           cell: CellName = None, json: AsJson = False) -> None:
    """Export records, results, answers or mined negatives.

    --as writes the table (latex, markdown), figures and answers (every_eval_ever, hf_dataset, langfuse), or answers
    alone (ragas, trec_rag, inspect, ragchecker, jsonl, browsecomp_plus, longmemeval).

    RUN may be the folder of a run, or one that `ragbed negatives` wrote. Mined negatives are written as triplets,
    n-tuples, mteb or beir.
    """
    from ragbed.documents.errors import did_you_mean
    from ragbed.experiments.guests.exports.destinations import export as write
    from ragbed.experiments.guests.exports.destinations import export_answers, list_writable
    from ragbed.experiments.guests.exports.other_tools import FORMATS, export_results
    from ragbed.experiments.runs.finished import open_finished
    from ragbed.experiments.terminal.display import note, print_result
    from ragbed.guests import entries, load_for_folder

    if cell is not None and (form is None or form in FORMATS):
        refuse("--cell needs --as and a format of answers: a table has every cell")
    progress: dict[str, Any] = {}
    if exporter := load_for_folder("exporter", run):
        done = exporter(run, to, form)
    elif form not in (None, *FORMATS, *(known := list_writable())):
        only = "can only be read" if form in entries("answers") else "is unknown"
        refuse(f"the format {form!r} {only}; {did_you_mean(str(form), [*FORMATS, *known])}the formats are "
               f"{', '.join([*FORMATS, *known])}")
    else:
        with open_finished(run, partial=True) as finished:
            done = write(finished, to) if form is None else export_results(finished, to, form) if form in FORMATS else \
                export_answers(finished, to, form, cell)
            progress.update(finished.progress)
            for text in finished.unfinished:
                note(text)
    print_result(json, {"run": str(run), "to": str(to), "said": done, **progress}, done)


def plot(run: AnyRun,
         out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The picture: FILE.svg or FILE.png.")],
         json: AsJson = False) -> None:
    """Draw the scores of a run's cells with their intervals, best first.

    An existing picture is replaced.
    """
    from ragbed.documents.errors import RunError
    from ragbed.experiments.guests.exports.tables import picture_of
    from ragbed.experiments.runs.finished import open_finished
    from ragbed.experiments.terminal.display import note, print_result
    from ragbed.retrieval.storage.files import check_replaceable, explain_write_error, write_atomically

    check_replaceable(out, lambda beginning: beginning.startswith((b"\x89PNG", b"<svg ")))
    with open_finished(run, partial=True) as finished:
        picture = picture_of(finished, out)
        for text in finished.unfinished:
            note(text)
    try:
        write_atomically(out, picture)
    except OSError as error:
        raise RunError(f"{out}: {explain_write_error(error)}") from error
    print_result(json, {"run": str(run), "to": str(out), "bytes": len(picture)}, f"{out}: {len(picture):,} bytes")
