"""Guests: optional parts of ragbed that the core finds by name and never imports.

A guest may import the core. One `Guest` lists what it adds as "module:attribute" strings, which are imported on first
use:

    GUEST = Guest("word_count", {"metric": {"word_count": "word_count:METRICS"},
                                 "command": {"word-count": "word_count:show"}})

`ragbed/built_in.py` lists ragbed's own guests. An installed distribution registers its guest by an entry point:

    [project.entry-points."ragbed.guests"]
    word_count = "word_count:GUEST"

A guest fills slots. In each slot, a name refers to an attribute of this type:

    command    a Typer function, such as `serve`; the name may have two words, as in "check strategy"
    opener     a function from a folder to the folder of a run; the name is a file in it, as in "traffic.sqlite"
    comparison a function from a folder and a baseline or None to JSON and views; named like an opener
    control    a context manager from a run's folder and a function for notes to a function that runs jobs (`RunJobs`
               of ragbed.experiments.running.hooks)
    estimate   a function from the settings of runs, and whether to print JSON, that prints their estimated cost; the
               name is "run"
    partial    a function from the open folder of an unfinished run to a summary of its answers so far, or None
    exporter   a function from a folder, an output and a format or None to a line of text; named like an opener
    table      a function from a finished run to rows, "records" for `Run.frame`, or to HTML, "html" for notebooks
    analysis   a function from `AnalysisInput` to a list of `View`, for the report, the terminal and JSON
    breakdown  like `analysis`, but only for benchmarks whose scheme lists the name in `views`
    finding    a function from `AnalysisInput` to JSON or None; analyses read the result as `run.found[NAME]`
    setting    a pydantic model, `Annotated[TYPE | None, Field(description=...)]`, or a function that returns the value
               or raises ValueError; the name is a settings key
    benchmark  a subclass of `Selection`; the name is its `kind`
    reasoning  a recipe, as in docs/strategies.md
    retrieval  a recipe that gathers evidence
    history    a recipe that rewrites a question
    prompts    a folder of `NAME.md`, which `template(NAME)` of ragbed.strategies finds
    retriever  a subclass of `RetrieverKind`; the name is its `kind`
    reranker   a subclass of `Reranker`; the name is its `kind`
    vectors    a settings class for the vectors of an index; the name is its `kind`
    pipeline   a subclass of `PipelineSettings`; the name is its `kind`
    answers    an `AnswerFormat`, which reads and writes another tool's answer files
    grade      a function from a text, a gold answer and a question to a `Grade`; the judge `lexical` uses its namesake,
               and `steps`, a function from reference steps and a reasoning to the indices of those that it contains
    judge      a subclass of `JudgeKind` (ragbed.experiments.judges.judge); the name is its `kind`
    labels     a function from a finished run and label files to a list of `View`, for `ragbed report --labels`
    cause      a `FinerCause` (ragbed.experiments.analysis.causes), which replaces causes in some cases
    metric     a `MetricGroup`; it is scored if a benchmark's scheme names it, or always if it has `material`
    scheduler  a `Schedule` class (ragbed.experiments.running.hooks); the setting `race` uses the one named "race"
    follow_up  a `FollowUp` class (ragbed.experiments.running.hooks); the setting `probe` gives its name
    trajectory functions that show the calls of an answer: `draw` as lines for a terminal of a width, `lines` as JSON,
               `show_two` prints those of two cells
    refusal    functions of ragbed.experiments.guests.refusals: `read` tells whether a text refuses, `sentence` is
               how to refuse a question, `settle` decides an answer's outcome, `note` writes the summary's note
    measure    `metrics`: a function from a plan and a run's folder to notes, which computes users' metrics again
    parser     a function from bytes and a source name to HTML or a `Document`; the name is a suffix, as in ".epub"
    ocr        a parser, as above, that also recognises text in pictures; used for `--ocr`
    records    a function from a path to the records (ragbed.documents.sources.Record) of a file, each parsed as a
               document; the name is a suffix, which also needs a parser
    provider   a `ModelProvider` (ragbed.agents.models); the name is a model's name, or a prefix such as "gguf:"
    context    an async function from a server's `Address`, a model and the wanted tokens or None to the name to request
               and the model's `Context` or None
    launcher   a `ShardLauncher` (ragbed.experiments.commands.options); the name is the NAME in `--launcher NAME:...`
    cache      a function from the settings of a run to a `CallCache` (ragbed.experiments.running.reuse) or None;
               the name is "calls"
    inputs     functions of ragbed.experiments.guests.cell_inputs: `run` and `differences` say what cells were made from
    run_view   a function from a finished run to a list of `View`, for its report
    pair_note  a function from two `ComparedRun` and their matches to sentences, for `ragbed compare`
    toolbox    `check`: a function from a list, the value of a strategy's parameter `tools`, to the validated list; it
               raises SettingsError. `open`: a function from that list to an async context manager of a `Toolbox`
               (ragbed.agents.tools). `index` and `chunks`: functions that make the documents for it, as in
               ragbed.experiments.guests.agent_tools.corpora
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
from os.path import isfile  # `Path.is_file` would raise OSError for long names
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from ragbed import built_in

Slot = Literal["command", "opener", "comparison", "exporter", "table", "analysis", "breakdown", "finding", "setting",
               "benchmark", "reasoning", "retrieval", "history", "prompts", "retriever", "reranker", "vectors",
               "pipeline", "judge", "answers", "metric", "cause", "parser", "records", "ocr", "tool", "toolbox",
               "scheduler", "follow_up", "grade", "labels", "launcher", "provider", "context", "cache", "refusal",
               "measure", "estimate", "partial", "control", "inputs", "run_view", "pair_note", "trajectory"]
SLOTS: tuple[Slot, ...] = get_args(Slot)
GROUP = "ragbed.guests"  # group of the entry points
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Guest:
    """Lists what one optional part adds.

    Attributes:
        name: name of the guest, unique among guests.
        adds: "module:attribute" strings by slot and name.
        origin: the distribution of an installed guest; empty for ragbed's own guests.
    """

    name: str
    adds: Mapping[Slot, Mapping[str, str]] = field(default_factory=dict)
    origin: str = ""


BUILT_IN = tuple(Guest(name, adds) for name, adds in built_in.BUILT_IN.items())


def own_entries(slot: Slot) -> dict[str, str]:
    """Return the "module:attribute" of each name that ragbed's own guests add to a slot."""
    return {name: target for guest in BUILT_IN for name, target in guest.adds.get(slot, {}).items()}


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
    """Import the attribute of a "module:attribute" string. Raises SettingsError if an installed guest has no such
    attribute, or its module cannot be imported."""
    module, _, attribute = target.partition(":")
    if module.startswith("ragbed."):  # not caught, because a missing module of ragbed is a bug
        return getattr(import_module(module), attribute)
    from ragbed.documents.errors import SettingsError
    from ragbed.documents.user_code import UserCode

    with UserCode(lambda why: SettingsError(f"guest {target}: {why}")):
        return getattr(import_module(module), attribute)


