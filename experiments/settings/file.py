"""Read the settings of runs from YAML, one run per benchmark.

`settings_schema` returns the JSON Schema, with a description of every setting and the parameters of every strategy.
"""
from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from ragbed.documents.errors import ModelError, SettingsError
from ragbed.documents.paths import open_file
from ragbed.experiments.benchmarks.registry import complete_benchmark
from ragbed.experiments.settings.run_settings import RunSettings
from ragbed.experiments.settings.texts import parse_yaml
from ragbed.experiments.settings.validation import explain
from ragbed.strategies.catalogue import SEARCH_ONLY
from ragbed.strategies.settings.parameters import fields_schema, takes_several
from ragbed.strategies.settings.prompt_texts import OF_STRATEGY
from ragbed.strategies.settings.strategy_config import built_in
from ragbed.strategies.types import FAMILIES, Family

_MAX_BYTES = 1_000_000  # largest size of a file; parsing one takes some seconds


def read_settings(path: Path) -> RunSettings:
    """Return the settings of one run from its `config.yaml`, without executing custom strategies. Raises SettingsError
    if the file cannot be read, or a setting is invalid."""
    return check_settings(read_content(path), str(path), checked=True)


def read_runs(path: Path) -> list[RunSettings]:
    """Return the settings in a YAML file, one run for each benchmark. Paths are relative to the current folder, as on
    the command line. Raises SettingsError if the file cannot be read, or a setting is invalid."""
    return split_runs(read_content(path), str(path))


