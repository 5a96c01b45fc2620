"""Reading a run's settings: a YAML file, a run for each benchmark that it names, and one line for what does not fit.
Also strategies and retrievers as options of the command line name them: by a name, or by settings in YAML."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from ragbed.documents.errors import SettingsError
from ragbed.documents.paths import open_file
from ragbed.retrieval.filters.terms import Where
from ragbed.retrieval.retrievers import RetrieverSettings
from ragbed.retrieval.types import RetrieverKind
from ragbed.strategies.settings.choosing import Said

if TYPE_CHECKING:
    from ragbed.experiments.settings.run import RunSettings

_MOST = 2**63 - 1
_NO_MAPPING = ("model_type", "model_attributes_type", "dict_type")
_MOST_BYTES = 1_000_000  # of a file; some seconds of reading
_SHOWN = 60  # characters of a value


class _Loader(yaml.SafeLoader):
    """Refuses a key that a mapping has twice; else the later value would win without a word."""

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if (key.tag, key.value) in seen:
                raise yaml.MarkedYAMLError(problem=f"line {key.start_mark.line + 1} gives the key {key.value!r} again; "
                                                   "keep one of the two")
            seen.add((key.tag, key.value))
        return node

    def construct_yaml_int(self, node: Any) -> int:
        """Return a number of 64 bits: no setting could be a longer one, and Python refuses to write some."""
        try:
            number = int(super().construct_yaml_int(node))
        except (ValueError, LookupError):
            number = _MOST + 1
        if abs(number) > _MOST:
            raise yaml.MarkedYAMLError(problem=f"line {node.start_mark.line + 1} has a whole number that is none, or "
                                               f"beyond {_MOST}")
        return number


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)


def read_settings(path: Path) -> RunSettings:
    """Return the settings of one run in its own `config.yaml`. No strategy that is none of ragbed's is executed for it.
    Raises SettingsError with one line that names the file, the key and what is wrong."""
    return check_settings(content_of(path), str(path), checked=True)


def content_of(path: Path) -> dict[str, Any]:
    """Return the settings of a YAML file as it has them, with a name; SettingsError where it has none."""
    try:
        with open_file(path) as file:
            read = file.read(_MOST_BYTES + 1)
        text = read.decode("utf-8")
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path}: not readable as YAML: {error}") from error
    if len(read) > _MOST_BYTES:
        raise SettingsError(f"{path}: larger than {_MOST_BYTES:,} bytes; split it into several files, or give a "
                            "strategy's parameter a list of values")
    content = read_value(text, str(path))
    if not isinstance(content, dict):
        raise SettingsError(f"{path}: a mapping of settings is expected")
    return {"name": path.stem, **content}


def read_value(text: str, where: str) -> Any:
    """Return the value that the text says in YAML; SettingsError where it says none."""
    try:
        loader = _Loader(text)
        try:
            return loader.get_single_data()
        finally:
            loader.dispose()
    except RecursionError:
        raise SettingsError(f"{where}: not readable as YAML: nested beyond reason") from None
    except yaml.YAMLError as error:
        raise SettingsError(f"{where}: not readable as YAML: {' '.join(str(error).split())}") from error
    except (ValueError, LookupError, AttributeError) as error:  # what its loader lets through, of dates and tags
        raise SettingsError(f"{where}: not readable as YAML: a date, or a value with a tag, that is none") from error


def check_settings(content: dict[str, Any], where: str, checked: bool = False) -> RunSettings:
    """Type plain settings; SettingsError names the first thing that does not fit. Resolved ones of a run were
    `checked`: strategies that are none of ragbed's are then taken as they are named; else they are loaded, and so
    executed."""
    from ragbed.experiments.settings.matrix import combinations_of
    from ragbed.experiments.settings.run import RunSettings

    try:
        settings = RunSettings.model_validate(content, context={"checked": checked})
        _check_numbers(content, settings.model_dump(by_alias=True), "")
        combinations_of(settings)
    except ValidationError as error:
        raise SettingsError(f"{where}: {explain(error, RunSettings)}") from error
    except SettingsError as error:
        raise SettingsError(f"{where}: {error}") from error
    return settings


def _check_numbers(given: Any, taken: Any, key: str) -> None:
    """Make sure that no `true` or `false` was taken for a number."""
    if isinstance(given, dict) and isinstance(taken, dict):
        for name, value in given.items():
            _check_numbers(value, taken.get(name), f"{key}.{name}" if key else name)
    elif isinstance(taken, list | tuple):
        for one, value in zip(given if isinstance(given, list | tuple) else [given], taken, strict=False):
            _check_numbers(one, value, key)
    elif isinstance(given, bool) and isinstance(taken, int | float) and not isinstance(taken, bool):
        raise SettingsError(f"{key}: expected a number, not {str(given).lower()}")


def explain(errors: ValidationError, model: type[BaseModel]) -> str:
    """Return one line for the first of pydantic's errors: the key, what is wrong with it, the valid keys of a typo."""
    error = errors.errors(include_url=False)[0]
    known, place = _keys_at(model, error["loc"][:-1])
    key = ".".join(map(str, (*place, *error["loc"][-1:]))) or "settings"
    kind, given, context = error["type"], error["input"], error.get("ctx", {})
    if kind == "extra_forbidden":
        meant = _meant(key, str(error["loc"][-1]), known, model)
        return f"unknown setting {key!r}; {meant}there are: {', '.join(known)}"
    if kind == "union_tag_not_found" or (
            kind == "union_tag_invalid" and isinstance(given, dict) and given.get("kind") is None):
        return f"{key}: give its kind, as in {{kind: KIND}}"
    if kind == "union_tag_invalid":
        return f"{key}: no kind is called {context['tag']}; there are: {context['expected_tags']}"
    if given is None:
        return f"{key}: is given nothing; give it a value, or leave the key out"
    if kind in _NO_MAPPING:
        return f"{key}: expected a mapping, as in {{key: value}}, not {str(given)[:_SHOWN]!r}"
    return f"{key}: {error['msg'].removeprefix('Value error, ')}"


