"""Read the settings of runs from YAML, one run per benchmark, and turn errors into one-line messages.

Options of the command line that hold a strategy or a retriever are parsed here too.
"""
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
from ragbed.strategies.settings.strategy_config import Spec

if TYPE_CHECKING:
    from ragbed.experiments.settings.run import RunSettings

_MAX_INTEGER = 2**63 - 1
_MAX_BYTES = 1_000_000  # largest size of a file; it takes some seconds to parse
_MAX_SHOWN = 60  # characters of a value in a message
_NOT_A_MAPPING = ("model_type", "model_attributes_type", "dict_type")  # pydantic's names of this error


class _Loader(yaml.SafeLoader):
    """Rejects integers beyond 64 bits, and duplicate keys, which PyYAML's loader silently overwrites."""

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if (key.tag, key.value) in seen:
                raise yaml.MarkedYAMLError(problem=f"line {key.start_mark.line + 1} repeats the key {key.value!r}; "
                                                   "remove one of the two")
            seen.add((key.tag, key.value))
        return node

    def construct_yaml_int(self, node: Any) -> int:
        try:
            number = int(super().construct_yaml_int(node))
        except (ValueError, LookupError):
            number = _MAX_INTEGER + 1
        if abs(number) > _MAX_INTEGER:
            raise yaml.MarkedYAMLError(problem=f"line {node.start_mark.line + 1} has an integer that is malformed or "
                                               f"larger than {_MAX_INTEGER}")
        return number


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)


def read_settings(path: Path) -> RunSettings:
    """Return the settings of one run from its `config.yaml`. No custom strategy is executed. Raises SettingsError: the
    file cannot be read, or a setting is invalid."""
    return check_settings(read_content(path), str(path), checked=True)


def read_runs(path: Path) -> list[RunSettings]:
    """Return the settings in a YAML file, one run for each benchmark. Relative paths start at the current folder, as on
    the command line. Raises SettingsError: the file cannot be read, or a setting is invalid."""
    return split_runs(read_content(path), str(path))


