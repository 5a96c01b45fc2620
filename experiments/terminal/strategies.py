"""The strategies that there are, ours and those of installed packages, with the settings of each."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from strategies.settings.choosing import known
from strategies.settings.parameters import fields_schema
from strategies.settings.plugins import FAMILIES, Family, installed

_LEAST = (("minimum", "at least"), ("exclusiveMinimum", "above"))
_MOST = (("maximum", "at most"), ("exclusiveMaximum", "below"))


def strategy_rows() -> Iterator[dict[str, Any]]:
    """Retrieval and reasoning strategies: what each does, its settings with defaults and bounds, and whose it is.

    Installed packages are loaded for it; of one that cannot be used `does` says why.
    """
    for family in FAMILIES:
        for name, function in known(family).items():
            yield _row(family, name, function, "ragbed")
    for family in FAMILIES:
        for found in installed(family, tuple(known(family))):
            if isinstance(found, tuple):
                name, package, why = found
                yield {"kind": family, "name": name, "does": why, "settings": "", "from": package}
            else:
                yield _row(family, found.kind, found.function, found.package)


def _row(family: Family, name: str, function: Callable[..., Any], package: str) -> dict[str, Any]:
    does = (function.__doc__ or "").strip().splitlines() or [""]
    return {"kind": family, "name": name, "does": does[0], "from": package,
            "settings": ", ".join(_setting(*one) for one in fields_schema(function).items())}


def _setting(name: str, schema: dict[str, Any]) -> str:
    default = schema.get("default", "has to be given")
    said = str(default).lower() if default is None or isinstance(default, bool) else str(default)
    described = _bounds(schema)
    return f"{name}: {said}{f' ({described})' if described else ''}"


def _bounds(schema: dict[str, Any]) -> str:
    """What a value may be, in words."""
    if "anyOf" in schema:
        return " or ".join(said for one in schema["anyOf"] if (said := _bounds(one)))
    if "enum" in schema:
        return ", ".join(map(str, schema["enum"]))
    if "minimum" in schema and "maximum" in schema:
        return f"{schema['minimum']} to {schema['maximum']}"
    ends = [f"{word} {schema[key]}" for key, word in (*_LEAST, *_MOST) if key in schema]
    plain = "true, false" if schema.get("type") == "boolean" else str(schema.get("description", ""))
    return ", ".join(ends) or plain
