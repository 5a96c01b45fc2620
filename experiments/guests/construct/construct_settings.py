"""Settings of `ragbed construct`."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ragbed.agents.model_settings import Limits, ModelSettings
from ragbed.documents.chunkers import ChunkerSettings
from ragbed.documents.errors import SettingsError
from ragbed.documents.shards import Shard
from ragbed.experiments.benchmarks import BenchmarkSettings
from ragbed.experiments.guests.construct.export_formats import Export
from ragbed.experiments.guests.construct.kinds import BENCHMARK_KINDS, KINDS
from ragbed.experiments.guests.construct.stages import Kind
from ragbed.experiments.settings.spending import Budget, update_budget
from ragbed.experiments.settings.targets import add_setting
from ragbed.experiments.settings.validation import explain
from ragbed.retrieval.embedders import EmbedderSettings, Sentence
from ragbed.retrieval.retrievers import Bm25, RetrieverSettings

TRIES = 5  # default number of instances per item


class ConstructSettings(BaseModel):
    """Settings of a construction: the kind, its sources, and the models.

    Attributes:
        sources: files, folders and globs.
        benchmark: benchmark whose questions become items, instead of sources.
        out: folder of the set.
        writer, solvers, judges: models, named as in `ragbed ask`; without solvers the writer solves.
        n: number of items to keep.
        tries: maximum number of instances to start; by default five per item.
        options: settings of the kind.
        licence: licence of the sources, for the card.
        exports: further formats to write the set in.
        chunker: how to cut documents; by default as the kind's paper does.
        retriever, embedder: used by stages that search, and to find duplicates.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: str
    sources: tuple[str, ...] = ()
    benchmark: BenchmarkSettings | None = None
    out: Path
    writer: str | None = None
    solvers: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    n: int = Field(default=100, ge=1)
    tries: int | None = Field(default=None, ge=1)
    seed: int = 0
    licence: str = ""
    options: dict[str, Any] = Field(default_factory=dict)
    exports: tuple[Export, ...] = ()
    chunker: ChunkerSettings | None = None
    retriever: RetrieverSettings = Bm25()
    embedder: EmbedderSettings = Sentence()
    limits: Limits = Limits()
    calls: ModelSettings = ModelSettings()
    budget: Budget = Budget()

    @model_validator(mode="after")
    def _check(self) -> ConstructSettings:
        if self.kind not in KINDS:
            raise ValueError(f"unknown kind {self.kind!r}; choose from: {', '.join(KINDS)}")
        if bool(self.sources) == (self.benchmark is not None):
            raise ValueError("name either documents to build from, or a benchmark with --from")
        if self.definition.needs_writer and self.writer is None:
            raise ValueError(f"{self.kind} needs a writer; name a model with --writer")
        return self

    @property
    def definition(self) -> Kind:
        """The kind with its stages and filters."""
        return (BENCHMARK_KINDS if self.benchmark else KINDS).get(self.kind, KINDS[self.kind])

    @cached_property
    def kind_options(self) -> BaseModel:
        """The kind's settings. Raises SettingsError if they are invalid."""
        try:
            return self.definition.options.model_validate(self.options)
        except ValidationError as error:
            raise SettingsError(explain(error, self.definition.options)) from error

    @property
    def roles(self) -> dict[str, str]:
        """Model names by role."""
        writer = {"writer": self.writer} if self.writer else {}
        solvers = self.solvers or ((self.writer,) if self.writer and self.definition.asks_solvers else ())
        judges = self.judges or (solvers if self.definition.asks_judges else ())
        return {**writer, **{f"solver {number}": name for number, name in enumerate(solvers, 1)},
                **{f"judge {number}": name for number, name in enumerate(judges, 1)}}

    @property
    def all_models(self) -> list[str]:
        """Model names of all roles, without repeats."""
        return list(dict.fromkeys(self.roles.values()))

    @property
    def work_folder(self) -> Path:
        """Folder of the calls and searches."""
        return self.out / "build"

    def for_shard(self, shard: Shard) -> ConstructSettings:
        """Return the settings of a shard: its share of the items, the budget and the concurrent calls."""
        return self.model_copy(update={
            "n": -(-self.n // shard.of), "tries": self.max_tries, "budget": self.budget.scale(1 / shard.of),
            "calls": self.calls.shared(shard.of)})

    @property
    def content_settings(self) -> dict[str, Any]:
        """The settings that affect the content of items, but not their number or where they are written."""
        return self.model_dump(mode="json", exclude={"out", "n", "tries", "budget", "calls", "sources", "benchmark",
                                                     "licence", "exports"})

    @property
    def max_tries(self) -> int:
        """Maximum number of instances to start."""
        return self.tries or TRIES * self.n


def parse_settings(settings: Mapping[str, Any], assignments: Sequence[str], budget: Sequence[str],
                   benchmark: str | None = None) -> ConstructSettings:
    """Return the settings of a command line.

    Args:
        settings: options by the name of their field.
        assignments: further settings, as in `retriever=dense`.
        budget: as in `tokens=200000`.
        benchmark: a kind, or kind and path, as in `hotpotqa:PATH`.

    Raises SettingsError if a setting is unknown or invalid.
    """
    content: dict[str, Any] = dict(settings)
    if benchmark is not None:
        kind, _, path = benchmark.partition(":")
        content["benchmark"] = {"kind": kind, **({"path": path} if path else {})}
    for text in assignments:
        add_setting(content, text)
    try:
        parsed = ConstructSettings.model_validate(content)
    except ValidationError as error:
        raise SettingsError(explain(error, ConstructSettings)) from error
    return parsed.model_copy(update={"budget": update_budget(parsed.budget, budget)})
