"""`ragbed run`."""
from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from shlex import join
from shutil import rmtree
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ragbed.experiments.commands.help import MORE
from ragbed.experiments.commands.options import AsJson, Fresh, Launcher, ShardName, Texts, part_of, refuse
from ragbed.guests import entries, load

if TYPE_CHECKING:
    from ragbed.documents.shards import Shard
    from ragbed.experiments.running.replay import Replay
    from ragbed.experiments.settings import RunSettings
    from ragbed.experiments.settings.targets import Part

JournalMode = Literal["record", "live", "replay"]


def _more(option: str, help: str, **others: Any) -> Any:
    return typer.Option(option, help=help, rich_help_panel=MORE, **others)


Target = Annotated[str | None, typer.Argument(metavar="TARGET", help=(
    "A YAML settings file, a benchmark's name, or a file of questions."))]
Files = Annotated[str | None, typer.Argument(metavar="PATH", help=(
    "Files of the benchmark, or hub:OWNER/NAME; documents of questions."))]
Models = Annotated[Texts, typer.Option("--model", metavar="NAME", help="Model; see `ragbed ask --help`.")]
Reasonings = Annotated[Texts, typer.Option("--reasoning", metavar="NAME", help=(
    "Name from `ragbed list strategies`, or FILE.py:FUNCTION."))]
Retrievals = Annotated[Texts, typer.Option("--retrieval", metavar="NAME", help="Name from `ragbed list strategies`.")]
Conditions = Annotated[Texts, typer.Option("--condition", metavar="NAME", help=(
    "Where passages come from: `ragbed list conditions`."))]
Perturbations = Annotated[Texts, _more("--perturbation", metavar="NAME", help=(
    "Changes to the passages: `ragbed list perturbations`."))]
RuleNames = Annotated[Texts, _more("--rules", "Rules in the prompt: `ragbed list rules`.", metavar="NAME")]
JudgeName = Annotated[str | None, typer.Option("--judge", metavar="NAME", help=(
    "Judge of answers: `lexical` (compares words) or a model."))]
ScoringName = Annotated[str | None, _more("--scoring", "Scoring rules: corrected or as-published.", metavar="NAME")]
RunName = Annotated[str | None, _more("--name", "Name of the run. Default: the benchmark's name.", metavar="NAME")]
Others = Annotated[Texts, typer.Option("--set", metavar="KEY=VALUE", help=(
    "Any other setting, e.g. limits.max_tokens=256."))]
SkipBad = Annotated[bool, _more("--skip-bad", "Skip malformed records of the benchmark, with a note.")]
Out = Annotated[Path | None, _more("--out", "Folder of runs. Default: `runs`.", metavar="PATH")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help=(
    "Only the first N questions; the run is called NAME-limit-N."))]
Sample = Annotated[int | None, _more("--sample", "N random questions, as the run NAME-sample-N.", min=1)]
Seed = Annotated[int | None, _more("--seed", "Random seed of --sample and all other random choices.")]
Filter = Annotated[Texts, typer.Option("--only", metavar="TAG=VALUE", help=(
    "Only questions with this tag, or id=ID, as another run."))]
Race = Annotated[bool, _more("--race", "Stop a cell early if it is clearly worse or a tie is likely.")]
Probe = Annotated[Literal["citations"] | None, _more("--probe", (
    "Ask again without each passage, to test which citations matter."))]
Budgets = Annotated[Texts, typer.Option("--budget", metavar="KIND=N", help=(
    "Stop at dollars=5, tokens=200000 or seconds=1800."))]
_ONE_PROCESS = "local:1"
_PER_PROCESS = 512  # questions in flight that one processor core can serve
Full = Annotated[bool, typer.Option("--full", help="Also print all metrics, causes, breakdowns and notes.")]


