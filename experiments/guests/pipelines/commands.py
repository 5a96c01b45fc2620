"""`ragbed import`."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ragbed.experiments.commands.options import AsJson, Fresh, Texts
from ragbed.experiments.commands.run import (
    Files,
    Filter,
    Full,
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


def import_(format: Annotated[str, typer.Argument(metavar="FORMAT", help="Format, from those above.")],
            file: Annotated[Path, typer.Argument(metavar="FILE", help="The file with the answers, or their folder.")],
            benchmark: Annotated[str, typer.Option("--benchmark", metavar="NAME", help=(
                "See `ragbed list benchmarks`."))],
            path: Files = None,
            run: Annotated[Texts, typer.Option("--run", metavar="NAME", help=(
                "Only this run of the file. Default: all, one cell each."))] = None,
            more: Annotated[Texts, typer.Option("--with", metavar="KEY=VALUE", help=(
                "JSONPath of a field in the file, e.g. answer=$.output.text."))] = None,
            judge: JudgeName = None, scoring: ScoringName = None, name: RunName = None, set: Others = None,
            out: Out = None, skip_bad: SkipBad = False, limit: Limit = None, sample: Sample = None, seed: Seed = None,
            filter: Filter = None, fresh: Fresh = False, full: Full = False, json: AsJson = False) -> None:
    """Score another tool's answers as a run.

    The formats are jsonl, ragas, ragchecker, inspect, promptfoo, langfuse, opentelemetry, trec_rag, browsecomp_plus and
    longmemeval.

    Rows are matched to questions by id, or by text if they have no id. A question without a row counts as a failure.
    """
    from ragbed.experiments.guests.pipelines.predictions import read_predictions
    from ragbed.experiments.settings.targets import Part, add_setting, resolve_target

    part = Part(limit, sample, seed, tuple(filter or ()))
    rows = list(read_predictions(format, file))
    last = max((row.repeat for row in rows), default=0)
    common = {"kind": "predictions", "format": format, "path": str(file),
              "others": "refuse" if part == Part() else "leave_out"}
    pipelines: list[dict[str, Any]] = [{**common, "name": one or file.stem, "run": one or None}
                                       for one in run or dict.fromkeys(row.run for row in rows) or [""]]
    for one in pipelines:
        for text in more or ():
            add_setting(one, text, replace=True)
    options = given_options(set, skip_bad, judge=judge, scoring=scoring, name=name or file.stem, out=out,
                            pipelines=pipelines, repeats=last + 1 if last else None)
    carry_out_runs(resolve_target(benchmark, path, options, part), "record", False, fresh, json, None, full=full)
