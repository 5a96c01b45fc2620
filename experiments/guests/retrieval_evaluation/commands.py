"""The command `ragbed evaluate-retrieval`."""
from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragbed.experiments.commands.help import MORE
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
    "A benchmark with gold evidence, a file of questions, or a run's YAML file."))]
Files = Annotated[str | None, typer.Argument(metavar="PATH", help=(
    "Its folder or file, or hub:OWNER/NAME; for a file of questions, the documents."))]
Retrievers = Annotated[Texts, typer.Option("--retriever", metavar="NAME", help=(
    "A name or YAML. Default: bm25, dense, fused. Repeatable."))]
Chunkers = Annotated[Texts, typer.Option("--chunker", metavar="NAME", help=(
    "Chunk the documents again: a name or YAML. Repeatable."))]
Embedders = Annotated[Texts, typer.Option("--embedder", metavar="NAME", help=(
    "Embedding model: a name or YAML. Repeatable."))]
Others = Annotated[Texts, typer.Option("--set", metavar="KEY=VALUE", help=(
    "Any other setting, as in benchmark.split=test. Repeatable."))]
Foreign = Annotated[list[Path] | None, typer.Option("--run", metavar="FILE", help=(
    "Another program's TREC run to score and compare. Repeatable."))]
Qrels = Annotated[Path | None, typer.Option("--qrels", metavar="FILE", help=(
    "Relevance judgements for --run; nothing is searched."))]


def evaluate_retrieval(
        benchmark: Target = None, path: Files = None, retriever: Retrievers = None, chunker: Chunkers = None,
        embedder: Embedders = None,
        k: Annotated[int | None, typer.Option("-k", min=1, max=1000, help=f"Hits per question. Default: {K}.")] = None,
        split: Annotated[str | None, typer.Option("--split", help="Split of the benchmark, such as test.")] = None,
        limit: Limit = None, sample: Sample = None,
        seed: Annotated[int | None, typer.Option("--seed", rich_help_panel=MORE, help="Seed of --sample.")] = None,
        runs: Annotated[Path | None, typer.Option("--runs", metavar="DIR", help=(
            "Folder for TREC run files, one per row of the table, and qrels.txt."))] = None,
        run: Foreign = None, qrels: Qrels = None, set: Others = None,
        name: Annotated[str | None, typer.Option("--name", rich_help_panel=MORE, help=(
            "Name of the run. Default: FOLDER-retrieval-HASH."))] = None,
        out: Annotated[Path | None, typer.Option("--out", rich_help_panel=MORE, help=(
            "Folder of runs. Default: runs."))] = None,
        shard: ShardName = None, launcher: Launcher = None, fresh: Fresh = False, json: AsJson = False) -> None:
    """Evaluate retrievers alone, without a model.

    Tries every combination of chunkers, embedders and retrievers. The result is a run with the reasoning strategy
    search_only. The same command continues it; compare, report, show, effects, verify and export also work on it.
    """
    from ragbed.experiments.commands.options import find_launcher
    from ragbed.experiments.guests.retrieval_evaluation.evaluation import (
        evaluate_retrieval,
        read_rankings,
        score_runs,
        show_evaluation,
    )
    from ragbed.experiments.settings.targets import Part

    part = part_of(shard, *["--launcher"] * bool(launcher), *["--qrels"] * (qrels is not None))
    if qrels is not None:
        if benchmark is not None or not run:
            refuse("--qrels scores TREC runs without searching; give --run FILE, and no BENCHMARK")
        score_runs(qrels, run, json)
        return
    if benchmark is None:
        refuse("name a benchmark and its files, as in `ragbed evaluate-retrieval beir FOLDER`, or score TREC runs with "
               "--qrels and --run")
    given: dict[str, Any] = {"retriever": retriever, "chunkers": chunker, "embedders": embedder, "set": set,
                             "name": name, "out": out}
    settings = _settings(benchmark, path, {key: value for key, value in given.items() if value}, k, split,
                         Part(limit, sample, seed))
    if launcher is None:
        evaluate_retrieval(settings, run or (), runs, fresh, json, part)
        return
    rankings, place = read_rankings(run or ()), settings.folder
    guest = find_launcher(launcher)
    shards = guest.launch(sys.argv[1:], launcher, [place], [settings])
    with guest.merged_run([one.folder(place) for one in shards], place, fresh) as folder:
        show_evaluation(folder, rankings, runs, json)


def _settings(target: str, path: str | None, given: dict[str, Any], k: int | None, split: str | None,
              part: Part) -> RunSettings:
    from ragbed.documents.paths import expand_path
    from ragbed.experiments.benchmarks import BENCHMARKS
    from ragbed.experiments.settings.targets import holds_questions, resolve_target

    file, own = expand_path(target), holds_questions(target)
    if own or (target in BENCHMARKS and not file.is_file()):
        k = K if k is None else k
        name = _name(file.stem if own else path or target, part, [given, k, split, *([target, path] if own else [])])
        given = {"name": name, **given, "reasoning": ["search_only"],
                 "retriever": [_retriever(text, k) for text in given.get("retriever") or DEFAULTS],
                 **{key: [_value(text, key) for text in given[key]] for key in ("chunkers", "embedders")
                    if key in given},
                 "set": [*given.get("set", ()), *([f"benchmark.split={split}"] if split else ())]}
    elif file.is_file() and (split or k is not None):
        refuse(f"{'--split' if split else '-k'} needs the name of a benchmark; set it in {target} instead")
    first, *others = resolve_target(target, path, given, part)
    if others:
        refuse(f"{target} has {len(others) + 1} runs; give one benchmark")
    if not first.only_searches:
        refuse(f"{target} asks a model; set reasoning: search_only, or use `ragbed run`")
    return first


def _name(path: str, part: Part, tried: list[Any]) -> str:
    """Return a name that depends only on files and settings, so that the same command continues the run."""
    import re

    from ragbed.documents.types import digest

    place = re.sub(r"[^A-Za-z0-9._-]+", "-", re.split(r"[/\\]", path.rstrip("/\\"))[-1]).strip("-.") or "questions"
    return f"{place[:40]}-retrieval{part.name}-{digest(path, repr(tried))[:6]}"


def _retriever(text: str, k: int) -> Any:
    value = _value(text, "retriever")
    value = {"kind": value} if isinstance(value, str) else value
    return {"k": k, "over": "all", **value} if isinstance(value, dict) else value


def _value(text: str, key: str) -> Any:
    from ragbed.experiments.settings.texts import parse_yaml

    return parse_yaml(text, f"--{key.removesuffix('s')} {text!r}")
