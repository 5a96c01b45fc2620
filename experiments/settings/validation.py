"""Turn pydantic's errors into one-line messages that name the setting and the valid ones."""
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, RootModel, ValidationError

from ragbed.documents.errors import did_you_mean
from ragbed.retrieval.types import RetrieverKind

_MAX_SHOWN = 60  # longest value in a message, in characters
_NOT_A_MAPPING = ("model_type", "model_attributes_type", "dict_type")  # types of pydantic's error


def explain(errors: ValidationError, model: type[BaseModel]) -> str:
    """Return one line on the first of pydantic's errors: key, problem and, for an unknown key, valid keys."""
    error = errors.errors(include_url=False)[0]
    valid, place = _resolve_place(model, error["loc"][:-1])
    key = ".".join(map(str, (*place, *error["loc"][-1:])))
    kind, given, context = error["type"], error["input"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return f"unknown setting {key!r}; {_suggest(key, valid, model) or 'valid settings: ' + ', '.join(valid)}"
    if kind == "union_tag_not_found" or (
            kind == "union_tag_invalid" and isinstance(given, dict) and given.get("kind") is None):
        return f"{key}: `kind` is missing; write {{kind: KIND}}"
    if kind == "union_tag_invalid":
        return f"{key}: unknown kind {context['tag']}; {_mean(context['tag'], context['expected_tags'], 'valid kinds')}"
    if given is None:
        return f"{key}: the value is missing; give one, or omit the key"
    if kind in _NOT_A_MAPPING:
        return f"{key}: expected a mapping such as {{key: value}}, not {str(given)[:_MAX_SHOWN]!r}"
    message = str(error["msg"]).removeprefix("Value error, ")
    if kind == "literal_error":
        message = f"unknown value {str(given)[:_MAX_SHOWN]!r}; {_mean(given, context['expected'], 'choose from')}"
    return f"{key}: {message}" if key else message  # without a key, the message itself names the settings


def _mean(given: Any, expected: str, otherwise: str) -> str:
    names = re.findall("'([^']+)'", expected)
    return did_you_mean(str(given)[:_MAX_SHOWN], names).rstrip() or f"{otherwise}: {', '.join(names)}"


def _suggest(key: str, valid: Sequence[str], model: type[BaseModel]) -> str:
    name = key.rpartition(".")[2]
    elsewhere = dict.fromkeys(one for one in _dotted_keys(model) if one.rpartition(".")[2] == name and one != key)
    depth = min((one.count(".") for one in elsewhere), default=0)
    near = get_close_matches(name, valid, 1) or [one for one in elsewhere if one.count(".") == depth]
    return f"did you mean {' or '.join(map(repr, near))}?" if near else ""


def _dotted_keys(model: type[BaseModel], above: tuple[type[BaseModel], ...] = ()) -> Iterator[str]:
    """Yield the dotted key of every setting. Retrievers inside retrievers are skipped, since they could nest endlessly.
    """
    inside_retriever = any(issubclass(one, RetrieverKind) for one in (*above, model))
    for name, field in model.model_fields.items():
        key = field.alias or name
        yield key
        for inner in _models_in(field.annotation):
            if not (inside_retriever and issubclass(inner, RetrieverKind)):
                yield from (f"{key}.{below}" for below in _dotted_keys(inner, (*above, model)))


def _resolve_place(model: type[BaseModel], place: Sequence[int | str]) -> tuple[list[str], list[int | str]]:
    """Return the valid keys at the location of an error, and the location in the file. This removes the kinds of tagged
    unions, which are part of pydantic's location."""
    models, keys = [model], list[int | str]()
    for part in place:
        inner = [below for one in models if part in one.model_fields
                 for below in _models_in(one.model_fields[str(part)].annotation)]
        kinds = [one for one in models if "kind" in one.model_fields and one.model_fields["kind"].default == part]
        models = inner or kinds or models
        keys += [] if kinds and not inner else [part]
    return list(dict.fromkeys(field.alias or key for one in models for key, field in one.model_fields.items())), keys


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, RootModel):  # a list of settings
        return _models_in(annotation.model_fields["root"].annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models_in(part)]