def read_content(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML file. If it has no `name`, the file's name is added. Raises SettingsError if the
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
        raise SettingsError(f"{path}: larger than {_MAX_BYTES:,} bytes; split the file, or merge "
                            "similar strategies into one whose parameter is a list of values")
    content = parse_yaml(text, str(path))
    if not isinstance(content, dict):
        raise SettingsError(f"{path}: expected a mapping of settings")
    return {"name": path.stem, **content}


def check_settings(content: dict[str, Any], where: str, checked: bool = False) -> RunSettings:
    """Validate the settings of one run.

    Args:
        content: the settings as plain data.
        where: text at the start of an error message, such as the file's name.
        checked: whether they come from a run's folder and were validated before. If so, custom strategies are neither
            loaded nor executed.

    Raises:
        SettingsError: a setting is invalid; the message names the first one.
    """
    from ragbed.experiments.settings.matrix import list_combinations
    from ragbed.experiments.settings.run_settings import RunSettings

    try:
        settings = RunSettings.model_validate(content, context={"checked": checked})
        _check_numbers(content, settings.model_dump(by_alias=True), "")
        list_combinations(settings)
        if settings.calls.models:
            from ragbed.agents.models import check_config
            for name in settings.calls.models:
                check_config(name, settings.calls)
    except ValidationError as error:
        raise SettingsError(f"{where}: {explain(error, RunSettings)}") from error
    except (SettingsError, ModelError) as error:
        raise SettingsError(f"{where}: {error}") from error
    return settings


def _check_numbers(given: Any, taken: Any, key: str) -> None:
    if isinstance(given, dict) and isinstance(taken, dict):
        for name, value in given.items():
            _check_numbers(value, taken.get(name), f"{key}.{name}" if key else name)
    elif isinstance(taken, list | tuple):
        for one, value in zip(given if isinstance(given, list | tuple) else [given], taken, strict=False):
            _check_numbers(one, value, key)
    elif isinstance(given, bool) and isinstance(taken, int | float) and not isinstance(taken, bool):
        raise SettingsError(f"{key}: expected a number, not {str(given).lower()}")


def split_runs(content: dict[str, Any], where: str) -> list[RunSettings]:
    """Return the settings of each run. A list of benchmarks gives one run each, called `NAME-KIND`, then `NAME-KIND-2`.
    Raises SettingsError if a setting is invalid, or `exclude` or `include` names a benchmark that is not in the list.
    """
    benchmarks = content.get("benchmark")
    if not isinstance(benchmarks, list):
        return [check_settings(content, where)]
    if not benchmarks:
        raise SettingsError(f"{where}: benchmark: the list is empty; name at least one")
    kinds: list[str] = []
    for place, one in enumerate(benchmarks := list(map(complete_benchmark, benchmarks))):
        if not isinstance(one, dict) or not isinstance(one.get("kind"), str):
            raise SettingsError(f"{where}: benchmark.{place}: expected settings with a kind, such as "
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
        if unknown := [str(one) for one in named if one not in kinds]:
            raise SettingsError(f"{where}.{place}.benchmark: {', '.join(unknown)} is not a benchmark of this file; it "
                                f"has {', '.join(dict.fromkeys(kinds))}")
        if kind in named:
            kept.append({key: value for key, value in entry.items() if key != "benchmark"}
                        if isinstance(entry, dict) else entry)
    return kept


_FILE = r"^.+\.py:[A-Za-z_][A-Za-z0-9_]*$"
_STRATEGY = {"anyOf": [{"type": "string"}, {"additionalProperties": True, "type": "object"}]}
_ATTRIBUTE = re.compile(r"^ {8}([a-z]\w*(?:, [a-z]\w*)*): ((?:.|\n {12})+)", re.MULTILINE)


def settings_schema() -> dict[str, Any]:
    """Return the JSON Schema of a settings file."""
    schema = RunSettings.model_json_schema(schema_generator=_WithDescriptions)
    for family in FAMILIES:
        schema["$defs"][f"{family}_strategy"] = _strategy(family)
        for owner in (schema, schema["$defs"]["Included"]):
            owner["properties"][family] = _refer(owner["properties"][family], family)
    own = schema["$defs"]["ModelSettings"]["properties"]["models"]["additionalProperties"]
    for node in schema["properties"]["models"]["anyOf"]:  # one model, or a list
        one = dict(node.get("items", node))
        target = node if node.get("type") != "array" else node["items"]
        target.clear()
        target["anyOf"] = [one, own]
    schema["properties"]["model"]["anyOf"] = schema["properties"]["models"]["anyOf"]
    for part in ("Excluded", "Included"):
        for name, value in schema["$defs"][part]["properties"].items():
            value.setdefault("description", f"Values of `{name}`.")
    return schema


class _WithDescriptions(GenerateJsonSchema):
    """Adds descriptions of settings from the `Attributes` section in the docstring of their class or of a base class.
    """

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        made = super().model_schema(schema)
        texts: dict[str, str] = {"kind": "Selects these settings."}
        for base in reversed(schema["cls"].__mro__):
            if issubclass(base, BaseModel):
                texts |= {name: " ".join(found[2].split()) for found in _ATTRIBUTE.finditer(base.__doc__ or "")
                          for name in found[1].split(", ")}
        for name, value in made.get("properties", {}).items():
            if name in texts:
                value.setdefault("description", texts[name])
        if "Attributes:" in made.get("description", ""):
            made["description"] = made["description"].partition("Attributes:")[0].strip()
        return made


def _strategy(family: Family) -> dict[str, Any]:
    names = list(built_in(family))
    return {"anyOf": [{"enum": names}, {"type": "string", "pattern": _FILE},
                      {"type": "string", "description": "Name of an installed package's entry point."},
                      *(_parameters(family, name) for name in names),
                      {"type": "object", "required": ["kind"], "properties": {
                          "kind": {"type": "string", "not": {"enum": names}}, "name": {"type": "string"}}}]}


def _parameters(family: Family, name: str) -> dict[str, Any]:
    """Return the schema of a strategy with parameters. A list as a value makes one strategy per element."""
    function = built_in(family)[name]
    fields = {}
    for field, schema in fields_schema(function).items():
        inner = schema.get("description")
        value = {"$ref": f"#/$defs/{inner}_strategy"} if inner in FAMILIES else schema
        about = {"description": inner} if inner and value is schema else {}
        fields[field] = value if takes_several(function, field) else {
            "anyOf": [value, {"type": "array", "items": value}], **about}
    if family == "reasoning" and name != SEARCH_ONLY:
        fields |= {one: {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
                   for one in OF_STRATEGY if one not in fields}
    needed = [field for field, schema in fields_schema(function).items() if "default" not in schema]
    return {"type": "object", "additionalProperties": False, "required": ["kind", *needed],
            "properties": {"kind": {"const": name}, "name": {"type": "string"}, **fields}}


def _refer(node: Any, family: Family) -> Any:
    if node == _STRATEGY:
        return {"$ref": f"#/$defs/{family}_strategy"}
    if isinstance(node, dict):
        return {key: _refer(value, family) for key, value in node.items()}
    return [_refer(one, family) for one in node] if isinstance(node, list) else node
