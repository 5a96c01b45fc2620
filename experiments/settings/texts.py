"""Parse settings from YAML texts: of files, and of options of the command line that hold a strategy, a model or a
retriever."""
from __future__ import annotations

from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from ragbed.agents.model_settings import ModelSettings, define_models
from ragbed.documents.errors import SettingsError
from ragbed.experiments.settings.validation import explain
from ragbed.retrieval.filters.parser import Where
from ragbed.retrieval.retrievers import RetrieverSettings
from ragbed.retrieval.types import RetrieverKind
from ragbed.strategies.settings.strategy_config import Spec

_MAX_INTEGER = 2**63 - 1


class _Loader(yaml.SafeLoader):
    """Rejects integers beyond 64 bits, and duplicate keys, of which PyYAML silently keeps only the last."""

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


def parse_yaml(text: str, where: str) -> Any:
    """Return the value of a YAML text. Raises SettingsError that starts with `where` if it is not valid YAML."""
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
    except (ValueError, LookupError, AttributeError) as error:  # PyYAML raises these itself
        raise SettingsError(f"{where}: not valid YAML: a date or a tagged value is malformed") from error


def parse_spec(text: str, option: str) -> Spec:
    """Parse a strategy from an option's text, such as `direct`, `my.py:recipe` or `{kind: self_consistency, of:
    direct}`. Raises SettingsError if the text is neither a name nor a mapping."""
    value = parse_yaml(text, option)
    if not isinstance(value, str | dict) or not value:
        raise SettingsError(f"{option} {text!r:.80}: expected a name from `ragbed list strategies`, FILE.py:FUNCTION, "
                            "or settings such as '{kind: self_consistency, of: direct}'")
    return value


def parse_model(text: str, **calls: Any) -> tuple[str, ModelSettings]:
    """Parse a model from an option's text: a name, or settings such as `{model: openai:NAME, temperature: none}`.
    Return its name, and the settings `calls` that define it. Raises SettingsError if the settings are invalid."""
    try:
        given = define_models({"model": text, "calls": calls}, "model")
        return given["model"], ModelSettings.model_validate(given["calls"])
    except ValidationError as error:
        raise SettingsError(f"--model: {explain(error, ModelSettings)}") from error
    except ValueError as error:
        raise SettingsError(f"--model: {error}") from error


class _RetrieverOptions(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    retriever: RetrieverSettings
    where: Where = ()


def parse_retriever(retriever: str, where: list[str]) -> tuple[RetrieverKind, tuple[str, ...]]:
    """Parse a retriever, such as `bm25` or `{kind: fused, of: [dense, bm25], where: year >= 2022}`, and further
    conditions on chunks, such as `page >= 3`. Raises SettingsError if one of them is invalid."""
    given = parse_yaml(retriever, "--retriever")
    try:
        if isinstance(given, dict) and "where" in given:
            inner = _RetrieverOptions(retriever="dense", where=given["where"]).where
            given, where = {name: value for name, value in given.items() if name != "where"}, [*where, *inner]
        options = _RetrieverOptions(retriever=given, where=where)
    except ValidationError as error:
        raise SettingsError(explain(error, _RetrieverOptions)) from error
    return options.retriever, options.where