def run(target: Target = None, path: Files = None, model: Models = None, reasoning: Reasonings = None,
        retrieval: Retrievals = None, condition: Conditions = None, rules: RuleNames = None,
        perturbation: Perturbations = None, judge: JudgeName = None, scoring: ScoringName = None, name: RunName = None,
        set: Others = None, out: Out = None, skip_bad: SkipBad = False, limit: Limit = None, sample: Sample = None,
        seed: Seed = None, filter: Filter = None, race: Race = False, budget: Budgets = None, probe: Probe = None,
        shard: ShardName = None, launcher: Launcher = None, fresh: Fresh = False,
        retry: Annotated[bool, typer.Option("--retry", help="Ask failed questions again; keep all other answers.")
                         ] = False,
        journal: Annotated[JournalMode, _more("--journal", "Reuse recorded calls, ask again, or only replay.")
                           ] = "record",
        replay: Annotated[Path | None, _more("--replay", "Use the calls in this cassette; needs no model and no index.",
                                             metavar="FILE")] = None,
        dry: Annotated[bool, typer.Option("--dry-run", help="Estimate calls, tokens, price and detectable difference.")
                       ] = False,
        full: Full = False, json: AsJson = False) -> None:
    """Run an experiment, or continue it where it stopped.

    Give a settings file, or the name of a benchmark. A benchmark runs with the settings of its paper, and each option
    replaces one of them. `ragbed schema` prints all settings.

    Exit status 1: no question got a reply, or a replay differs from its recording. Exit status 2: you can fix
    the error, or the budget is spent.
    """
    from ragbed.documents.shards import SUFFIX
    from ragbed.experiments.running.replay import Replay
    from ragbed.experiments.settings.spending import update_budget
    from ragbed.experiments.settings.targets import Part

    if replay is not None and (retry or journal != "record"):
        refuse("--replay cannot be combined with --journal or --retry: it sends no calls")
    if fresh and journal == "replay":
        refuse("--fresh deletes the journal that --journal replay reads; give only one of the two")
    part = part_of(shard, *["--launcher"] * bool(launcher), *["--dry-run"] * dry)
    options = given_options(set, skip_bad, models=model, reasoning=reasoning, retrieval=retrieval, conditions=condition,
                     rules=rules, perturbations=perturbation, judge=judge, scoring=scoring, name=name, out=out)
    cassette = None if replay is None else Replay.open(replay)
    runs = _runs(target, path, options, Part(limit, sample, seed, tuple(filter or ()), race), cassette)
    runs = [one.model_copy(update={"budget": update_budget(one.budget, budget or ()), "probe": probe or one.probe})
            for one in (runs if cassette else _with_models(runs, fresh, journal != "replay", part))]
    if dry:
        load(entries("estimate")["run"])(runs, json)
        return
    several = None if part or launcher or cassette or retry or journal != "record" else _processes(runs, fresh)
    where = several if launcher in (None, _ONE_PROCESS) else launcher
    carry_out_runs(runs, "replay" if cassette else journal, retry, fresh, json, cassette, part, where, full)
    if several:
        rmtree(runs[0].folder.with_name(f"{runs[0].folder.name}{SUFFIX}"))


