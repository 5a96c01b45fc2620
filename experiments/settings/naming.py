"""What tables call settings that have no name of their own."""
from __future__ import annotations

import re
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError


def label(settings: BaseModel | str) -> str:
    """What tables call settings of some kind: the kind, and what is not as usual; a model by the end of its name."""
    if isinstance(settings, str):
        return settings
    usual = _usual(type(settings))
    fields = {name: value for name, value in settings if name not in ("kind", "model") and value != usual.get(name)}
    said = ", ".join(f"{name} {_value(value)}" for name, value in fields.items())
    first = re.split(r"[/#]", str(getattr(settings, "model", None) or getattr(settings, "kind", "")).rstrip("/"))[-1]
    return f"{first} ({said})" if said else first


@cache
def _usual(kind: type[BaseModel]) -> dict[str, Any]:
    """The values of settings of which nothing is said; empty where something has to be."""
    try:
        return dict(kind())
    except ValidationError:
        return {}


def _value(value: Any) -> str:
    if isinstance(value, BaseModel):
        return label(value)
    return "+".join(map(_value, value)) if isinstance(value, list | tuple) else str(value)
