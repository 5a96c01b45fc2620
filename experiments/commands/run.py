"""`ragbed run`."""
from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ragbed.experiments.commands.options import AsJson, Fresh, Launcher, ShardName, Texts, part_of, refuse

if TYPE_CHECKING:
    from ragbed.documents.shards import Shard
    from ragbed.experiments.running.cassette import Replay
    from ragbed.experiments.settings import RunSettings
    from ragbed.experiments.settings.targets import Part

_PART = "Which questions"


JournalMode = Literal["record", "live", "replay"]


def _by_name(option: str, help: str, **more: Any) -> Any:
    """An option of a benchmark by its name; a file of settings says it itself."""
    return typer.Option(option, help=help, rich_help_panel="Of a benchmark by its name", **more)


Target = Annotated[str | None, typer.Argument(metavar="TARGET", help=(
    "A YAML file of settings (see `ragbed schema`), or a benchmark's name (see `ragbed list benchmarks`), which is run "
    "as its paper ran it."))]
Files = Annotated[str | None, typer.Argument(metavar="PATH", help=(
    "The benchmark's folder or file, or hub:OWNER/NAME."))]
Models = Annotated[Texts, _by_name("--model", "As for `ragbed ask`; may be given again.")]
Reasonings = Annotated[Texts, _by_name("--reasoning", (
    "A name of `ragbed list strategies`, FILE.py:FUNCTION, or settings in YAML; may be given again; `all` is the five "
    "of the CReSt paper."))]
Retrievals = Annotated[Texts, _by_name("--retrieval", "May be given again.")]
Conditions = Annotated[Texts, _by_name("--condition", (
    "closed-book, given, gold, retrieved or full; may be given again."))]
Perturbations = Annotated[Texts, _by_name("--perturbation", "See `ragbed list perturbations`; may be given again.")]
RuleNames = Annotated[Texts, _by_name("--rules", "See `ragbed list rules`; may be given again.")]
JudgeName = Annotated[str | None, _by_name("--judge", "`lexical`, or a model.")]
ScoringName = Annotated[str | None, _by_name("--scoring", "corrected or as-published.")]
RunName = Annotated[str | None, _by_name("--name", "Of the run; by default the benchmark's, and the part.")]
Others = Annotated[Texts, _by_name("--set", (
    "Any other setting, as in --set limits.max_tokens=256 or --set benchmark.units=sentences; may be given again."),
    metavar="KEY=VALUE")]
SkipBad = Annotated[bool, _by_name("--skip-bad", (
    "Leave out records of the benchmark's files that do not fit, and name them in the run's notes."))]
Out = Annotated[Path | None, _by_name("--out", "Folder of runs; by default `runs`.")]
Limit = Annotated[int | None, typer.Option(min=1, rich_help_panel=_PART, help=(
    "Only the first so many questions, as a run of its own: NAME-limit-N."))]
Sample = Annotated[int | None, typer.Option(min=1, rich_help_panel=_PART, help=(
    "So many questions, drawn by --seed, as a run of its own: NAME-sample-N."))]
Seed = Annotated[int | None, typer.Option(rich_help_panel=_PART, help=(
    "Of --sample, and of what else a benchmark draws."))]
Filter = Annotated[Texts, typer.Option("--filter", metavar="TAG=VALUE", rich_help_panel=_PART, help=(
    "Only questions with this tag, as a run of its own; given again, with all of them."))]
Race = Annotated[bool, typer.Option("--race", rich_help_panel=_PART, help=(
    "Ask in a random order, and a cell only until it is worse than another or no difference is to be expected, as a "
    "run of its own: NAME-race."))]
Probe = Annotated[Literal["citations"] | None, typer.Option("--probe", help=(
    "citations: ask each answer again without each passage that it was shown, and over the cited ones alone, to tell "
    "which citations carry weight; also of a finished run."))]
Budgets = Annotated[Texts, typer.Option("--budget", metavar="PART=AMOUNT", help=(
    "What may be spent before the run stops, resumably: dollars=5 or tokens=200000, of all starts together, or "
    "seconds=1800, of this start; `none` lifts one; may be given again. In the place of what the settings say."))]


