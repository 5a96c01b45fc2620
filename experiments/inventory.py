"""What there is, for `ragbed list`: rows of plain values."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

Row = dict[str, Any]


def strategies() -> list[Row]:
    """Retrieval and reasoning strategies, with the first line of their documentation."""
    from strategies.catalogue import REASONING, RETRIEVAL
    return [{"kind": kind, "name": name, "does": (strategy.__doc__ or "").strip().splitlines()[0]}
            for kind, known in (("retrieval", RETRIEVAL), ("reasoning", REASONING))
            for name, strategy in known.items()]


def retrievers() -> list[Row]:
    """Kinds of retriever and their settings."""
    from experiments.settings import Dense
    return [{"name": "dense", "settings": ", ".join(Dense.model_fields),
             "does": "nearest chunks by embedding, FAISS flat or HNSW by size"}]


def benchmarks() -> list[Row]:
    """Kinds of benchmark and their settings."""
    from experiments.benchmarks import Crest, Demo, OwnQuestions
    return [{"name": kind.model_fields["kind"].default, "settings": ", ".join(kind.model_fields),
             "is": (kind.__doc__ or "").strip().splitlines()[0]} for kind in (Demo, Crest, OwnQuestions)]


def metrics() -> list[Row]:
    """Metrics by the name that settings, records and tables use."""
    from experiments.metrics.table import METRICS
    return [{"name": metric.name, "over": metric.over, "is": metric.description} for metric in METRICS.values()]


def models() -> list[Row]:
    """Local models of the catalogue and whether they are here."""
    from agents import catalogue
    return [{"name": entry.name, "kind": entry.kind, "licence": entry.licence,
             "size": f"{entry.size / 1e6:.0f} MB", "here": catalogue.find(entry) is not None, "note": entry.note}
            for entry in catalogue.ENTRIES]


INVENTORY: dict[str, Callable[[], list[Row]]] = {
    "strategies": strategies, "retrievers": retrievers, "benchmarks": benchmarks, "metrics": metrics, "models": models}
