"""Guests: optional parts of ragbed that the core finds by name and never imports.

A guest may import the core. It describes what it adds in one `Guest`, as "module:attribute" strings. Each is imported
on first use:

    GUEST = Guest("word_count", {"metric": {"word_count": "word_count:METRICS"},
                                 "command": {"word-count": "word_count:show"}})

`BUILT_IN` lists ragbed's own guests. An installed distribution registers its guest by an entry point:

    [project.entry-points."ragbed.guests"]
    word_count = "word_count:GUEST"

A guest fills slots. Each name in a slot points to an attribute of this type:

    command    a Typer function, such as `serve`; the name may have two words, as in "check strategy"
    opener     a function from a folder to the folder of a run; the name is a file in it, as in "traffic.sqlite"
    comparison a function from a folder and a baseline or None to JSON and views; named like an opener
    analysis   a function from `AnalysisInput` to a list of `View`, for the report, the terminal and JSON
    finding    a function from `AnalysisInput` to JSON or None; analyses read the result as `run.found[NAME]`
    setting    a pydantic model, or a function that returns the value or raises ValueError; the name is a settings key
    benchmark  a subclass of `Selection`; the name is its `kind`
    retriever  a subclass of `RetrieverKind`; the name is its `kind`
    vectors    a settings class for the vectors of an index; the name is its `kind`
    pipeline   a subclass of `PipelineSettings`; the name is its `kind`
    answers    an `AnswerFormat`, which reads and writes another tool's answer files
    labels     a function from a finished run and label files to a list of `View`, for `ragbed report --labels`
    metric     a `MetricGroup`; it is scored if a benchmark's scheme names it, or always if it has `material`
    scheduler  a `Schedule` class (ragbed.experiments.running.hooks); the setting `race` uses the one named "race"
    follow_up  a `FollowUp` class (ragbed.experiments.running.hooks); the setting `probe` gives its name
    parser     a function from bytes and a source name to HTML or `Parsed`; the name is a suffix, as in ".epub"
    provider   a `ModelProvider` (ragbed.agents.models); the name is a model's name, or a prefix such as "gguf:"
    launcher   a `ShardLauncher` (ragbed.experiments.commands.shards); the name is the NAME in `--launcher NAME:...`
    tool       a function with annotated arguments that returns text, for the server's MCP endpoint

If an installed guest cannot be used, it is left out, and the logger `ragbed.guests` says why in one line on stderr.
Everything else still works.
"""
from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from os.path import isfile  # unlike `Path.is_file`, it accepts names that are too long for a file
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

Slot = Literal["command", "opener", "comparison", "analysis", "finding", "setting", "benchmark", "retriever", "vectors",
               "pipeline", "answers", "metric", "parser", "tool", "scheduler", "follow_up", "labels",
               "launcher", "provider"]
SLOTS: tuple[Slot, ...] = get_args(Slot)
GROUP = "ragbed.guests"  # group of the entry points
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Guest:
    """Describe what one optional part adds.

    Attributes:
        name: unique among guests.
        adds: for each slot, the added names, each with its "module:attribute".
        origin: the distribution of an installed guest; empty for ragbed's own guests.
    """

    name: str
    adds: Mapping[Slot, Mapping[str, str]] = field(default_factory=dict)
    origin: str = ""


