"""The strategies that there are, ours and those of installed packages, with the settings of each.

What there is, for `ragbed list`: rows of plain values.

Writing the files that a strategy of one's own begins with.
"""
from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from documents.errors import SettingsError
from strategies.catalogue import REASONING, RETRIEVAL
from strategies.settings.choosing import known
from strategies.settings.parameters import fields_schema
from strategies.settings.plugins import FAMILIES, Family, installed

if TYPE_CHECKING:
    from experiments.benchmarks import Selection

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


Row = dict[str, Any]


def strategies() -> list[Row]:
    """Retrieval and reasoning strategies, ours and those of installed packages."""
    return list(strategy_rows())


def retrievers() -> list[Row]:
    """Kinds of retriever and their settings."""
    from experiments.settings.retrievers import Searched
    from retrieval.retrievers import KINDS
    return [{"name": kind.model_fields["kind"].default, "does": (kind.__doc__ or "").strip().splitlines()[0],
             "settings": ", ".join([*(name for name in kind.model_fields if name != "kind"), *Searched.model_fields])}
            for kind in KINDS]


def benchmarks() -> list[Row]:
    """Kinds of benchmark: what each is, what it measures, and whether its files are here."""
    from experiments.benchmarks import BENCHMARKS
    return [_benchmark(kind, settings) for kind, settings in BENCHMARKS.items()]


def _benchmark(kind: str, settings: type[Selection]) -> Row:
    from experiments.metrics import GROUPS
    about, scheme = settings.about, settings.scheme
    metrics = [metric.shape for group in scheme.groups if group in GROUPS for metric in GROUPS[group].metrics]
    return {"name": kind, "is": (settings.__doc__ or "").strip().splitlines()[0], "paper": about.paper,
            "licence": about.licence, "size": about.size, "metrics": metrics, "judge": scheme.rubric or "none",
            "columns": list(scheme.columns), "views": list(scheme.views), "published": list(scheme.published),
            "run_as": dict(about.settings), "as_published": dict(about.as_published), "get": about.get,
            "here": _here(settings), "settings": [name for name in settings.model_fields if name != "kind"]}


def _here(settings: type[Selection]) -> str:
    from experiments.benchmarks.hub import is_cached
    path = settings.model_fields.get("path")
    if path is None:
        return "bundled"
    if isinstance(path.default, str) and path.default.startswith("hub:"):
        return f"{path.default} " + ("is in the hub's cache" if is_cached(path.default) else
                                     "is not in the hub's cache; it is fetched when first needed, or give a path")
    return "give a path"


def conditions() -> list[Row]:
    """What can stand in for retrieval."""
    return [{"name": name, "does": does} for name, does in CONDITIONS.items()]


def rules() -> list[Row]:
    """What a prompt demands of an answer."""
    return [{"name": name, "does": does} for name, does in RULES.items()]


def perturbations() -> list[Row]:
    """What can be done to the evidence."""
    return [{"name": name, "does": does} for name, does in PERTURBATIONS.items()]


def metrics() -> list[Row]:
    """Metrics by the name that settings, records and tables use."""
    from experiments.metrics import METRICS
    return [{"name": metric.shape, "over": metric.over, "is": metric.description} for metric in METRICS.values()]


def models() -> list[Row]:
    """Local models of the catalogue and whether they are here."""
    from agents import catalogue
    return [{"name": entry.name, "kind": entry.kind, "licence": entry.licence,
             "size": f"{entry.size / 1e6:.0f} MB", "here": catalogue.find(entry) is not None, "note": entry.note}
            for entry in catalogue.ENTRIES]


CONDITIONS = {
    "closed-book": "no documents: what the model knows",
    "given": "the benchmark's own chunks, in its order",
    "gold": "the gold chunks only",
    "retrieved": "what the retriever finds",
    "full": "the whole document, such as a novel up to the paragraph that tells the answer"}
RULES = {
    "grounded": "the documents alone, cited; a refusal where they do not hold the answer",
    "open": "the documents and what the model knows, cited; no refusal is offered",
    "reading": "the documents alone; always an answer, without citations",
    "choice": "one of the question's options, without citations",
    "closed-book": "what the model knows; comes with the condition of that name"}
PERTURBATIONS = {
    "none": "the evidence as the condition has it",
    "shuffle": "its order is drawn anew for each question, by the run's seed",
    "separators_off": "chunks are shown without numbers, joined by a blank line; nothing can be cited",
    "drop_gold": "the gold chunks are left out, and the question counts as unanswerable",
    "table": "the table that the documents were made from stands in their place",
    "negatives@N": "N chunks that are not gold are added; of a mined benchmark mined ones alone, also of a third by "
                   "hardness (negatives@N:hard) or of a miner (negatives@N:MINER)",
    "pool@N": "what is searched is the gold and N chunks that are not, of whichever sort as above",
    "gold_at@N": "the gold chunks stand together from position N, counted from 1",
    "A+B": "both, such as shuffle+separators_off"}
INVENTORY: dict[str, Callable[[], list[Row]]] = {
    "strategies": strategies, "retrievers": retrievers, "benchmarks": benchmarks,
    "conditions": conditions, "rules": rules, "perturbations": perturbations,
    "metrics": metrics, "models": models}


def write_strategy(name: str, family: str) -> None:
    """Write `NAME.py` and `test_NAME.py` into the current folder.

    Raises:
        SettingsError: the name cannot be a strategy's, or a file is there already.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name) or name.startswith("test_"):
        raise SettingsError(f"{name!r:.60} cannot name a strategy; give a name of at most 40 small letters, digits and "
                            "_, such as look_twice")
    if name in (*REASONING, *RETRIEVAL):
        raise SettingsError(f"{name} is a strategy of ragbed's own; give another name")
    if name in sys.stdlib_module_names:
        raise SettingsError(f"{name} is a module of Python's own; give another name")
    texts = {Path(f"{name}.py"): _template(family), Path(f"test_{name}.py"): _template(f"{family}_test")}
    there = next((path for path in texts if path.exists()), None)
    if there is not None:
        raise SettingsError(f"{there} is there already; give another name, or remove it first")
    for path, text in texts.items():
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text.replace("NAME", name))
        except OSError as error:
            raise SettingsError(f"{path}: cannot be written: {error.strerror}") from error


def _template(name: str) -> str:
    return resources.files("experiments").joinpath("data", "templates", f"{name}.py.txt").read_text(encoding="utf-8")