def _meant(given: str, key: str, known: Sequence[str], model: type[BaseModel]) -> str:
    elsewhere = dict.fromkeys(place for place in _places(model) if place.rpartition(".")[2] == key and place != given)
    least = min((place.count(".") for place in elsewhere), default=0)
    near = get_close_matches(key, known, 1) or [place for place in elsewhere if place.count(".") == least]
    return f"did you mean {' or '.join(map(repr, near))}? " if near else ""


def _places(model: type[BaseModel], above: tuple[type[BaseModel], ...] = ()) -> Iterator[str]:
    """Every setting by its dotted keys; of retrievers made of others, only the outermost."""
    within = any(issubclass(one, RetrieverKind) for one in (*above, model))
    for name, field in model.model_fields.items():
        key = field.alias or name
        yield key
        yield from (f"{key}.{below}" for inner in _models_in(field.annotation)
                    if not (within and issubclass(inner, RetrieverKind)) for below in _places(inner, (*above, model)))


def _keys_at(model: type[BaseModel], place: Sequence[int | str]) -> tuple[list[str], list[int | str]]:
    """The valid keys of the mapping at a place of an error, and the place as a file has it: where one of several kinds
    is chosen, the error names the kind as if it were a key."""
    models, keys = [model], list[int | str]()
    for part in place:
        inner = [below for one in models if part in one.model_fields
                 for below in _models_in(one.model_fields[str(part)].annotation)]
        kinds = [one for one in models if "kind" in one.model_fields and one.model_fields["kind"].default == part]
        models = inner or kinds or models
        keys += [] if kinds and not inner else [part]
    return list(dict.fromkeys(field.alias or key for one in models for key, field in one.model_fields.items())), keys


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models_in(part)]


def said(text: str, option: str) -> Said:
    """Return what a text such as `direct`, `my.py:recipe` or `{kind: self_consistency, of: direct}` says; raise
    SettingsError, which names the option, where it is neither a name nor a mapping."""
    value = read_value(text, option)
    if not isinstance(value, str | dict) or not value:
        raise SettingsError(f"{option} {text!r:.80}: expected a name of `ragbed list strategies`, FILE.py:FUNCTION, or "
                            "settings such as '{kind: self_consistency, of: direct}'")
    return value


class Finding(BaseModel):
    """A retriever, and among which chunks it looks."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    retriever: RetrieverSettings
    where: Where = ()


def finding(retriever: str, where: list[str]) -> tuple[RetrieverKind, tuple[str, ...]]:
    """Return a retriever's settings, by a kind such as `bm25` or YAML such as `{kind: fused, of: [dense, bm25]}`, and
    the conditions, of texts such as `page >= 3`. Raises SettingsError with one line for what does not fit."""
    try:
        given = Finding(retriever=read_value(retriever, "--retriever"), where=where)
    except ValidationError as error:
        raise SettingsError(explain(error, Finding)) from error
    return given.retriever, given.where


def read_runs(path: Path) -> list[RunSettings]:
    """Return the settings of a YAML file, one run for each benchmark that it names. Relative paths in it count from the
    current folder, as on the command line. Raises SettingsError with one line that names the file, the key and what is
    wrong."""
    return runs_of(content_of(path), str(path))


def runs_of(content: dict[str, Any], where: str) -> list[RunSettings]:
    """Type the settings of each run: one, or for a list of benchmarks one each, called `NAME-KIND`, then `NAME-KIND-2`.
    Raises SettingsError as `check_settings`, or where an entry of `exclude` or `include` is for a benchmark that is not
    there."""
    benchmarks = content.get("benchmark")
    if not isinstance(benchmarks, list):
        return [check_settings(content, where)]
    if not benchmarks:
        raise SettingsError(f"{where}: benchmark: an empty list; name at least one")
    kinds: list[str] = []
    for place, one in enumerate(benchmarks):
        if not isinstance(one, dict) or not isinstance(one.get("kind"), str):
            raise SettingsError(f"{where}: benchmark.{place}: give the settings of a benchmark with its kind, as in "
                                "{kind: crest, path: FOLDER}")
        kinds.append(one["kind"])
    runs = []
    for place, (kind, benchmark) in enumerate(zip(kinds, benchmarks, strict=True)):
        count = kinds[:place + 1].count(kind)
        name = f"{content['name']}-{kind}" + (f"-{count}" if count > 1 else "")
        parts = {key: _entries_for(kind, kinds, content[key], f"{where}: {key}")
                 for key in ("exclude", "include") if content.get(key)}
        runs.append(check_settings({**content, **parts, "name": name, "benchmark": benchmark}, f"{where}, run {name}"))
    return runs


def _entries_for(kind: str, kinds: Sequence[str], entries: Any, where: str) -> Any:
    kept = []
    for place, entry in enumerate(entries if isinstance(entries, list) else [entries]):
        named = entry.get("benchmark", kinds) if isinstance(entry, dict) else kinds
        named = named if isinstance(named, list) else [named]
        foreign = [str(one) for one in named if one not in kinds]
        if foreign:
            raise SettingsError(f"{where}.{place}.benchmark: {', '.join(foreign)} is none of the file's; there are: "
                                f"{', '.join(dict.fromkeys(kinds))}")
        if kind in named:
            kept.append({key: value for key, value in entry.items() if key != "benchmark"}
                        if isinstance(entry, dict) else entry)
    return kept
