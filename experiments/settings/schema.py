"""The JSON Schema of a run's settings, with a description of every setting and the parameters of every strategy."""
from __future__ import annotations

import re
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from ragbed.experiments.settings.run import RunSettings
from ragbed.strategies.settings.parameters import fields_schema, takes_several
from ragbed.strategies.settings.plugins import FAMILIES
from ragbed.strategies.settings.strategy_config import Family, built_in

_FILE = r"^.+\.py:[A-Za-z_][A-Za-z0-9_]*$"
_STRATEGY = {"anyOf": [{"type": "string"}, {"additionalProperties": True, "type": "object"}]}
_ATTRIBUTE = re.compile(r"^ {8}([a-z]\w*(?:, [a-z]\w*)*): ((?:.|\n {12})+)", re.MULTILINE)


def settings_schema() -> dict[str, Any]:
    """Return the JSON Schema of a settings file. A strategy is one of ragbed's, a function in a file, or the name of an
    installed strategy."""
    schema = RunSettings.model_json_schema(schema_generator=_WithDescriptions)
    for family in FAMILIES:
        schema["$defs"][f"{family}_strategy"] = _strategy(family)
        for owner in (schema, schema["$defs"]["Included"]):
            owner["properties"][family] = _refer(owner["properties"][family], family)
    for part in ("Excluded", "Included"):
        for name, value in schema["$defs"][part]["properties"].items():
            value.setdefault("description", f"Values of `{name}`.")
    return schema


class _WithDescriptions(GenerateJsonSchema):
    """Describes settings by the `Attributes` section of their class's docstring, or of a base class's."""

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
        fields[field] = value if takes_several(function, field) else {"anyOf": [value, {"type": "array",
                                                                                       "items": value}]}
    needed = [field for field, schema in fields_schema(function).items() if "default" not in schema]
    return {"type": "object", "additionalProperties": False, "required": ["kind", *needed],
            "properties": {"kind": {"const": name}, "name": {"type": "string"}, **fields}}


def _refer(node: Any, family: Family) -> Any:
    """Replace the generic schema of a strategy by a reference to the family's."""
    if node == _STRATEGY:
        return {"$ref": f"#/$defs/{family}_strategy"}
    if isinstance(node, dict):
        return {key: _refer(value, family) for key, value in node.items()}
    return [_refer(one, family) for one in node] if isinstance(node, list) else node
