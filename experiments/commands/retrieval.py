"""Commands of the retrieval laboratory."""
from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragbed.experiments.commands.options import (
    AsJson,
    Fresh,
    Launcher,
    Limit,
    Sample,
    ShardName,
    Texts,
    part_of,
    refuse,
)

if TYPE_CHECKING:
    from ragbed.experiments.settings import RunSettings
    from ragbed.experiments.settings.targets import Part

DEFAULTS = ("bm25", "dense", "fused")
K = 100

Target = Annotated[str | None, typer.Argument(metavar="BENCHMARK", help=(
    "Any that says what is gold, see `ragbed list benchmarks`; or a YAML file of a run with reasoning: search_only."))]
Files = Annotated[str | None, typer.Argument(metavar="PATH", help="Its folder or file, or hub:OWNER/NAME.")]
Retrievers = Annotated[Texts, typer.Option("--retriever", help=(
    "A kind, see `ragbed list retrievers`, or settings, as in '{kind: reranked, of: fused}'; may be given again. By "
    "default bm25, dense and fused."))]
Chunkers = Annotated[Texts, typer.Option("--chunker", help=(
    "Cut the documents anew: a kind, or settings, as in '{kind: fixed, size: 800}'; given again, each is tried."))]
Embedders = Annotated[Texts, typer.Option("--embedder", help="A model, or settings; given again, each is tried.")]
Others = Annotated[Texts, typer.Option("--set", metavar="KEY=VALUE", help=(
    "Any other setting, as in --set benchmark.chunker=sentences; may be given again."))]
Foreign = Annotated[list[Path] | None, typer.Option("--run", metavar="FILE", help=(
    "Another program's TREC run, `.gz` or plain, to be scored and tested beside; may be given again."))]
Qrels = Annotated[Path | None, typer.Option("--qrels", metavar="FILE", help=(
    "Judgements to score --run by, in the place of a benchmark: nothing is searched then."))]


def evaluate_retrieval(
        benchmark: Target = None, path: Files = None, retriever: Retrievers = None, chunker: Chunkers = None,
        embedder: Embedders = None,
        k: Annotated[int | None, typer.Option("-k", min=1, max=1000, help=f"How many are found for each question; by "
                                              f"default {K}.")] = None,
        split: Annotated[str | None, typer.Option(help="Of a benchmark that has several, such as test.")] = None,
        limit: Limit = None, sample: Sample = None,
        seed: Annotated[int | None, typer.Option(help="Of --sample.")] = None,
        runs: Annotated[Path | None, typer.Option(metavar="DIR", help="Write a TREC run for each row.")] = None,
        run: Foreign = None, qrels: Qrels = None, set: Others = None,
        name: Annotated[str | None, typer.Option(help=(
            "Of the run; by default FOLDER-retrieval-HASH of what is tried."))] = None,
        out: Annotated[Path | None, typer.Option(help="Folder of runs; by default `runs`.")] = None,
        shard: ShardName = None, launcher: Launcher = None, fresh: Fresh = False, json: AsJson = False) -> None:
    """Evaluate retrievers alone, without a model.

    It is a run with the reasoning strategy search_only: the same command continues it, and `ragbed compare`, `report`,
    `show`, `effects`, `verify` and `export` read it. Chunkers, embedders and retrievers are tried in every combination.
    """
    from ragbed.experiments.commands.shards import find_launcher
    from ragbed.experiments.settings.targets import Part
    from ragbed.experiments.terminal.evaluate_retrieval import (
        evaluate_retrieval,
        rankings_in,
        score_runs,
        show_evaluation,
    )

    part = part_of(shard, *["--launcher"] * bool(launcher), *["--qrels"] * (qrels is not None))
    if qrels is not None:
        if benchmark is not None or not run:
            refuse("--qrels scores TREC runs without searching; give --run FILE, and no BENCHMARK")
        score_runs(qrels, run, json)
        return
    if benchmark is None:
        refuse("name a benchmark and its files, as in `ragbed evaluate-retrieval beir FOLDER`, or score "
                            "TREC runs with --qrels and --run")
    given: dict[str, Any] = {"retriever": retriever, "chunkers": chunker, "embedders": embedder, "set": set,
                             "name": name, "out": out}
    settings = _settings(benchmark, path, {key: value for key, value in given.items() if value}, k, split,
                         Part(limit, sample, seed))
    if launcher is None:
        evaluate_retrieval(settings, run or (), runs, fresh, json, part)
        return
    rankings, place = rankings_in(run or ()), settings.folder
    guest = find_launcher(launcher)
    shards = guest.launch(sys.argv[1:], launcher, [place], [settings])
    with guest.merged_run([one.folder(place) for one in shards], place, fresh) as folder:
        show_evaluation(folder, rankings, runs, json)


def _settings(target: str, path: str | None, given: dict[str, Any], k: int | None, split: str | None,
              part: Part) -> RunSettings:
    from ragbed.documents.paths import expand_path
    from ragbed.experiments.benchmarks import BENCHMARKS
    from ragbed.experiments.settings.targets import resolve_target

    if target in BENCHMARKS and not expand_path(target).is_file():
        k = K if k is None else k
        given = {"name": _name(path or target, part, [given, k, split]), **given, "reasoning": ["search_only"],
                 "retriever": [_retriever(text, k) for text in given.get("retriever") or DEFAULTS],
                 **{key: [_value(text, key) for text in given[key]] for key in ("chunkers", "embedders")
                    if key in given},
                 "set": [*given.get("set", ()), *([f"benchmark.split={split}"] if split else ())]}
    elif split or k is not None:
        refuse(f"{'--split' if split else '-k'} goes with a benchmark's name; {target} says itself what is run")
    first, *others = resolve_target(target, path, given, part)
    if others:
        refuse(f"{target} is {len(others) + 1} runs; give one benchmark")
    if not first.only_searches:
        refuse(f"{target} asks a model; set reasoning: search_only, or use `ragbed run`")
    return first


def _name(path: str, part: Part, tried: list[Any]) -> str:
    """Name the run: equally where the same is tried of the same files, so that the same command continues it."""
    import re

    from ragbed.documents.types import digest

    place = re.sub(r"[^A-Za-z0-9._-]+", "-", re.split(r"[/\\]", path.rstrip("/\\"))[-1]).strip("-.") or "questions"
    return f"{place[:40]}-retrieval{part.name}-{digest(path, repr(tried))[:6]}"


def _retriever(text: str, k: int) -> Any:
    value = _value(text, "retriever")
    value = {"kind": value} if isinstance(value, str) else value
    return {"k": k, "over": "all", **value} if isinstance(value, dict) else value


def _value(text: str, key: str) -> Any:
    from ragbed.experiments.settings.file import parse_yaml

    return parse_yaml(text, f"--{key.removesuffix('s')} {text!r}")
