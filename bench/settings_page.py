"""Write docs/settings.md: every setting with its values, default and meaning, from the JSON Schema of `ragbed schema`.

    python bench/settings_page.py

`make docs` runs it, and a test checks that the page is up to date.
"""
from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ragbed.experiments.settings.file import settings_schema
from ragbed.guests import own_entries
from ragbed.strategies.types import FAMILIES

PAGE = Path(__file__).parent.parent / "docs" / "settings.md"
_HEAD = """# Settings

Every key of a settings file, with its values, its default and its meaning. This page is made by `make docs` from
`ragbed schema`: do not edit it here. Most keys of a run also take a list, and each value is a level of a factor.
`exclude` and `include` also take the factors of the run. [Experiments](experiments.md) explains runs, and
[strategies](strategies.md) the parameters of strategies.
"""
_SECTIONS = {  # title of each section, and where its kinds are: definitions of the schema, or a key with its owner
    "A run": ["RunSettings"], "Benchmarks": "RunSettings.benchmark", "Retrievers": "RunSettings.retriever",
    "Build": ["BuildSettings"], "Chunkers": "BuildSettings.chunker", "Embedders": "BuildSettings.embedder",
    "Vectors": "BuildSettings.vectors", "Rerankers": "Reranked.by", "Reasoning strategies": "reasoning_strategy",
    "Retrieval strategies": "retrieval_strategy", "History strategies": "history_strategy",
    "Pipelines": "RunSettings.pipelines", "Judges": "RunSettings.judge", "Support": "RunSettings.support",
    "Grader": ["Grader"], "Refusal model": ["RefusalModel"], "Custom metrics": ["OwnMetric"],
    "Limits of a question": ["Limits"], "Budget": ["Budget"], "Cache of calls": ["CacheSettings"],
    "Serving": ["ServeSettings"],
    "Calls": ["ModelSettings"], "Models with their own settings": ["ModelConfig"],
    "Limits of calls": ["CallLimits"], "Local models": ["LocalSettings"],
    "Prices": ["Price"], "Excluded cells": ["Excluded"], "Included cells": ["Included"]}
_STRATEGIES = {f"{family}_strategy": f"{family.capitalize()} strategies" for family in FAMILIES}
_DEFAULTS = {"models": "`RAGBED_MODEL`, or a model on this machine"}  # the schema has what this machine uses
_BOUNDS = (("minimum", "at least"), ("exclusiveMinimum", "above"), ("maximum", "at most"))
Field = Mapping[str, Any]


def page() -> str:
    """Return the text of docs/settings.md."""
    schema = settings_schema()
    own = schema["properties"].items()  # what guests add is at the end
    defined: dict[str, Field] = {"RunSettings": {**schema, "properties": dict(
        sorted(own, key=lambda item: item[0] in own_entries("setting")))}}
    for name, one in sorted(schema["$defs"].items(), key=lambda item: "settings__retrievers" in item[0]):
        defined[name.rpartition("__")[2]] = one  # a retriever with the keys of a run, and not a part of another one
    kinds = {title: dict(_kinds(where, defined)) for title, where in _SECTIONS.items()}
    sections = _STRATEGIES | {"OwnMetrics": "Custom metrics"} | {
        name: title for title, found in kinds.items() for name in found}
    if missing := set(_references(schema)) - {*sections, "JsonValue"}:
        raise SystemExit(f"no section of docs/settings.md has the settings {', '.join(sorted(missing))}")
    return "\n".join([_HEAD, *(line for title, found in kinds.items() for line in _section(title, found, sections))])


def _kinds(where: list[str] | str, defined: Mapping[str, Field]) -> Iterator[tuple[str, Field]]:
    """Yield the name and the definition of each kind of settings of a section."""
    if isinstance(where, list):
        yield from ((name, defined[name]) for name in where)
    elif "." in where:
        owner, _, key = where.partition(".")
        references = _references(defined[owner]["properties"][key])
        yield from ((name, defined[name]) for name in dict.fromkeys(references))
    else:
        yield from ((one["properties"]["kind"]["const"], one) for one in defined[where]["anyOf"]
                    if "const" in one.get("properties", {}).get("kind", {}))


