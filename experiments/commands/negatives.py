"""`ragbed negatives`."""
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.commands.options import AsJson

if TYPE_CHECKING:
    from experiments.benchmarks import Selection
    from experiments.negatives import MiningSettings

Miners = Annotated[list[str] | None, typer.Option("--miner", help=(
    "dense, bm25 or another kind of retriever; same_document, entity (a name of the question's or the gold's, with "
    "another number or year), random. May be given again: they take turns, and the first fills questions "
    "up. By default dense, bm25, same_document and entity."))]
Files = Annotated[str | None, typer.Argument(metavar="PATH", help="Its folder or file, or hub:OWNER/NAME.")]
PerQuestion = Annotated[int, typer.Option(min=0, help=(
    "Further negatives of each question, for the perturbation negatives@N."))]
Fill = Annotated[int, typer.Option(min=0, help=(
    "To how many chunks a question is filled up with negatives, its gold among them; 0 for not at all."))]
Folder = Annotated[Path | None, typer.Option("--index", help=(
    "Where candidates come from: a folder made by `ragbed index`; else the chunks of the benchmark."))]
Keep = Annotated[bool, typer.Option("--keep", help=(
    "All chunks that a question was given stay, and are filled up; else only its gold stays, and its other chunks are "
    "candidates."))]
Reranking = Annotated[str, typer.Option("--reranker", help=(
    "Candidates that it scores above the gold are left out: late_interaction, cross_encoder, or none."))]
Others = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help=(
    "A setting of the benchmark, as in --set units=sentences; may be given again."))]


def negatives(
        benchmark: Annotated[str, typer.Argument(metavar="BENCHMARK", help="See `ragbed list benchmarks`.")],
        out: Annotated[Path, typer.Option("--out", help="A new folder.")], path: Files = None,
        per_question: PerQuestion = 10, fill: Fill = 10, index: Folder = None, miner: Miners = None,
        keep: Keep = False, reranker: Reranking = "none",
        embedder: Annotated[str | None, typer.Option(help="Of the benchmark's chunks; an index has its own.")] = None,
        depth: Annotated[int, typer.Option(min=1, help="The most candidates of each miner.")] = 1000,
        seed: Annotated[int, typer.Option(help="Of everything that is drawn.")] = 0,
        limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many questions.")] = None,
        sample: Annotated[int | None, typer.Option(min=1, help="So many questions, drawn by --seed.")] = None,
        set: Others = None, json: AsJson = False) -> None:
    """Mine hard negatives for a benchmark's questions, and write it with them as a benchmark: `ragbed run mined DIR`.

    Candidates that may answer a question are left out; decisions.jsonl has each with its reason.
    """
    from experiments.negatives import mine
    from experiments.terminal.display import Bars, print_json
    from experiments.terminal.negatives import show_mining

    given: dict[str, Any] = {
        "per_question": per_question, "fill": fill, "index": index, "keep": keep, "depth": depth, "seed": seed,
        "reranker": None if reranker == "none" else reranker}
    given |= {name: value for name, value in (("miners", miner), ("embedder", embedder)) if value}
    settings = _settings(given)
    selection = _benchmark(benchmark, path, set or [], {"limit": limit, "sample": sample, "seed": seed})
    with Bars() as bars:
        manifest = mine(selection, settings, out, bars)
    if json:
        print_json({"out": str(out), **manifest.counts, "shortfalls": manifest.short})
    else:
        show_mining(manifest, out)


def _settings(given: dict[str, Any]) -> MiningSettings:
    from pydantic import ValidationError

    from documents.errors import SettingsError
    from experiments.negatives import MiningSettings
    from experiments.settings.file import explain

    try:
        return MiningSettings.model_validate(given)
    except ValidationError as error:
        raise SettingsError(explain(error.errors(include_url=False)[0], MiningSettings)) from error


def _benchmark(kind: str, path: str | None, texts: list[str], part: dict[str, int | None]) -> Selection:
    """The benchmark's settings, as `ragbed run` reads them."""
    from documents.errors import SettingsError
    from experiments.benchmarks import BENCHMARKS
    from experiments.settings.targets import Part, runs_of_target

    if kind not in BENCHMARKS:
        raise SettingsError(f"no benchmark is called {kind!r}; there are: {', '.join(BENCHMARKS)}")
    options = {"set": [f"benchmark.{text}" for text in texts]}
    sampled = part["sample"] is not None
    chosen = Part(part["limit"], part["sample"], part["seed"] if sampled else None)
    return runs_of_target(kind, path, options, chosen)[0].benchmark
