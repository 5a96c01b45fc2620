"""Build the rows of `ragbed list`."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ragbed.strategies.settings.parameters import fields_schema
from ragbed.strategies.settings.plugins import installed_plugins
from ragbed.strategies.settings.strategy_config import built_in
from ragbed.strategies.types import FAMILIES, Family

if TYPE_CHECKING:
    from ragbed.experiments.benchmarks import Selection

Row = dict[str, Any]
_LEAST = (("minimum", "at least"), ("exclusiveMinimum", "above"))
_MOST = (("maximum", "at most"), ("exclusiveMaximum", "below"))


def strategies() -> list[Row]:
    """List the strategies, including those of installed packages, with their settings. `does` explains why one cannot
    be used."""
    rows = [_row(family, name, function, "ragbed") for family in FAMILIES
            for name, function in built_in(family).items()]
    for family in FAMILIES:
        for found in installed_plugins(family, tuple(built_in(family))):
            if isinstance(found, tuple):
                name, package, why = found
                rows.append({"kind": family, "name": name, "does": why, "settings": "", "from": package})
            else:
                rows.append(_row(family, found.kind, found.function, found.package))
    return rows


def _row(family: Family, name: str, function: Callable[..., Any], package: str) -> Row:
    does = (function.__doc__ or "").strip().splitlines() or [""]
    settings = []
    for setting, schema in fields_schema(function).items():
        default = schema.get("default", "required")
        value = str(default).lower() if default is None or isinstance(default, bool) else str(default)
        bounds = _bounds(schema)
        settings.append(f"{setting}: {value}{f' ({bounds})' if bounds else ''}")
    return {"kind": family, "name": name, "does": does[0], "from": package, "settings": ", ".join(settings)}


def _bounds(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(bounds for one in schema["anyOf"] if (bounds := _bounds(one)))
    if "enum" in schema:
        return ", ".join(map(str, schema["enum"]))
    if "minimum" in schema and "maximum" in schema:
        return f"{schema['minimum']} to {schema['maximum']}"
    ends = [f"{word} {schema[key]}" for key, word in (*_LEAST, *_MOST) if key in schema]
    plain = "true, false" if schema.get("type") == "boolean" else str(schema.get("description", ""))
    return ", ".join(ends) or plain


def retrievers() -> list[Row]:
    """List the retrievers and their settings."""
    from ragbed.experiments.settings.retrievers import SearchSettings
    from ragbed.retrieval.retrievers import KINDS
    return [{"name": kind.model_fields["kind"].default, "does": (kind.__doc__ or "").strip().splitlines()[0],
             "settings": ", ".join([*(name for name in kind.model_fields if name != "kind"),
                                    *SearchSettings.model_fields])}
            for kind in KINDS]


def benchmarks() -> list[Row]:
    """List the benchmarks: what each measures, and whether its files are downloaded."""
    from ragbed.experiments.benchmarks import BENCHMARKS
    from ragbed.experiments.metrics import GROUPS
    rows: list[Row] = []
    for kind, settings in BENCHMARKS.items():
        about, scheme = settings.about, settings.scheme
        metrics = [metric.shape for group in scheme.groups if group in GROUPS for metric in GROUPS[group].metrics]
        rows.append({
            "name": kind, "is": (settings.__doc__ or "").strip().splitlines()[0], "paper": about.paper,
            "licence": about.licence, "size": about.size, "metrics": metrics, "judge": scheme.rubric or "none",
            "columns": list(scheme.columns), "views": list(scheme.views), "published": list(scheme.published),
            "run_as": dict(about.settings), "as_published": dict(about.as_published), "get": about.get,
            "here": _here(settings), "settings": [name for name in settings.model_fields if name != "kind"]})
    return rows


def _here(settings: type[Selection]) -> str:
    from ragbed.experiments.benchmarks.hub import is_cached
    path = settings.model_fields.get("path")
    if path is None:
        return "bundled"
    if isinstance(path.default, str) and path.default.startswith("hub:"):
        return f"{path.default} " + ("is in the hub's cache" if is_cached(path.default) else
                                     "is not in the hub's cache; it is downloaded when needed, or give a path")
    return "give a path"


def metrics() -> list[Row]:
    """List the metrics by their names in settings and tables."""
    from ragbed.experiments.metrics import METRICS
    return [{"name": metric.shape, "over": metric.over, "is": metric.description} for metric in METRICS.values()]


def models() -> list[Row]:
    """List the local models of the catalogue and of the hub, and whether each is downloaded."""
    from ragbed.guests import loaded
    return [row for provider in dict.fromkeys(loaded("provider").values()) for row in provider.models()]


CONDITIONS = {
    "closed-book": "no documents, only the model's knowledge",
    "provided": "the chunks that the benchmark provides, in its order",
    "gold": "only the gold chunks",
    "retrieved": "chunks that the retriever finds",
    "full": "the whole document, such as a novel up to the paragraph with the answer"}
RULES = {
    "grounded": "answer from the documents only, with citations, or refuse",
    "open": "answer from documents and knowledge, with citations, never refuse",
    "reading": "answer from the documents only, without citations, never refuse",
    "choice": "choose one of the question's options, without citations",
    "closed-book": "answer from knowledge; comes with the condition closed-book"}
PERTURBATIONS = {
    "none": "no change",
    "shuffle": "chunks in random order, by the run's seed",
    "unnumbered": "chunks without numbers, so nothing can be cited",
    "drop_gold": "without the gold chunks; the question counts as unanswerable",
    "table": "the table that the documents were generated from, instead of them",
    "negatives@N": "adds N chunks that are not gold; in a mined benchmark, N mined negatives, or only those of one "
    "hardness (negatives@N:hard) or one miner (negatives@N:MINER)",
    "pool@N": "searches only the gold and N negatives, chosen as for negatives@N",
    "gold_at@N": "the gold chunks together, beginning at position N; the first position is 1",
    "A+B": "both, such as shuffle+unnumbered"}


def guests() -> list[Row]:
    """List the guests and what each adds."""
    from ragbed.guests import BUILT_IN, installed
    return [{"name": guest.name, "from": guest.origin or "ragbed",
             "adds": "; ".join(f"{slot}: {', '.join(names)}" for slot, names in guest.adds.items())}
            for guest in (*BUILT_IN, *installed())]


def _named(texts: Mapping[str, str]) -> list[Row]:
    return [{"name": name, "does": does} for name, does in texts.items()]


INVENTORY: dict[str, Callable[[], list[Row]]] = {
    "strategies": strategies, "retrievers": retrievers, "benchmarks": benchmarks,
    "conditions": partial(_named, CONDITIONS), "rules": partial(_named, RULES),
    "perturbations": partial(_named, PERTURBATIONS),
    "metrics": metrics, "models": models, "guests": guests}