def _references(field: Any) -> Iterator[str]:
    if isinstance(field, dict):
        if "$ref" in field:
            yield re.split("/|__", field["$ref"])[-1]
        for name, value in field.items():
            yield from () if name == "mapping" else _references(value)
    elif isinstance(field, list):
        for one in field:
            yield from _references(one)


def _section(title: str, kinds: Mapping[str, Field], sections: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of a section: each key once, below the kinds that have it."""
    alike: dict[str, list[str]] = {}
    labels = [one.get("properties", {}).get("kind", {}).get("const", name) for name, one in kinds.items()]
    for label, one in zip(labels, kinds.values(), strict=True):
        for key, field in one.get("properties", {}).items():
            if key != "kind" and not str(field.get("description")).startswith(("Same as", "Values of")):
                alike.setdefault(_row(key, field, key in one.get("required", ()), sections), []).append(label)
    yield from (f"## {title}", "")
    if len(labels) > 1:
        yield from (f"Kinds: {_listed(labels)}.", "")
    groups: dict[str, list[str]] = {}
    for row, names in alike.items():
        others = [label for label in labels if label not in names]
        group = ("" if len(labels) == 1 else "every kind" if not others else
                 f"all but {_listed(others)}" if len(others) < len(names) / 2 else _listed(names))
        groups.setdefault(group, []).append(row)
    for group, rows in groups.items():
        yield from ([f"**{group}**", ""] if group else [])
        meanings = [row.partition("): ")[2] for row in rows]
        yield from (row.replace(meaning, "as above") if meaning and meaning == before else row
                    for row, meaning, before in zip(rows, meanings, ["", *meanings], strict=False))
        yield ""


def _row(key: str, field: Field, required: bool, sections: Mapping[str, str]) -> str:
    values, default = _values(field, sections), _default(field)
    default = _DEFAULTS.get(key, default) if default else ""
    facts = "; ".join(filter(None, (values, "required" if required else default and f"default {default}")))
    text = " ".join(field.get("description", "").split())
    return f"- `{key}` ({facts})" + (f": {text}" if text else "")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _values(field: Field, sections: Mapping[str, str]) -> str:
    """Return the values of a key in words, with their bounds, or a link to the section of the settings that it takes.
    """
    if titles := sorted({sections[name] for name in _references(field) if name in sections}):
        return ", ".join(f"[{title}](#{title.lower().replace(' ', '-')})" for title in titles)
    if "anyOf" in field or "oneOf" in field:
        parts = [part for one in field.get("anyOf", field.get("oneOf")) if (part := _values(one, sections))]
        return " or ".join(dict.fromkeys(part for part in parts if part != "list of " + parts[0]))
    if "enum" in field or "const" in field:
        return _listed(field.get("enum", [field.get("const")]))
    kind = {"string": "text", "boolean": "true, false", "null": "", "object": "values by name",
            "number": "number", "integer": "integer"}.get(field.get("type", ""), "")
    if field.get("type") == "array":
        first = field["items"] if "items" in field else field["prefixItems"][0]
        return f"list of {_values(first, sections) or 'any values'}"
    bounds = ", ".join(f"{words} {field[name]:,}" for name, words in _BOUNDS if name in field)
    bounds = re.sub("at least (.*), at most", r"\1 to", bounds)
    return f"{kind} {bounds}".strip()


def _default(field: Field) -> str:
    if "default" not in field:
        return next((_default(one) for one in field.get("anyOf", ()) if "default" in one), "")
    value = field["default"]
    value = value[0] if isinstance(value, list) and len(value) == 1 else value
    if value in (None, [], "") or isinstance(value, dict):
        return f"`{value['kind']}`" if isinstance(value, dict) and "kind" in value else ""
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