_IN = "ragbed.experiments.guests"
_DATA = f"{_IN}.datasets"
_FILES = f"{_IN}.pipelines.answer_files"
BUILT_IN: tuple[Guest, ...] = (
    Guest("early_stopping", {"scheduler": {"race": f"{_IN}.early_stopping.schedule:RaceSchedule"}}),
    Guest("citation_ablation", {
        "follow_up": {"citations": f"{_IN}.citation_ablation.ablation:CitationAblation"},
        "metric": {"citation_ablation": f"{_IN}.citation_ablation.metrics:CITATION_ABLATION"},
        "analysis": {"citation_ablation": f"{_IN}.citation_ablation.views:ablation_views"}}),
    Guest("rescoring", {"command": {"rescore": f"{_IN}.rescoring.commands:rescore",
                                    "verify": f"{_IN}.rescoring.commands:verify"}}),
    Guest("label_correction", {
        "command": {"judge": f"{_IN}.label_correction.commands:judge"},
        "labels": {"corrected": f"{_IN}.label_correction.commands:label_views"}}),
    Guest("pipelines", {
        "command": {"import": f"{_IN}.pipelines.commands:import_"},
        "pipeline": {"http": f"{_IN}.pipelines.http:Http",
                     "openai": f"{_IN}.pipelines.chat_completions:ChatCompletions",
                     "langchain": f"{_IN}.pipelines.frameworks:LangChain",
                     "langgraph": f"{_IN}.pipelines.frameworks:LangGraph",
                     "haystack": f"{_IN}.pipelines.frameworks:Haystack",
                     "llamaindex": f"{_IN}.pipelines.frameworks:LlamaIndex",
                     "python": f"{_IN}.pipelines.python_code:Python",
                     "command": f"{_IN}.pipelines.command:Command",
                     "predictions": f"{_IN}.pipelines.predictions:Predictions"},
        "answers": {"trec_rag": f"{_FILES}.trec_rag:TREC_RAG", "inspect": f"{_FILES}.inspect_log:INSPECT",
                    "ragas": f"{_FILES}.ragas:RAGAS", "ragchecker": f"{_FILES}.ragchecker:RAGCHECKER",
                    "jsonl": f"{_FILES}.jsonl:JSONL"}}),
    Guest("conformance", {"command": {"check strategy": f"{_IN}.conformance.commands:check_strategy"}}),
    Guest("serving", {
        "command": {"serve": f"{_IN}.serving.commands:serve", "questions": f"{_IN}.serving.commands:questions"},
        "opener": {"traffic.sqlite": f"{_IN}.serving.traffic_runs:open_run_folder"},
        "comparison": {"traffic.sqlite": f"{_IN}.serving.ab_test:compare_traffic"}}),
    Guest("milvus", {"vectors": {"milvus": f"{_IN}.milvus.settings:Milvus"}}),
    Guest("cluster", {"command": {"merge": f"{_IN}.cluster.commands:merge"},
                      "launcher": dict.fromkeys(("local", "ray"), f"{_IN}.cluster.launcher:LAUNCHER")}),
    Guest("local_models", {
        "command": {"models list": f"{_IN}.local_models.commands:list_models",
                    "models pull": f"{_IN}.local_models.commands:pull_model"},
        "provider": dict.fromkeys(("smollm2-135m", "gguf:", "hf:"), f"{_IN}.local_models.provider:PROVIDER")}),
    Guest("retrieval_evaluation", {"command": {
        "evaluate-retrieval": f"{_IN}.retrieval_evaluation.commands:evaluate_retrieval"}}),
    Guest("review", {"command": {"review": f"{_IN}.review.commands:review"}}),
    Guest("datasets", {
        "benchmark": {"hotpotqa": f"{_DATA}.hotpotqa:HotpotQa",
                      "musique": f"{_DATA}.musique:Musique",
                      "two_wiki": f"{_DATA}.two_wiki:TwoWiki",
                      "morehopqa": f"{_DATA}.morehopqa:MoreHopQa",
                      "multihop_rag": f"{_DATA}.multihop_rag:MultiHopRag",
                      "clapnq": f"{_DATA}.clapnq:ClapNq",
                      "squad2": f"{_DATA}.squad2:Squad2",
                      "rgb": f"{_DATA}.rgb:Rgb",
                      "financebench": f"{_DATA}.financebench:FinanceBench",
                      "korean_rag": f"{_DATA}.korean_rag:KoreanRag",
                      "mtrag": f"{_DATA}.mtrag:Mtrag",
                      "beir": f"{_DATA}.beir:Beir",
                      "trec": f"{_DATA}.trec:Trec",
                      "chunking_eval": f"{_DATA}.chunking_eval:ChunkingEval"}}),
    Guest("hard_negatives", {
        "command": {"negatives": f"{_IN}.hard_negatives.commands:negatives",
                    "dose": f"{_IN}.hard_negatives.commands:dose"},
        "benchmark": {"mined": f"{_IN}.hard_negatives.benchmark:MinedBenchmark"},
        "finding": {"dose": f"{_IN}.hard_negatives.dose:dose_finding"},
        "analysis": {"dose": f"{_IN}.hard_negatives.dose_views:dose_analysis"}}),
    Guest("injection", {"benchmark": {"injection": f"{_IN}.injection.loader:Injection"},
                        "analysis": {"attacks": f"{_IN}.injection.views:attack_views"}}),
    Guest("construct", {"command": {"construct": f"{_IN}.construct.commands:construct"},
                        "benchmark": {"computed": f"{_IN}.construct.computed_benchmark:Computed"},
                        "analysis": {"worlds": f"{_IN}.construct.computed_views:world_views"}}),
)


