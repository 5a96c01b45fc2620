"""Parameters of OpenAI's API that change what a client gets: those that cannot be served are refused, not ignored."""
from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import HTTPException

from ragbed.documents.errors import MissingExtra
from ragbed.experiments.guests.serving.state import http_error

_MAX_SCHEMA, _MAX_NESTED, _MAX_REFERENCES = 20_000, 32, 10_000  # characters, levels, references followed in a check
_UNSUPPORTED = ("pattern", "patternProperties", "$id", "$anchor", "$dynamicRef", "$dynamicAnchor")  # costly, or remote
_NAMES, _DATA = ("properties", "$defs", "definitions"), ("enum", "const", "default", "examples")
_TOOLS = "this server answers from its documents and calls no tools of clients; remove it"
_ONE_TEXT = "an answer is one text; remove it"
_AUTO = ("none", "auto")
_SERVED: Mapping[str, tuple[Callable[[Any], bool], str]] = {  # whether a value can be served, and otherwise why not
    "tools": (lambda value: value == [], _TOOLS),
    "functions": (lambda value: value == [], _TOOLS),
    "tool_choice": (_AUTO.__contains__, _TOOLS),
    "function_call": (_AUTO.__contains__, _TOOLS),
    "n": (lambda value: value == 1, "a request has one answer; send several requests"),
    "logprobs": (lambda value: value is False, "answers have no probabilities; remove it"),
    "top_logprobs": (lambda value: value == 0, "answers have no probabilities; remove it"),
    "modalities": (lambda value: value == ["text"], _ONE_TEXT),
    "audio": (lambda value: False, _ONE_TEXT),
    "web_search_options": (lambda value: False, "this server searches its documents only; remove it"),
    "background": (lambda value: value is False, "answers are not made in the background; remove it"),
    "prompt": (lambda value: False, "this server has no stored prompts; send the question in `input`")}


@dataclass(frozen=True)
class AnswerSchema:
    """A JSON Schema that an answer must fit."""

    schema: Mapping[str, Any]

    def complaint(self, value: Any) -> str:
        """Return why a value does not fit, in a line; empty if it fits."""
        from jsonschema import Draft202012Validator
        from jsonschema.validators import extend
        from referencing import Registry

        follow, left = Draft202012Validator.VALIDATORS["$ref"], iter(range(_MAX_REFERENCES))

        def follow_few(*given: Any) -> Any:
            if next(left, None) is None:
                raise RecursionError
            yield from follow(*given) or ()

        checker = extend(Draft202012Validator, {"$ref": follow_few})(dict(self.schema), registry=Registry())
        try:
            error = next(checker.iter_errors(value), None)
        except RecursionError:
            return "the schema refers to itself too often"
        return f"{'.'.join(map(str, error.absolute_path)) or 'the object'}: {error.message:.300}" if error else ""


def check_parameters(given: Mapping[str, Any]) -> None:
    """Raise HTTPException 400 for the first parameter that cannot be served."""
    for name, (is_served, why) in _SERVED.items():
        if given.get(name) is None or is_served(given[name]):
            continue
        if name in ("tools", "functions") and "none" in (given.get("tool_choice"), given.get("function_call")):
            continue  # the client wants no call
        raise http_error(400, f"{name}: {why}", "unsupported_parameter", name)


def read_format(given: Any, param: str) -> AnswerSchema | None:
    """Return the schema of `response_format`, or of `text.format` in the responses API; None for plain text. Raises
    HTTPException 400 if no answer can have this form."""
    if given is None or given == {"type": "text"}:
        return None
    kind = given.get("type") if isinstance(given, dict) else None
    if kind != "json_schema":
        raise _unsupported(param, "send text, or json_schema with a schema; without a schema there is no form to check")
    MissingExtra.check("serve", "jsonschema")
    from jsonschema import Draft202012Validator, SchemaError

    fields = given.get("json_schema", given)
    schema = fields.get("schema") if isinstance(fields, dict) else None
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise _unsupported(param, 'the schema must be an object with "type": "object"')
    if (length := len(json.dumps(schema))) > _MAX_SCHEMA:
        raise _unsupported(param, f"the schema has {length:,} characters; at most {_MAX_SCHEMA:,} are allowed")
    _check_keywords(schema, param)
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise _unsupported(param, f"the schema is not valid: {error.message:.300}") from error
    return AnswerSchema(schema)


def _check_keywords(schema: Mapping[str, Any], param: str) -> None:
    """Raise HTTPException for a schema that is nested too deeply, refers to other places, or could take forever."""
    level: list[tuple[Any, bool]] = [(schema, True)]  # values, and whether their keys are keywords
    for _ in range(_MAX_NESTED):
        for one, has_keywords in level:
            names = one.keys() if isinstance(one, dict) and has_keywords else ()
            if found := next((name for name in _UNSUPPORTED if name in names), None):
                raise _unsupported(param, f"the keyword {found} is not supported; describe the field in words instead")
            if "$ref" in names and not str(one["$ref"]).startswith("#"):
                raise _unsupported(param, "$ref must refer to the schema itself, as in #/$defs/NAME")
        level = [(inner, not has_keywords or name not in _NAMES) for one, has_keywords in level
                 for name, inner in (one.items() if isinstance(one, dict) else enumerate(one))
                 if isinstance(inner, dict | list) and not (has_keywords and name in _DATA)]
        if not level:
            return
    raise _unsupported(param, f"the schema is nested more than {_MAX_NESTED} levels deep")


def _unsupported(param: str, why: str) -> HTTPException:
    return http_error(400, f"{param}: {why}", "unsupported_value", param)