def run(target: Target = None, path: Files = None, model: Models = None, reasoning: Reasonings = None,
        retrieval: Retrievals = None, condition: Conditions = None, rules: RuleNames = None,
        perturbation: Perturbations = None, judge: JudgeName = None, scoring: ScoringName = None, name: RunName = None,
        set: Others = None, out: Out = None, skip_bad: SkipBad = False, limit: Limit = None, sample: Sample = None,
        seed: Seed = None, filter: Filter = None, race: Race = False, budget: Budgets = None, probe: Probe = None,
        shard: ShardName = None, launcher: Launcher = None, fresh: Fresh = False,
        retry: Annotated[bool, typer.Option("--retry", help="Ask again what failed; the other calls come from the "
                                                            "journal.")] = False,
        journal: Annotated[JournalMode, typer.Option(help="record: calls made before are not made again; live: every "
                                                          "call is made, and the records are made anew; replay: no "
                                                          "call is made, the records are made anew from the "
                                                          "journal.")] = "record",
        replay: Annotated[Path | None, typer.Option("--replay", metavar="FILE", help=(
            "Make the run from a cassette (see `ragbed cassette export`), without a model, an index or a network. "
            "Without TARGET the settings are the cassette's."))] = None,
        dry: Annotated[bool, typer.Option("--dry-run", help="Only say what would be asked: cells, calls, tokens, "
                                                            "price, and the smallest difference that so many questions "
                                                            "can detect.")] = False,
        json: AsJson = False) -> None:
    """Carry out an experiment, or continue it where it stopped.

    Exit status 1: every question ended without a reply (an error, a timeout, a limit, a prompt that is too long), or a
    replay missed a call or has other results than its cassette; 2: something that you can mend, or the budget is spent.
    """
    from ragbed.experiments.running.cassette import Replay
    from ragbed.experiments.settings.spending import changed
    from ragbed.experiments.settings.targets import Part

    if replay is not None and (retry or journal != "record"):
        refuse("--replay makes no call, whatever the journal holds; leave --journal and --retry out")
    if fresh and journal == "replay":
        refuse("--fresh removes the journal that --journal replay reads; give one of the two")
    part = part_of(shard, *["--launcher"] * bool(launcher), *["--dry-run"] * dry)
    options = given_options(set, skip_bad, models=model, reasoning=reasoning, retrieval=retrieval, conditions=condition,
                     rules=rules, perturbations=perturbation, judge=judge, scoring=scoring, name=name, out=out)
    cassette = None if replay is None else Replay.open(replay)
    runs = _runs(target, path, options, Part(limit, sample, seed, tuple(filter or ()), race), cassette)
    runs = [one.model_copy(update={"budget": changed(one.budget, budget or ()), "probe": probe or one.probe})
            for one in (runs if cassette else _with_models(runs, fresh, journal != "replay", part))]
    if dry:
        _plan(runs, json)
    else:
        carry_out_runs(runs, "replay" if cassette else journal, retry, fresh, json, cassette, part, launcher)


def given_options(set: Texts, skip_bad: bool, **options: Any) -> dict[str, Any]:
    """Return the options that are not None, with those of --set and --skip-bad."""
    options["set"] = [*(set or ()), *["benchmark.skip_bad=true"] * skip_bad] or None
    return {key: value for key, value in options.items() if value is not None}


def _runs(target: str | None, path: str | None, options: dict[str, Any], part: Part,
          cassette: Replay | None) -> list[RunSettings]:
    from ragbed.experiments.running.cassette import settings_of_cassette
    from ragbed.experiments.settings.targets import runs_of_target

    if target is None and cassette is not None:
        return [settings_of_cassette(cassette, options, part)]
    runs = runs_of_target(target or "", path, options, part)
    if cassette is not None and len(runs) > 1:
        refuse(f"{target} is {len(runs)} runs, and a cassette is of one; give one benchmark")
    return runs


def _with_models(runs: Sequence[RunSettings], fresh: bool, look: bool, shard: Shard | None) -> list[RunSettings]:
    """Return the runs, each with models: one that names none has those of its folder or its shard's, where it was
    begun, or else the one that is found for all of them, where to `look` for one is wanted."""
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
               cassette: Replay | None, shard: Shard | None = None, launcher: str | None = None) -> None:
    """Carry out one run or several, and print their results."""
    from ragbed.documents.errors import BenchmarkError
    from ragbed.experiments.benchmarks.hub import only_cached
    from ragbed.experiments.commands.shards import find_launcher
    from ragbed.experiments.terminal.display import print_json
    from ragbed.experiments.terminal.run import Put, carry_out, in_turn, show_merged

    launched = find_launcher(launcher) if launcher else None
    shards = launched.launch(sys.argv[1:], launcher or "", [one.folder for one in runs],
                             runs if journal != "replay" else ()) if launched else []

    def carry(settings: RunSettings, put: Put) -> None:
        if launched:
            place = settings.folder
            with launched.merged_run([one.folder(place) for one in shards], place, fresh) as folder:
                show_merged(folder, len(shards), put if json else None)
            return
        try:
            with only_cached() if cassette else nullcontext():
                carry_out(settings, journal, again=retry or journal != "record", fresh=fresh,
                          json=json, retry=f"`{_again(sys.argv[1:], settings, cassette)}`", put=put, replay=cassette,
                          shard=shard)
        except BenchmarkError as error:
            raise (error if cassette is None else cassette.explained(error, settings)) from error

    if len(runs) == 1:
        carry(runs[0], print_json)
    else:
        in_turn(runs, carry, json, fresh, replay=journal == "replay", shard=shard)


def _plan(runs: Sequence[RunSettings], json: bool) -> None:
    from ragbed.experiments.running.dry_run import plan_run
    from ragbed.experiments.terminal.display import print_json
    from ragbed.experiments.terminal.dry_run import show_plan, show_total

    plans = [plan_run(settings) for settings in runs]
    if json:
        print_json(plans if len(plans) > 1 else plans[0])
        return
    for plan in plans:
        show_plan(plan)
    if len(plans) > 1:
        show_total(plans)


def _again(words: Sequence[str], settings: RunSettings, cassette: Replay | None) -> str:
    """The command that was given, as it is to be given to ask again what failed; of a cassette, with a model."""
    alone, valued = ("--fresh", "--retry", "--json"), ("--journal", "--replay")
    kept = [word for place, word in enumerate(words) if word not in (*alone, *valued)
            and not word.startswith(tuple(f"{option}=" for option in valued))
            and (place == 0 or words[place - 1] not in valued)]
    if kept[0] == "import" or (cassette is not None and cassette.same_settings(settings)):
        kept = ["run", str(settings.folder / "config.yaml")]
    return join(["ragbed", *kept, "--retry"])