def read_content(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML file, with `name` defaulting to the file's name. Raises SettingsError: the
    file cannot be read, or is not a mapping."""
    try:
        with open_file(path) as file:
            read = file.read(_MAX_BYTES + 1)
        text = read.decode("utf-8")
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path}: not valid YAML: {error}") from error
    if len(read) > _MAX_BYTES:
        raise SettingsError(f"{path}: larger than {_MAX_BYTES:,} bytes; split the file, or replace "
                            "similar strategies by one whose parameter is a list of values")
    content = parse_yaml(text, str(path))
    if not isinstance(content, dict):
        raise SettingsError(f"{path}: expected a mapping of settings")
    return {"name": path.stem, **content}


def parse_yaml(text: str, where: str) -> Any:
    """Return the value of a YAML text. Raises SettingsError, whose message starts with `where`, if the text is not
    valid YAML."""
    try:
        loader = _Loader(text)
        try:
            return loader.get_single_data()
        finally:
            loader.dispose()
    except RecursionError:
        raise SettingsError(f"{where}: not valid YAML: nested too deeply") from None
    except yaml.YAMLError as error:
        raise SettingsError(f"{where}: not valid YAML: {' '.join(str(error).split())}") from error
    except (ValueError, LookupError, AttributeError) as error:  # raised by PyYAML itself
        raise SettingsError(f"{where}: not valid YAML: a date or a tagged value is malformed") from error


def check_settings(content: dict[str, Any], where: str, checked: bool = False) -> RunSettings:
    """Validate the settings of one run.

    Args:
        content: the settings as plain data.
        where: the start of an error message, such as the file's name.
        checked: whether they come from a run's folder and were validated before. Custom strategies are then not loaded
            or executed.

    Raises:
        SettingsError: a setting is invalid; the message names the first one.
    """
    from ragbed.experiments.settings.matrix import list_combinations
    from ragbed.experiments.settings.run import RunSettings

    try:
        settings = RunSettings.model_validate(content, context={"checked": checked})
        _check_numbers(content, settings.model_dump(by_alias=True), "")
        list_combinations(settings)
    except ValidationError as error:
        raise SettingsError(f"{where}: {explain(error, RunSettings)}") from error
    except SettingsError as error:
        raise SettingsError(f"{where}: {error}") from error
    return settings


def _check_numbers(given: Any, taken: Any, key: str) -> None:
    """Raise SettingsError if pydantic took `true` or `false` for a number."""
    if isinstance(given, dict) and isinstance(taken, dict):
        for name, value in given.items():
            _check_numbers(value, taken.get(name), f"{key}.{name}" if key else name)
    elif isinstance(taken, list | tuple):
        for one, value in zip(given if isinstance(given, list | tuple) else [given], taken, strict=False):
            _check_numbers(one, value, key)
    elif isinstance(given, bool) and isinstance(taken, int | float) and not isinstance(taken, bool):
        raise SettingsError(f"{key}: expected a number, not {str(given).lower()}")


def explain(errors: ValidationError, model: type[BaseModel]) -> str:
    """Return one line for the first of pydantic's errors: the key, the problem and, for an unknown key, the valid
    keys."""
    error = errors.errors(include_url=False)[0]
    valid, place = _resolve_place(model, error["loc"][:-1])
    key = ".".join(map(str, (*place, *error["loc"][-1:])))
    kind, given, context = error["type"], error["input"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return f"unknown setting {key!r}; {_suggest(key, valid, model)}valid settings: {', '.join(valid)}"
    if kind == "union_tag_not_found" or (
            kind == "union_tag_invalid" and isinstance(given, dict) and given.get("kind") is None):
        return f"{key}: `kind` is missing; write {{kind: KIND}}"
    if kind == "union_tag_invalid":
        return f"{key}: unknown kind {context['tag']}; valid kinds: {context['expected_tags']}"
    if given is None:
        return f"{key}: the value is missing; give one, or omit the key"
    if kind in _NOT_A_MAPPING:
        return f"{key}: expected a mapping such as {{key: value}}, not {str(given)[:_MAX_SHOWN]!r}"
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"{key}: {message}" if key else message  # a message about several settings names them itself


def _suggest(key: str, valid: Sequence[str], model: type[BaseModel]) -> str:
    name = key.rpartition(".")[2]
    elsewhere = dict.fromkeys(one for one in _dotted_keys(model) if one.rpartition(".")[2] == name and one != key)
    depth = min((one.count(".") for one in elsewhere), default=0)
    near = get_close_matches(name, valid, 1) or [one for one in elsewhere if one.count(".") == depth]
    return f"did you mean {' or '.join(map(repr, near))}? " if near else ""


def _dotted_keys(model: type[BaseModel], above: tuple[type[BaseModel], ...] = ()) -> Iterator[str]:
    """Yield the dotted key of every setting. Retrievers inside retrievers are skipped, since they nest without end."""
    inside_retriever = any(issubclass(one, RetrieverKind) for one in (*above, model))
    for name, field in model.model_fields.items():
        key = field.alias or name
        yield key
        for inner in _models_in(field.annotation):
            if not (inside_retriever and issubclass(inner, RetrieverKind)):
                yield from (f"{key}.{below}" for below in _dotted_keys(inner, (*above, model)))


def _resolve_place(model: type[BaseModel], place: Sequence[int | str]) -> tuple[list[str], list[int | str]]:
    """Return the valid keys at the location of an error, and the location in the file. Pydantic's location also
    contains the kinds of tagged unions, which are removed."""
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


def parse_spec(text: str, option: str) -> Spec:
    """Return a strategy from an option's text, such as `direct`, `my.py:recipe` or `{kind: self_consistency, of:
    direct}`. Raises SettingsError: the text is neither a name nor a mapping."""
    value = parse_yaml(text, option)
    if not isinstance(value, str | dict) or not value:
        raise SettingsError(f"{option} {text!r:.80}: expected a name of `ragbed list strategies`, FILE.py:FUNCTION, or "
                            "settings such as '{kind: self_consistency, of: direct}'")
    return value


class _RetrieverOptions(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    retriever: RetrieverSettings
    where: Where = ()


def parse_retriever(retriever: str, where: list[str]) -> tuple[RetrieverKind, tuple[str, ...]]:
    """Return a retriever from an option's text, such as `bm25` or `{kind: fused, of: [dense, bm25]}`, and its
    conditions on chunks, such as `page >= 3`. Raises SettingsError: one of them is invalid."""
    try:
        options = _RetrieverOptions(retriever=parse_yaml(retriever, "--retriever"), where=where)
    except ValidationError as error:
        raise SettingsError(explain(error, _RetrieverOptions)) from error
    return options.retriever, options.where


def split_runs(content: dict[str, Any], where: str) -> list[RunSettings]:
    """Return the settings of each run: one run, or one for each of a list of benchmarks, called `NAME-KIND`, then
    `NAME-KIND-2`. Raises SettingsError: a setting is invalid, or `exclude` or `include` names a benchmark that is not
    in the list."""
    benchmarks = content.get("benchmark")
    if not isinstance(benchmarks, list):
        return [check_settings(content, where)]
    if not benchmarks:
        raise SettingsError(f"{where}: benchmark: the list is empty; name at least one")
    kinds: list[str] = []
    for place, one in enumerate(benchmarks):
        if not isinstance(one, dict) or not isinstance(one.get("kind"), str):
            raise SettingsError(f"{where}: benchmark.{place}: expected a benchmark's settings with its kind, such as "
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
    """Return the entries of `exclude` or `include` that apply to a benchmark."""
    kept = []
    for place, entry in enumerate(entries if isinstance(entries, list) else [entries]):
        named = entry.get("benchmark", kinds) if isinstance(entry, dict) else kinds
        named = named if isinstance(named, list) else [named]
        if unknown := [str(one) for one in named if one not in kinds]:
            raise SettingsError(f"{where}.{place}.benchmark: {', '.join(unknown)} is not a benchmark of this file; it "
                                f"has {', '.join(dict.fromkeys(kinds))}")
        if kind in named:
            kept.append({key: value for key, value in entry.items() if key != "benchmark"}
                        if isinstance(entry, dict) else entry)
    return kept
