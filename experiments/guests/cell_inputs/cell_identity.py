"""Fingerprints of what a cell was made from: model, strategies, prompts, searches, questions and settings.

They are read from what every run stores: its manifest, its settings, and the hashes of what it searched.
"""
from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import yaml

from ragbed.agents.model_settings import PACE
from ragbed.documents.errors import SettingsError
from ragbed.documents.types import digest
from ragbed.experiments.analysis.view import View
from ragbed.experiments.cells import FACTORS, OWN, PIPELINE, REPLICATED, Cell
from ragbed.experiments.formatting import plural
from ragbed.experiments.guests.run_comparison.compare import Match
from ragbed.experiments.guests.run_comparison.compared_run import ComparedRun
from ragbed.experiments.runs.finished import Finished
from ragbed.experiments.runs.run_manifest import Made, parse_config
from ragbed.strategies.settings.prompt_texts import DEFAULT_PROMPTS
from ragbed.strategies.settings.strategy_config import parse_strategy
from ragbed.strategies.types import FAMILIES, Family

Inputs = Mapping[str, Mapping[str, str]]  # a hash or a short value by name, in each part
Difference = Mapping[str, Any]  # a `part`, its names and hashes in the `first` and the `second` cell, and `text`

_LONG, _HASH = 24, "#"  # characters of a setting; a longer one is shown as a hash after this sign
_SETTINGS = ("layout", "brief", "sub_answers", "filled", "paraphraser", "grader", "support", "judge",
             "scoring", "limits")
_NOT_ASKED = ("calls", "prices", "models")  # the pace and the prices of calls; models have their own part
_IN_PARTS = ("benchmark", "model", "prompts", *FAMILIES, *REPLICATED)  # factors that other parts describe