@cache
def installed() -> tuple[Guest, ...]:
    """Return the usable guests of other distributions, ordered by the names of their entry points."""
    points = sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))
    return tuple(guest for point in points if (guest := _load_guest(point)) is not None)


def entries(slot: Slot) -> dict[str, str]:
    """Return the "module:attribute" of each name in a slot. If two guests add the same name, the first is used.
    Ragbed's own guests come first."""
    found: dict[str, str] = {}
    owners: dict[str, str] = {}
    for guest in _guests():
        for name, target in guest.adds.get(slot, {}).items():
            if name in found:
                leave_out(f"{slot} {name!r} of the guest {guest.name}", f"{owners[name]} adds it already")
            else:
                found[name], owners[name] = target, guest.name
    return found


def load(target: str) -> Any:
    """Import what a "module:attribute" string names. Raises SettingsError if an installed guest has no such attribute,
    or its module cannot be imported."""
    module, _, attribute = target.partition(":")
    if module.startswith("ragbed."):  # a missing module of ragbed is a bug, which the user cannot fix
        return getattr(import_module(module), attribute)
    from ragbed.documents.errors import SettingsError
    from ragbed.documents.user_code import UserCode

    with UserCode(lambda why: SettingsError(f"guest {target}: {why}")):
        return getattr(import_module(module), attribute)


def loaded(slot: Slot) -> dict[str, Any]:
    """Import everything that guests add to a slot. Return it by name, and leave out what cannot be imported."""
    from ragbed.documents.errors import SettingsError

    found: dict[str, Any] = {}
    for name, target in entries(slot).items():
        try:
            found[name] = load(target)
        except SettingsError as error:
            leave_out(f"{slot} {name!r}", str(error))
    return found


def load_kinds(slot: Slot, base: type[_T], taken: Collection[str] = ()) -> dict[str, type[_T]]:
    """Import the settings classes that guests add to a slot, by their `kind`. Leave out a class if its kind is `taken`,
    if it is not a subclass of `base`, or if its field `kind` has another default."""
    found: dict[str, type[_T]] = {}
    for name, one in loaded(slot).items():
        kind = getattr(one, "model_fields", {}).get("kind") if isinstance(one, type) and issubclass(one, base) else None
        if kind is None or kind.default != name:
            leave_out(f"{slot} {name!r}", f"{one!r:.80} is not a subclass of {base.__name__} with the field "
                                          f"kind: Literal[{name!r}] = {name!r}")
        elif name in taken:
            leave_out(f"{slot} {name!r}", "ragbed has one of this name; rename the guest's")
        else:
            found[name] = one
    return found


@cache
def leave_out(what: str, why: str) -> None:
    """Log once that a part of a guest cannot be used."""
    import logging

    logging.getLogger(__name__).warning("%s is left out: %s", what, why)



def load_for_folder(slot: Slot, *folders: Path) -> Any:
    """Import the attribute whose name in the slot is a file in one of the folders; None if there is none."""
    found = next((target for name, target in entries(slot).items()
                  if any(isfile(folder / name) for folder in folders)), None)
    return found and load(found)


def locate_run(folder: Path) -> Path:
    """Return the folder of a run. A guest with an opener for this folder, such as a server's traffic, may update the
    summary and return another folder."""
    opener = load_for_folder("opener", folder, folder.parent)
    return Path(opener(folder)) if opener else folder


def _guests() -> Iterator[Guest]:
    yield from BUILT_IN
    yield from installed()


def _load_guest(point: EntryPoint) -> Guest | None:
    from ragbed.documents.errors import SettingsError

    origin = point.dist.name if point.dist else point.value
    try:
        found = load(point.value)
    except SettingsError as error:
        return leave_out(f"guest {point.name} of {origin}", str(error))
    if not isinstance(found, Guest):
        return leave_out(f"guest {point.name} of {origin}", f"{point.value} is not a ragbed.guests.Guest")
    if unknown := [slot for slot in found.adds if slot not in SLOTS]:
        return leave_out(f"guest {point.name} of {origin}",
                         f"there is no slot {unknown[0]!r}; the slots are {', '.join(SLOTS)}")
    return Guest(found.name, found.adds, origin)
