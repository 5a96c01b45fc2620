"""`ragbed import`."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ragbed.experiments.commands.options import AsJson, Fresh, Texts
from ragbed.experiments.commands.run import (
    Files,
    Filter,
    JudgeName,
    Limit,
    Others,
    Out,
    RunName,
    Sample,
    ScoringName,
    Seed,
    SkipBad,
    carry_out_runs,
    given_options,
)


def import_(format: Annotated[str, typer.Argument(metavar="FORMAT", help=(
                "trec_rag, inspect, ragas, ragchecker, or jsonl: one line per question."))],
            file: Annotated[Path, typer.Argument(metavar="FILE", help="The file with the answers.")],
            benchmark: Annotated[str, typer.Option("--benchmark", help="A name of `ragbed list benchmarks`.")],
            path: Files = None,
            run: Annotated[Texts, typer.Option("--run", help=(
                "Import only this run of the file; repeatable. By default each run becomes a cell."))] = None,
            more: Annotated[Texts, typer.Option("--with", metavar="KEY=VALUE", help=(
                "A setting of the pipeline that the file becomes, e.g. answer=$.output.text; repeatable."))] = None,
            judge: JudgeName = None, scoring: ScoringName = None, name: RunName = None, set: Others = None,
            out: Out = None, skip_bad: SkipBad = False, limit: Limit = None, sample: Sample = None, seed: Seed = None,
            filter: Filter = None, fresh: Fresh = False, json: AsJson = False) -> None:
    """Score the answers of another tool as a run.

    A row answers the question with its id or, without an id, with its text. A question without a row counts as a
    failure.
    """
    from ragbed.experiments.guests.pipelines.predictions import read_predictions
    from ragbed.experiments.settings.targets import Part, put, runs_of_target

    part = Part(limit, sample, seed, tuple(filter or ()))
    rows = list(read_predictions(format, file))
    last = max((row.repeat for row in rows), default=0)
    common = {"kind": "predictions", "format": format, "path": str(file),
              "others": "refuse" if part == Part() else "leave_out"}
    pipelines: list[dict[str, Any]] = [{**common, "name": one or file.stem, "run": one or None}
                                       for one in run or dict.fromkeys(row.run for row in rows) or [""]]
    for one in pipelines:
        for text in more or ():
            put(one, text, replacing=True)
    options = given_options(set, skip_bad, judge=judge, scoring=scoring, name=name or file.stem, out=out,
                            pipelines=pipelines, repeats=last + 1 if last else None)
    carry_out_runs(runs_of_target(benchmark, path, options, part), "record", False, fresh, json, None)