def _processes(runs: Sequence[RunSettings], fresh: bool) -> str | None:
    """Return the launcher of a new run that is to be divided, because it has more questions in flight than one
    processor core can serve; None for other runs, such as those with a budget, which shards would have to share. A
    divided run that was interrupted counts as new."""
    from ragbed.documents.shards import parts
    from ragbed.experiments.terminal.display import note

    run, cores = runs[0], len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    in_flight = run.call_settings.calls.concurrency
    count = min(cores, in_flight // _PER_PROCESS)
    few = 0 < (run.benchmark.limit or run.benchmark.sample or 0) < _PER_PROCESS
    whole = run.race or any(run.budget.model_dump().values())
    if len(runs) > 1 or count < 2 or few or whole or "local" not in entries("launcher"):
        return None
    undivided = (run.folder / "records.sqlite").exists() and not fresh  # a merge would replace its answers
    if undivided or any(not part.name.endswith(f"-of-{count}") for part in parts(run.folder)):
        return None
    note(f"{count} processes ask the questions, because one core would limit {in_flight:,} in flight; "
         f"`--launcher {_ONE_PROCESS}` keeps it to one process")
    return f"local:{count}"


def given_options(set: Texts, skip_bad: bool, **options: Any) -> dict[str, Any]:
    """Return the options that are not None, with those of --set and --skip-bad."""
    options["set"] = [*(set or ()), *["benchmark.skip_bad=true"] * skip_bad] or None
    return {key: value for key, value in options.items() if value is not None}


def _runs(target: str | None, path: str | None, options: dict[str, Any], part: Part,
          cassette: Replay | None) -> list[RunSettings]:
    from ragbed.experiments.running.replay import settings_of_cassette
    from ragbed.experiments.settings.targets import resolve_target

    if target is None and cassette is not None:
        return [settings_of_cassette(cassette, options, part)]
    runs = resolve_target(target or "", path, options, part)
    if cassette is not None and len(runs) > 1:
        refuse(f"{target} is {len(runs)} runs, but a cassette holds one; give one benchmark")
    return runs


def _with_models(runs: Sequence[RunSettings], fresh: bool, look: bool, shard: Shard | None) -> list[RunSettings]:
    """Return the runs, each with models. A run without models gets those of its folder or shard, if it has been
    started. Otherwise, with `look`, all such runs get the model that is found."""
    from functools import cache

    from ragbed.agents.discovery import default_model
    from ragbed.experiments.settings.file import read_settings
    from ragbed.experiments.terminal.display import note

    found = cache(lambda: [default_model(note)])

    def models(run: RunSettings) -> list[str]:
        begun = (shard.folder(run.folder) if shard else run.folder) / "config.yaml"
        if begun.is_file() and not fresh:
            return read_settings(begun).models
        return found() if look else run.models

    return [one if "models" in one.model_fields_set else one.model_copy(update={"models": models(one)})
            for one in runs]


def carry_out_runs(runs: Sequence[RunSettings], journal: JournalMode, retry: bool, fresh: bool, json: bool,
                   cassette: Replay | None, shard: Shard | None = None, launcher: str | None = None,
                   full: bool = False) -> None:
    """Carry out one run or several, and print their results."""
    from ragbed.documents.errors import BenchmarkError
    from ragbed.experiments.benchmarks.hub import only_cached
    from ragbed.experiments.commands.options import find_launcher
    from ragbed.experiments.terminal.display import print_json
    from ragbed.experiments.terminal.execution import Put, carry_out, in_turn, show_merged

    launched = find_launcher(launcher) if launcher else None
    shards = launched.launch(sys.argv[1:], launcher or "", [one.folder for one in runs],
                             runs if journal != "replay" else ()) if launched else []

    def carry(settings: RunSettings, put: Put) -> None:
        if launched:
            place = settings.folder
            with launched.merged_run([one.folder(place) for one in shards], place, True) as folder:
                show_merged(folder, len(shards), put if json else None)
            return
        try:
            with only_cached() if cassette else nullcontext():
                carry_out(settings, journal, again=retry or journal != "record", fresh=fresh,
                          json=json, retry=f"`{_again(sys.argv[1:], settings, cassette)}`", put=put, replay=cassette,
                          shard=shard, full=full)
        except BenchmarkError as error:
            raise (error if cassette is None else cassette.explained(error, settings)) from error

    if len(runs) == 1:
        carry(runs[0], print_json)
    else:
        in_turn(runs, carry, json, fresh, replay=journal == "replay", shard=shard)


def _again(words: Sequence[str], settings: RunSettings, cassette: Replay | None) -> str:
    """Return the command line that asks failed questions again. For a cassette, it includes a model."""
    alone, valued = ("--fresh", "--retry", "--json"), ("--journal", "--replay")
    kept = [word for place, word in enumerate(words) if word not in (*alone, *valued)
            and not word.startswith(tuple(f"{option}=" for option in valued))
            and (place == 0 or words[place - 1] not in valued)]
    if kept[0] == "import" or (cassette is not None and cassette.same_settings(settings)):
        kept = ["run", str(settings.folder / "config.yaml")]
    return join(["ragbed", *kept, "--retry"])
