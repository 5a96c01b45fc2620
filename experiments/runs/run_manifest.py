"""The manifest of a run: settings, benchmark, models, and hashes of all inputs."""
from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from ragbed.agents.model_settings import PACE
from ragbed.documents.errors import RunError
from ragbed.documents.types import digest
from ragbed.experiments.metrics import Scoring
from ragbed.experiments.question import Benchmark, Scheme
from ragbed.experiments.runs.store import question_json, read_run_file

_SHOWN, _BEFORE = 60, 20  # characters of a value that a message shows, in total and before the first difference
# Settings that hold paths. The content there is compared instead.
_PLACES = ("out", "exemplars", "prompts")
_QUESTIONS = ("benchmark.path", "benchmark.corpus", "benchmark.novels", "benchmark.topics")
# Settings that affect only the speed and the end of a run, and how models are reached.
_PACE = re.compile(rf"budget\.|concurrency\.|calls\.calls\.|cache\.|calls\.models\..*\.(?:{'|'.join(PACE)})\.")
DAMAGED = "its config.yaml is damaged"

_Loader: type = yaml.SafeLoader
if yaml.__with_libyaml__:
    from yaml._yaml import CParser

    class _Loader(Composer, CParser, SafeConstructor, Resolver):  # type: ignore[no-redef]
        """Parses with libyaml, six times as fast as PyYAML. Composes in Python, which limits the depth."""

        def __init__(self, text: str) -> None:
            CParser.__init__(self, text)
            for base in (Composer, SafeConstructor, Resolver):
                base.__init__(self)


def parse_config(text: str) -> Any:
    """Return the value of YAML that ragbed wrote. Raises YAMLError, or RecursionError if it is nested too deeply."""
    try:
        return yaml.load(text, _Loader)  # noqa: S506 (makes plain values only)
    except (yaml.YAMLError, UnicodeEncodeError):  # libyaml rejects file names that are not UTF-8
        return yaml.safe_load(text)


def read_config(run: Path) -> str | None:
    """Return the resolved settings of a run; None without a run. Raises RunError if they cannot be read."""
    path = run / "config.yaml"
    try:
        return read_run_file(path).decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"{path}: cannot be read; start again with --fresh") from error


class MadeShard(BaseModel):
    """The shard in a folder. The summary of the whole run needs these values and the records.

    Attributes:
        part: number of the shard and of all shards, such as 3/16.
        notes: notes of the plan.
        exemplars: the number of worked examples in every prompt.
    """

    part: str
    notes: tuple[str, ...]
    exemplars: int


class Made(BaseModel):
    """The manifest of a run.

    Attributes:
        settings: a hash of the resolved settings; `prompts`, `judge_prompt` and `exemplars` are hashes too.
        benchmark: name of the benchmark, number of questions, and hashes of the questions as loaded and as stored.
        sources: hashes of plug-ins, files of worked examples and replaced prompts, by their name in the settings.
        models: identities by name.
        servers: a hash of what serves each model, by identity.
        judge: name of the judge.
        packages: versions by package.
        sweeps: see `Plan.sweeps`.
        cells: id and factors of each cell, in order.
        shard: None for a whole run.
    """

    settings: str
    benchmark: dict[str, str | int]
    prompts: str
    judge_prompt: str
    exemplars: str | None
    sources: dict[str, str]
    models: dict[str, str]
    servers: dict[str, str] = {}
    scheme: Scheme
    scoring: Scoring
    judge: str
    packages: dict[str, str | None] = {}
    sweeps: dict[str, tuple[str, float]]
    cells: list[Mapping[str, Any]]
    shard: MadeShard | None = None


def read_manifest(path: Path) -> Made:
    """Read the manifest of a run's folder. Raises RunError if it is missing, damaged or incomplete."""
    try:
        return Made.model_validate_json(read_run_file(path / "manifest.json"))
    except (OSError, ValidationError) as error:
        raise RunError(f"{path}: manifest.json is missing, damaged, or made by another version of ragbed; run it "
                       "again, with --fresh") from error


def known_models(path: Path) -> dict[str, str]:
    """Return the models' identities in a run's manifest; empty if there is none."""
    try:
        return read_manifest(path).models
    except RunError:
        return {}


def read_servers(path: Path) -> dict[str, str]:
    """Return a hash of what serves each model in a run's manifest, by identity; empty if there is none."""
    try:
        return read_manifest(path).servers
    except RunError:
        return {}


def questions_hash(benchmark: Benchmark) -> str:
    """Return one hash of the questions with their chunks."""
    return digest(*(digest(question_json(one.drop_chunks()), *(chunk.id for chunk in one.chunks))
                    for one in benchmark.questions))