def cell_inputs(made: Made, config: str, pins: Mapping[str, str], row: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return the fingerprints of one cell by part. `config` is the run's resolved settings, `pins` are the hashes of
    what it searched, and `row` has the cell's factors."""
    cell, settings = Cell.of(row), _settings(config)
    calls = settings.get("calls")
    calls = calls if isinstance(calls, Mapping) else {}
    identity = made.models.get(cell.model, cell.model)
    own = (calls.get("models") or {}).get(cell.model)
    own = {name: value for name, value in own.items() if name not in PACE} if isinstance(own, Mapping) else own
    searched = {f"the index of {cell.finder} in {cell.format}", f"the chunks that {cell.finder} searches",
                f"the embedder of {cell.finder}", f"how {cell.finder} finds"} if cell.finder else ()
    return {
        "model": {cell.model: digest(identity, made.servers.get(identity, ""), _json(own))[:12]},
        "strategy": dict(_strategies(made, config, cell)),
        "prompts": {"ragbed's": made.prompts[:12], **{
            name: content[:12] for name, content in made.sources.items()
            if cell.prompts not in (None, DEFAULT_PROMPTS) and name.startswith(f"{cell.prompts}/")},
            **({"exemplars": made.exemplars[:12]} if made.exemplars else {})},
        "searches": {name: content[:12] for name, content in pins.items() if name in searched},
        "questions": {str(made.benchmark.get("name")): str(made.benchmark.get("hash"))[:12]},
        "settings": {**{name: _short(value) for name in FACTORS if name not in _IN_PARTS
                        and (value := getattr(cell, name)) is not None},
                     **{name: _short(settings[name]) for name in _SETTINGS if settings.get(name) is not None},
                     **{f"calls.{name}": _short(value) for name, value in calls.items()
                        if name not in _NOT_ASKED and value is not None}}}


def _strategies(made: Made, config: str, cell: Cell) -> Iterator[tuple[str, str]]:
    """Yield each strategy of a cell with a hash of its settings, and each of its files with a hash of the content."""
    for family in FAMILIES:
        label = getattr(cell, family)
        if label in (None, PIPELINE, OWN):
            continue
        spec = _specs(config, family).get(label, label)
        text = _json(spec)
        yield f"{family} {label}", digest(text)[:12]
        yield from ((name, content[:12]) for name, content in made.sources.items() if json.dumps(name) in text)
    yield "ragbed", str(made.packages.get("ragbed"))


@lru_cache(maxsize=4)
def _settings(config: str) -> Mapping[str, Any]:
    try:
        found = parse_config(config)
    except (yaml.YAMLError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {}


@lru_cache(maxsize=16)
def _specs(config: str, family: Family) -> Mapping[str, Any]:
    """Return the settings of every strategy of a family by its label. Nothing is loaded."""
    settings = _settings(config)
    found: dict[str, Any] = {}
    for part in (settings, *(settings.get("include") or ())):
        for spec in part.get(family) or () if isinstance(part, Mapping) else ():
            try:
                found[parse_strategy(family, spec, execute=False).label] = spec
            except SettingsError:  # of another version of ragbed; its name remains
                continue
    return found


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else _json(value)
    return text if len(text) <= _LONG else f"{_HASH}{digest(text)[:12]}"


def inputs_of_run(run: Finished) -> dict[str, dict[str, dict[str, str]]]:
    """Return the fingerprints of every cell of a run by the cell's id."""
    config, pins = yaml.safe_dump(dict(run.config)), run.folder.pins()
    return {row["id"]: cell_inputs(run.made, config, pins, row) for row in run.rows}


def inputs_views(run: Finished) -> list[View]:
    """Return a table of what each cell was made from. What all cells share comes first, and only once."""
    found = inputs_of_run(run)
    shared = {part: {name: content for name, content in names.items()
                     if all(one[part].get(name) == content for one in found.values())}
              for part, names in next(iter(found.values())).items()}
    rows = [("all", part, _text(names)) for part, names in shared.items() if names]
    for id, one in found.items():
        own = ((part, {name: content for name, content in names.items() if name not in shared[part]})
               for part, names in one.items())
        rows += [(run.labels[id], part, _text(names)) for part, names in own if names]
    return [View("inputs", "What the cells were made from", ("cell", "part", "names and hashes"), tuple(rows), 2, 2,
                 folded=True)]


def _text(names: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {content}" for name, content in names.items())


def find_differences(first: ComparedRun, second: ComparedRun, match: Match) -> list[Difference]:
    """Return the parts that differ between the two cells of a match."""
    before, after = (cell_inputs(run.made, run.config, run.pins, run.cell(label).first)
                     for run, label in ((first, match.baseline), (second, match.cell)))
    return [{"part": part, "first": before[part], "second": after[part],
             "text": _describe_change(before[part], after[part], part == "settings")}
            for part in before if before[part] != after[part]]


def _describe_change(before: Mapping[str, str], after: Mapping[str, str], values: bool) -> str:
    """Describe the names that only one side has, and those whose content changed, with both contents if they are
    `values`."""
    lost, added = ([name for name in one if name not in other] for one, other in ((before, after), (after, before)))
    said = [f"{', '.join(lost) or 'none'} → {', '.join(added) or 'none'}"] if lost or added else []
    for name in after:
        if (was := before.get(name, after[name])) != after[name]:
            shown = values and not was.startswith(_HASH) and not after[name].startswith(_HASH)
            said.append(f"{name}: {was} → {after[name]}" if shown else f"{name} changed")
    return "; ".join(said)


def note_differences(first: ComparedRun, second: ComparedRun, matches: Sequence[Match]) -> list[str]:
    """Return a sentence on what differs between the compared cells."""
    found = [find_differences(first, second, match) for match in matches]
    texts = {"; ".join(f"{one['part']} ({one['text']})" for one in each) for each in found}
    if texts == {""}:
        return ["The compared cells have the same model, strategy, prompts, searches, questions and settings."]
    if len(texts) == 1:
        return [f"The compared cells differ in: {texts.pop()}."]
    parts = Counter(one["part"] for each in found for one in each)
    said = ", ".join(f"{part} in {count}" for part, count in parts.items())
    return [f"What differs within the {plural(len(found), 'pair')}: {said}; --json has the details."]