def loaded(slot: Slot) -> dict[str, Any]:
    """Import everything that guests add to a slot, by name. What cannot be imported is left out."""
    from ragbed.documents.errors import SettingsError

    found: dict[str, Any] = {}
    for name, target in entries(slot).items():
        try:
            found[name] = load(target)
        except SettingsError as error:
            leave_out(f"{slot} {name!r}", str(error))
    return found


def load_kinds(slot: Slot, base: type[_T], taken: Collection[str] = ()) -> dict[str, type[_T]]:
    """Import the settings classes that guests add to a slot, by their `kind`. A class is left out if its kind is
    `taken`, if it is not a subclass of `base`, or if the default of its field `kind` is not its name in the slot."""
    found: dict[str, type[_T]] = {}
    for name, one in loaded(slot).items():
        kind = getattr(one, "model_fields", {}).get("kind") if isinstance(one, type) and issubclass(one, base) else None
        if kind is None or kind.default != name:
            leave_out(f"{slot} {name!r}", f"{one!r:.80} is not a subclass of {base.__name__} with the field "
                                          f"kind: Literal[{name!r}] = {name!r}")
        elif name in taken:
            leave_out(f"{slot} {name!r}", "ragbed itself has this kind; rename the guest's")
        else:
            found[name] = one
    return found


@cache
def leave_out(what: str, why: str) -> None:
    """Log once that a part of a guest cannot be used."""
    import logging

    logging.getLogger(__name__).warning("%s is left out: %s", what, why)



def load_for_folder(slot: Slot, *folders: Path) -> Any:
    """Import the attribute that a slot lists under the name of a file in one of the folders; None if there is no such
    file."""
    found = next((target for name, target in entries(slot).items()
                  if any(isfile(folder / name) for folder in folders)), None)
    return found and load(found)


def locate_run(folder: Path) -> Path:
    """Return the folder of a run. If a guest has an opener for this folder, such as for a server's traffic, the opener
    may update the summary and return another folder."""
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
