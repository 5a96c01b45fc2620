"""`ragbed negatives` mines hard negatives, and `ragbed dose` shows what more of them do to the answers."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ragbed.experiments.commands.options import AsJson, FinishedRun, Limit, Metric, Sample, Texts, refuse

Files = Annotated[str | None, typer.Argument(metavar="PATH", help="The benchmark's folder or file, or hub:OWNER/NAME.")]
PerQuestion = Annotated[int, typer.Option(min=0, help="Extra negatives per question, for negatives@N.")]
Fill = Annotated[int, typer.Option(min=0, help="Fill up to N chunks, gold included; 0: do not fill.")]
Folder = Annotated[Path | None, typer.Option("--index", help="Index to mine in, instead of the benchmark's chunks.")]
Keep = Annotated[bool, typer.Option("--keep", help="Keep all chunks of a question, not only its gold.")]
Reranker = Annotated[str, typer.Option("--reranker", help="Reject candidates that it scores above the gold.")]
Embedder = Annotated[str | None, typer.Option(help="Embedder of the benchmark's own chunks.")]
Miners = Annotated[Texts, typer.Option("--miner", help=(
    "A retriever, same_document, entity or random. Repeatable."))]


def negatives(
        benchmark: Annotated[str, typer.Argument(metavar="BENCHMARK", help="See `ragbed list benchmarks`.")],
        out: Annotated[Path, typer.Option("--out", help="A new folder.")],
        path: Files = None, per_question: PerQuestion = 10, fill: Fill = 10, index: Folder = None, miner: Miners = None,
        keep: Keep = False, reranker: Reranker = "none", embedder: Embedder = None,
        depth: Annotated[int, typer.Option(min=1, help="Maximum number of candidates per miner.")] = 1000,
        seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
        limit: Limit = None, sample: Sample = None,
        set: Annotated[Texts, typer.Option("--set", metavar="KEY=VALUE", help=(
            "A setting of the benchmark. Repeatable."))] = None,
        json: AsJson = False) -> None:
    """Mine hard negatives for a benchmark's questions.

    The result is a benchmark with the same questions: `ragbed run mined DIR`. By default the miners dense, bm25,
    same_document and entity take turns; then the first one alone fills up questions that have too few. Candidates
    that may answer a question are rejected, and decisions.jsonl gives the reason for each. With --reranker '{kind:
    judge, model: M}' a model grades candidates, and those with a grade of 2 or 3 (of 3) are rejected.
    """
    from pydantic import ValidationError

    from ragbed.documents.errors import SettingsError
    from ragbed.experiments.benchmarks import BENCHMARKS
    from ragbed.experiments.guests.hard_negatives.display import show_mining
    from ragbed.experiments.guests.hard_negatives.mining import mine
    from ragbed.experiments.guests.hard_negatives.selection import MiningSettings
    from ragbed.experiments.settings.file import explain, parse_yaml
    from ragbed.experiments.settings.targets import Part, resolve_target
    from ragbed.experiments.terminal.display import Bars, print_json

    given: dict[str, Any] = {
        "per_question": per_question, "fill": fill, "index": index, "keep": keep, "depth": depth, "seed": seed,
        "reranker": None if reranker == "none" else parse_yaml(reranker, f"--reranker {reranker!r}")}
    given |= {name: value for name, value in (("miners", miner), ("embedder", embedder)) if value}
    try:
        settings = MiningSettings.model_validate(given)
    except ValidationError as error:
        raise SettingsError(explain(error, MiningSettings)) from error
    if benchmark not in BENCHMARKS:
        refuse(f"unknown benchmark {benchmark!r}; choose from: {', '.join(BENCHMARKS)}")
    part = Part(limit, sample, None if sample is None else seed)
    (run,) = resolve_target(benchmark, path, {"set": [f"benchmark.{text}" for text in set or ()]}, part)
    with Bars() as bars:
        manifest = mine(run.benchmark, settings, out, bars)
    if json:
        print_json({"out": str(out), **manifest.counts, "shortfalls": manifest.short})
    else:
        show_mining(manifest, out)


def dose(run: FinishedRun,
         metric: Metric = None,
         json: AsJson = False) -> None:
    """Show how answers change with more, or harder, negatives.

    Each curve has an area, and areas are compared with each other.

    The run needs several doses. Under conditions: gold, set perturbations: none, negatives@2, negatives@5 and
    negatives@10. Under conditions: retrieved, set several retrievers and perturbations: pool@5, pool@10 and pool@20.
    After `ragbed negatives`, hardness is an axis too: negatives@4:easy, negatives@4:medium and negatives@4:hard take
    the easiest, middle and hardest third of each question's negatives.
    """
    from ragbed.experiments.guests.hard_negatives.display import show_dose

    show_dose(run, metric, json)