def changed_inputs(old: Made, new: Made) -> Iterator[str]:
    """Describe each input that has the same name in two runs and different content."""
    if (old.prompts, old.judge_prompt) != (new.prompts, new.judge_prompt):
        yield "other prompts: ragbed's prompts have changed"
    if old.exemplars != new.exemplars:
        yield "different worked examples: the file of exemplars has changed"
    for name, content in new.sources.items():
        if old.sources.get(name, content) != content:
            yield f"another version of {name}"
    for name, identity in new.models.items():
        if old.models.get(name, identity) != identity:
            yield f"another model under the name {name}: its weights or other files have changed"


def difference(known: str, now: str, same_questions: bool, only: tuple[str, ...] = ()) -> str | None:
    """Describe the first difference between two resolved YAML settings, as `compare_settings` does."""
    return next(list_differences(known, now, same_questions, only), None)


def list_differences(known: str, now: str, same_questions: bool, only: tuple[str, ...] = (),
                     free: tuple[str, ...] = ()) -> Iterator[str]:
    """Describe each difference between two resolved YAML settings; see `compare_settings`. Those in `free` do not
    count."""
    try:
        old, new = parse_config(known), parse_config(now)
    except (yaml.YAMLError, RecursionError):
        old = new = None
    whole = isinstance(old, dict) and "benchmark" in old
    yield from _describe_all(old, new, same_questions, only, free) if whole else [DAMAGED]


def compare_settings(old: Any, new: Any, same_questions: bool, only: tuple[str, ...] = ()) -> str | None:
    """Describe the first difference between two resolved settings. Return None if they describe the same run.

    Some differences do not count: the locations of the run and of its data if the questions stay the same, the settings
    for speed and budget, and an added `probe`. With `only`, no other settings count.
    """
    return next(_describe_all(old, new, same_questions, only), None)


def _describe_all(old: Any, new: Any, same_questions: bool, only: tuple[str, ...],
                  free: tuple[str, ...] = ()) -> Iterator[str]:
    ignored = {*_PLACES, *free, *(_QUESTIONS if same_questions else ())}
    found = [(place, before, after) for place, before, after in _differences(old, new)
             if place not in ignored and not _PACE.match(f"{place}.")
             and (not only or place.partition(".")[0] in only)
             and not (place == "probe" and before is None)]
    besides = {place.rpartition(".")[0] for place, *_ in found if not place.endswith(".name")}
    # a retriever's name may follow from its other settings
    return (f"{_name_place(place, new)} {_describe_change(before, after)}" for place, before, after in found
            if not place.endswith(".name") or place.removesuffix(".name") not in besides)


def _differences(old: Any, new: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    if isinstance(old, Mapping) and isinstance(new, Mapping) and old.get("kind") == new.get("kind"):
        inside = [(str(key), old.get(key), new.get(key)) for key in dict.fromkeys([*old, *new])]
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new) and all(
            isinstance(item, Mapping) for item in (*old, *new)):
        inside = [(str(at), *pair) for at, pair in enumerate(zip(old, new, strict=True))]
    else:
        if old != new:
            yield place, old, new
        return
    for key, before, after in inside:
        yield from _differences(before, after, f"{place}.{key}" if place else key)


def _name_place(place: str, settings: Any) -> str:
    """Return a setting's place as users know it: `retriever bm25: k` for `retriever.0.k`."""
    key, _, rest = place.partition(".")
    number, _, inside = rest.partition(".")
    if not inside or not number.isdigit():
        return place
    return f"{key} {_name(settings[key][int(number)], ('kind', 'name'))}: {inside}"


def _describe_change(old: Any, new: Any) -> str:
    if isinstance(old, list) and isinstance(new, list):
        signed = [*(("+", one) for one in new if one not in old), *(("-", one) for one in old if one not in new)]
        if signed:
            return ", ".join(f"{sign} {_shorten(_name(one))}" for sign, one in signed)
    if isinstance(old, Mapping) and isinstance(new, Mapping) and _name(old) != _name(new):
        return f"was {_shorten(_name(old))}, is {_shorten(_name(new))}"
    return _show_both(old, new)


def _name(value: Any, keys: Sequence[str] = ("name", "model", "kind")) -> str:
    if isinstance(value, Mapping) and (key := next((key for key in keys if value.get(key)), None)):
        return str(value[key])
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _shorten(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def _show_both(old: Any, new: Any) -> str:
    texts = [json.dumps(value, ensure_ascii=False, default=str) for value in (old, new)]
    first = next((at for at, (ours, theirs) in enumerate(zip(*texts, strict=False)) if ours != theirs),
                 min(map(len, texts)))
    start = max(first - _BEFORE, 0) if max(map(len, texts)) > _SHOWN else 0
    was, now = (("..." if start else "") + text[start:start + _SHOWN] + ("..." if len(text) > start + _SHOWN else "")
                for text in texts)
    return f"was {was}, is {now}"
