"""`ragbed negatives` mines hard negatives, and `ragbed dose` shows what more of them do to the answers."""
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragbed.experiments.commands.help import MORE
from ragbed.experiments.commands.options import AsJson, FinishedRun, Limit, Metric, Sample, Texts, refuse

if TYPE_CHECKING:
    from ragbed.experiments.guests.hard_negatives.selection import MiningSettings

Files = Annotated[str | None, typer.Argument(metavar="PATH", help="The benchmark's folder or file, or hub:OWNER/NAME.")]
PerQuestion = Annotated[int, typer.Option(min=0, help="Extra negatives per question, for negatives@N.")]
Fill = Annotated[int, typer.Option(min=0, help="Fill up to N chunks per question, gold included; 0: off.")]
Folder = Annotated[Path | None, typer.Option("--index", help="Mine in this index instead of the benchmark's chunks.")]
Keep = Annotated[bool, typer.Option("--keep", help="Keep all chunks of a question, not only its gold.")]
Reranker = Annotated[str, typer.Option("--reranker", help="Rejects candidates it scores above the gold.")]
Rank = Annotated[int | None, typer.Option(min=1, rich_help_panel=MORE, help="Use the first N candidates of a miner.")]
Skipped = Annotated[int, typer.Option(min=0, rich_help_panel=MORE, help="Skip the first N candidates of a miner.")]
Score = Annotated[float | None, typer.Option(rich_help_panel=MORE, help="Leave out candidates that score higher.")]
LowScore = Annotated[float | None, typer.Option(rich_help_panel=MORE, help="Leave out candidates that score lower.")]
Margin = Annotated[float | None, typer.Option(rich_help_panel=MORE, help="Minimum distance below the gold's score.")]
Share = Annotated[float | None, typer.Option(rich_help_panel=MORE, help="The same, as a share of the gold's score.")]
Sampling = Annotated[str, typer.Option(rich_help_panel=MORE, help="Take the best ones (top), or draw (random).")]
Embedder = Annotated[str | None, typer.Option(help="Embedder of the benchmark's own chunks.")]
Miners = Annotated[Texts, typer.Option("--miner", help=(
    "Miner: a retriever, same_document, entity or random. Repeatable."))]


def negatives(
        benchmark: Annotated[str, typer.Argument(metavar="BENCHMARK", help="See `ragbed list benchmarks`.")],
        out: Annotated[Path, typer.Option("--out", help="A new folder.")],
        path: Files = None, per_question: PerQuestion = 10, fill: Fill = 10, index: Folder = None, miner: Miners = None,
        keep: Keep = False, reranker: Reranker = "auto", embedder: Embedder = None,
        depth: Annotated[int, typer.Option(min=1, rich_help_panel=MORE, help="Maximum candidates per miner.")] = 1000,
        range_min: Skipped = 0, range_max: Rank = None, max_score: Score = None, min_score: LowScore = None,
        absolute_margin: Margin = None, relative_margin: Share = None, sampling: Sampling = "top",
        seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
        limit: Limit = None, sample: Sample = None,
        set: Annotated[Texts, typer.Option("--set", metavar="KEY=VALUE", help=(
            "A setting of the benchmark. Repeatable."))] = None,
        json: AsJson = False) -> None:
    """Mine hard negatives for a benchmark's questions.

    The result is a benchmark with the same questions: `ragbed run mined DIR`. By default four miners take turns: dense,
    bm25, same_document and entity. If a question still has too few, the first miner adds more. Candidates that may
    answer the question are rejected, and decisions.jsonl gives the reason for each. If a benchmark has no answers, the
    guard compares candidates with the gold texts, and by late interaction. With --reranker '{kind: judge, model: M}' a
    model grades candidates from 0 to 3 and rejects those with a 2 or 3.

    Limits of rank and score are those of sentence-transformers' mine_hard_negatives. Scores are cosines, or those of a
    named reranker. `ragbed export DIR FILE --as triplets` writes the result for training.
    """
    from ragbed.documents.errors import did_you_mean
    from ragbed.experiments.benchmarks import BENCHMARKS
    from ragbed.experiments.guests.hard_negatives.display import show_mining
    from ragbed.experiments.guests.hard_negatives.mining import mine
    from ragbed.experiments.settings.targets import Part, resolve_target
    from ragbed.experiments.settings.texts import parse_yaml
    from ragbed.experiments.terminal.display import Bars, print_json

    settings = _read_settings({
        "per_question": per_question, "fill": fill, "index": index, "keep": keep, "depth": depth, "seed": seed,
        "reranker": None if reranker == "none" else parse_yaml(reranker, f"--reranker {reranker!r}"),
        "limits": {"range_min": range_min, "range_max": range_max, "max_score": max_score, "min_score": min_score,
                   "absolute_margin": absolute_margin, "relative_margin": relative_margin, "sampling": sampling},
        **{name: value for name, value in (("miners", miner), ("embedder", embedder)) if value}})
    if benchmark not in BENCHMARKS:
        refuse(f"unknown benchmark {benchmark!r}; "
               f"{did_you_mean(benchmark, BENCHMARKS)}choose from: {', '.join(BENCHMARKS)}")
    part = Part(limit, sample, None if sample is None else seed)
    (run,) = resolve_target(benchmark, path, {"set": [f"benchmark.{text}" for text in set or ()]}, part)
    with Bars() as bars:
        manifest = mine(run.benchmark, settings, out, bars)
    if json:
        print_json({"out": str(out), **manifest.counts, "shortfalls": manifest.short})
    else:
        show_mining(manifest, out)


def _read_settings(given: dict[str, Any]) -> MiningSettings:
    from pydantic import ValidationError

    from ragbed.documents.errors import SettingsError
    from ragbed.experiments.guests.hard_negatives.selection import MiningSettings
    from ragbed.experiments.settings.validation import explain

    try:
        return MiningSettings.model_validate(given)
    except ValidationError as error:
        raise SettingsError(explain(error, MiningSettings)) from error


def dose(run: FinishedRun,
         metric: Metric = None,
         json: AsJson = False) -> None:
    """Show how answers change with more, or harder, negatives.

    Shows a curve for each cell, and compares the areas under the curves.

    The run needs several doses. Under conditions: gold, set perturbations: none, negatives@2, negatives@5 and
    negatives@10. Under conditions: retrieved, set several retrievers and perturbations: pool@5, pool@10 and pool@20.
    After `ragbed negatives`, you can also vary hardness: negatives@4:easy, negatives@4:medium and negatives@4:hard take
    the easiest, middle and hardest third of each question's negatives.
    """
    from ragbed.experiments.guests.hard_negatives.display import show_dose

    show_dose(run, metric, json)
