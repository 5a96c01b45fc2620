"""The JSON Schema of a run's settings, with what each strategy may be given."""
from __future__ import annotations

from typing import Any

from ragbed.experiments.settings.run import RunSettings
from ragbed.strategies.settings.choosing import Family, known
from ragbed.strategies.settings.parameters import fields_schema, takes_several
from ragbed.strategies.settings.plugins import FAMILIES

_FILE = r"^.+\.py:[A-Za-z_][A-Za-z0-9_]*$"
_NAMED = {"anyOf": [{"type": "string"}, {"additionalProperties": True, "type": "object"}]}


def settings_schema() -> dict[str, Any]:
    """Return the schema. A strategy is one of those that there are, of a file, or any name, as of a package."""
    schema = RunSettings.model_json_schema()
    for family in FAMILIES:
        schema["$defs"][f"{family}_strategy"] = _strategy(family)
        for owner in (schema, schema["$defs"]["Included"]):
            owner["properties"][family] = _referring(owner["properties"][family], family)
    return schema


def _strategy(family: Family) -> dict[str, Any]:
    own = list(known(family))
    return {"anyOf": [{"enum": own}, {"type": "string", "pattern": _FILE},
                      {"type": "string", "description": "The name of an installed package's entry point."},
                      *(_settings(family, name) for name in own),
                      {"type": "object", "required": ["kind"], "properties": {
                          "kind": {"type": "string", "not": {"enum": own}}, "name": {"type": "string"}}}]}


def _settings(family: Family, name: str) -> dict[str, Any]:
    """Settings of one strategy; a list in the place of one value is a sweep."""
    function = known(family)[name]
    fields = {}
    for field, schema in fields_schema(function).items():
        of = schema.get("description")
        value = {"$ref": f"#/$defs/{of}_strategy"} if of in FAMILIES else schema
        fields[field] = value if takes_several(function, field) else {"anyOf": [value, {"type": "array",
                                                                                       "items": value}]}
    needed = [field for field, schema in fields_schema(function).items() if "default" not in schema]
    return {"type": "object", "additionalProperties": False, "required": ["kind", *needed],
            "properties": {"kind": {"const": name}, "name": {"type": "string"}, **fields}}


def _referring(node: Any, family: Family) -> Any:
    if node == _NAMED:
        return {"$ref": f"#/$defs/{family}_strategy"}
    if isinstance(node, dict):
        return {key: _referring(value, family) for key, value in node.items()}
    return [_referring(one, family) for one in node] if isinstance(node, list) else node
