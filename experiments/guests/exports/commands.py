"""The commands that export a run, or keep it in one file."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ragbed.experiments.commands.options import AnyRun, AsJson, CellName, FinishedRun, refuse


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


def cassette_export(run: FinishedRun, out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help=(
        "Default: NAME.cassette.jsonl.gz in this folder."))] = None,
                    json: AsJson = False) -> None:
    """Write a run's calls and searches into one file.

    `ragbed run --replay FILE` repeats the run from it anywhere. An existing cassette is replaced.
    """
    from ragbed.experiments.benchmarks.hub import CARD
    from ragbed.experiments.guests.exports.cassettes import export_cassette, export_set_cassette
    from ragbed.experiments.runs.finished import open_finished
    from ragbed.experiments.terminal.display import print_result

    if (run / CARD).is_file():
        path, counts = export_set_cassette(run, out)
        print_result(json, {"set": str(run), "file": str(path), "bytes": path.stat().st_size, **counts}, (
            f"{path}: {_counted(counts)}, {path.stat().st_size} bytes; `ragbed construct ... --replay {path}` "
            "repeats it from the same sources, without a model"))
        return
    with open_finished(run) as finished:
        path, counts = export_cassette(finished, out)
    size = path.stat().st_size
    print_result(json, {"run": str(run), "file": str(path), "bytes": size, **counts}, (
        f"{path}: {_counted(counts)}, {size} bytes; `ragbed run --replay {path}` repeats the run with the "
        "benchmark's files, without a model, an index or a network"))


def cassette_show(file: Annotated[Path, typer.Argument(help=(
    "A cassette: recorded calls in one file."))], json: AsJson = False) -> None:
    """Check a cassette, and show what it holds."""
    from ragbed.experiments.formatting import format_price
    from ragbed.experiments.guests.exports.cassettes import describe_cassette
    from ragbed.experiments.running.replay import Replay
    from ragbed.experiments.terminal.display import print_json, print_records

    held = describe_cassette(Replay.open(file))
    if json:
        print_json(held)
    else:
        tokens = held["tokens"]
        print_records([(str(file), [
            ("run", f"{held['run']}, by ragbed {held['ragbed']}"),
            ("benchmark", f"{held['benchmark']}, {held['questions']} questions"),
            *(("model", name if name.endswith(f"#{identity}") else f"{name} ({identity})")
              for name, identity in held["models"].items()),
            *(("cell", name) for name in held["cells"]),
            ("holds", f"{_counted(held)}; {held['failed']} of the calls failed"),
            ("tokens", f"{tokens['prompt']} of prompts, {tokens['cached']} of them cached, and "
                       f"{tokens['completion']} of replies"),
            ("price", f"{format_price(held['price'])} for these calls made live")])])


def _counted(counts: Any) -> str:
    return f"{counts['calls']} calls, {counts['searches']} searches, {counts['texts']} texts"
