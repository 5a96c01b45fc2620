"""Commands that pass a run on, and take its figures again."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ragbed.experiments.commands.options import AsJson, CellName, FinishedRun, Texts, refuse


def export(run: FinishedRun,
           to: Annotated[Path, typer.Argument(metavar="FILE", help=(
               "Ends in .csv or .parquet for a table, or in .jsonl for everything, with prompts and evidence."))],
           form: Annotated[str | None, typer.Option("--as", metavar="FORMAT", help=(
               "Only the answers, for another tool: ragas, trec_rag, inspect, ragchecker or jsonl."))] = None,
           cell: CellName = None, json: AsJson = False) -> None:
    """Write a run's records, or its answers, for other tools."""
    from ragbed.experiments.export import export as write
    from ragbed.experiments.export import export_answers
    from ragbed.experiments.runs.finished import open_finished
    from ragbed.experiments.terminal.display import print_result

    if cell is not None and form is None:
        refuse("--cell needs --as: a table has every cell")
    with open_finished(run) as finished:
        done = write(finished, to) if form is None else export_answers(finished, to, form, cell)
    print_result(json, {"run": str(run), "to": str(to), "said": done}, done)


def cassette_export(run: FinishedRun, out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help=(
        "The file; by default NAME.cassette.jsonl.gz in this folder. A cassette there is replaced."))] = None,
                    json: AsJson = False) -> None:
    """Write a run's calls and searches into one file.

    `ragbed run --replay FILE` makes the run again from it anywhere.
    """
    from ragbed.experiments.benchmarks.hub import CARD
    from ragbed.experiments.running.cassette import export_cassette, export_set_cassette
    from ragbed.experiments.runs.finished import open_finished
    from ragbed.experiments.terminal.display import print_result

    if (run / CARD).is_file():
        path, counts = export_set_cassette(run, out)
        print_result(json, {"set": str(run), "file": str(path), "bytes": path.stat().st_size, **counts}, (
            f"{path}: {_counted(counts)}, {path.stat().st_size} bytes; `ragbed construct ... --replay {path}` builds "
            "the set again from it and the same sources, without a model"))
        return
    with open_finished(run) as finished:
        path, counts = export_cassette(finished, out)
    size = path.stat().st_size
    print_result(json, {"run": str(run), "file": str(path), "bytes": size, **counts}, (
        f"{path}: {_counted(counts)}, {size} bytes; `ragbed run --replay {path}` makes the run again from it, with the "
        "benchmark's files and without a model, an index or a network"))


def cassette_show(file: Annotated[Path, typer.Argument(help="A cassette.")], json: AsJson = False) -> None:
    """Show what a cassette holds, once all of it was checked."""
    from ragbed.experiments.formatting import format_price
    from ragbed.experiments.running.cassette import Replay, holdings
    from ragbed.experiments.terminal.display import print_json, print_records

    held = holdings(Replay.open(file))
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


_SHOWN = 10  # differences of one check that a terminal shows


def verify(run: FinishedRun, json: AsJson = False) -> None:
    """Compute a run's figures and hashes again and compare.

    Exit status 1: any differs.
    """
    from ragbed.experiments.running.verify import verify as checks_of
    from ragbed.experiments.runs.finished import open_finished
    from ragbed.experiments.terminal.display import print_json, print_table, say

    with open_finished(run) as finished:
        checks = list(checks_of(finished))
    agrees = all(check.agrees for check in checks)
    if json:
        print_json({"run": str(run), "agrees": agrees, "checks": [
            {"name": one.name, "agrees": one.agrees if one.checked else None, "detail": one.detail,
             "differences": list(one.differences)} for one in checks]})
    else:
        print_table(["what", "", "compared"], [
            [one.name, "not compared" if not one.checked else "agrees" if one.agrees else
             f"{len(one.differences)} differ", one.detail] for one in checks])
        for check in checks:
            more = len(check.differences) - _SHOWN
            for text in [*check.differences[:_SHOWN], *([f"and {more} more, with --json"] if more > 0 else [])]:
                say(f"{check.name}: {text}")
        wrong = [check.name for check in checks if not check.agrees]
        say(f"What differs: {', '.join(wrong)}." if wrong else "Everything that could be compared agrees.")
    if not agrees:
        raise typer.Exit(1)


def rescore(run: FinishedRun,
            scoring: Annotated[Literal["corrected", "as-published"] | None, typer.Option(
                help="By default the run's own.")] = None,
            judge: Annotated[str | None, typer.Option(help="`lexical`, or a model, asked of every answer; by default "
                                                           "the verdicts are those of the run.")] = None,
            support: Annotated[str | None, typer.Option(
                help="Check each sentence against what it cites, and the answer for the question's nuggets: `lexical`, "
                     "`nli:MODEL` by a cross-encoder, or a model. By default as the run did.")] = None,
            metric: Annotated[Texts, typer.Option(
                "--metric", help="See `ragbed list metrics`; may be given again. Any that the records have what is "
                                 "needed for, also those of other benchmarks; by default the columns of the run's "
                                 "table.")] = None,
            plugin: Annotated[Texts, typer.Option(
                "--plugin", metavar="FILE.py:FUNCTION", help="A strategy of the run that is code in a file: it is "
                "executed to read its replies again, if it is the file that the run was made with. May be given "
                "again.")] = None,
            json: AsJson = False) -> None:
    """Score a run again from its records.

    Shows which figures differ. The run stays as it is.
    """
    from ragbed.experiments.terminal.rescoring import show_rescored

    show_rescored(run, scoring, judge, metric or [], json, plugin or [], support)
