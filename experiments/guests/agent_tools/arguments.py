"""Describe the arguments of a tool by JSON Schema, and check the arguments of a call.

Both come from the annotations of the tool's function. Models write arguments, so a wrong one is described in one line.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from ragbed.documents.errors import RagbedError, did_you_mean
from ragbed.strategies.types import ToolSpec

_MAX_DESCRIPTION, _MAX_ERRORS = 2_000, 3  # characters of a description; errors in one message


class ToolFailure(RagbedError):
    """A tool failed or refused. The message tells the model why, in one line."""


def describe_tool(function: Callable[..., Any], name: str, hidden: int = 0) -> tuple[ToolSpec, type[BaseModel]]:
    """Describe a function as a tool of this name, and return the model that checks its arguments. The first `hidden`
    parameters are not arguments of the tool. Raises TypeError if a parameter cannot be given by name."""
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    for key, one in list(inspect.signature(function).parameters.items())[hidden:]:
        if one.kind not in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY):
            raise TypeError(f"parameter {one} cannot be given by name; write plain parameters")
        fields[key] = hints.get(key, str), ... if one.default is one.empty else one.default
    model = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
    description = " ".join((inspect.getdoc(function) or "").split())[:_MAX_DESCRIPTION]
    return ToolSpec(name, description, _simplify(model.model_json_schema())), model


def _simplify(schema: Any) -> Any:
    """Leave out titles and `null`, which cost tokens: an argument may be left out anyway."""
    if isinstance(schema, list):
        return [_simplify(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kinds = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    if len(kinds) == 1:
        schema = {**kinds[0], **{key: value for key, value in schema.items() if key != "anyOf"}}
    return {key: {name: _simplify(one) for name, one in value.items()} if key in ("properties", "$defs") else
            _simplify(value) for key, value in schema.items()
            if not (key == "title" and isinstance(value, str)) and (key, value) != ("default", None)}


def read_arguments(model: type[BaseModel], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Check and convert the arguments of a call; `null` counts as left out. Raises ToolFailure with up to three errors.
    """
    fields = model.model_fields
    given = {name: value for name, value in arguments.items()
             if value is not None or name not in fields or fields[name].is_required()}
    try:
        checked = model.model_validate(given)
    except (ValidationError, RecursionError) as error:
        found = error.errors(include_url=False, include_input=False) if isinstance(error, ValidationError) else ()
        raise ToolFailure("; ".join(_describe_error(one, fields) for one in found[:_MAX_ERRORS])
                          or "the arguments are nested too deeply") from None
    return {name: getattr(checked, name) for name in fields if name in checked.model_fields_set}


def _describe_error(error: Any, fields: Mapping[str, Any]) -> str:
    name = ".".join(map(str, error["loc"]))[:60]
    if error["type"] != "extra_forbidden":
        return f"argument {name}: {error['msg'][:200]}"
    return (f"unknown argument {name!r}; {did_you_mean(name, fields)}"
            f"the arguments are {', '.join(fields) or 'none'}")
