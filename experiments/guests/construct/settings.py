"""Settings of a construction."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ragbed.agents.settings import Limits, ModelSettings
from ragbed.documents.chunkers import ChunkerSettings
from ragbed.documents.errors import SettingsError
from ragbed.documents.shards import Shard
from ragbed.experiments.benchmarks import BenchmarkSettings
from ragbed.experiments.guests.construct.export_formats import Export
from ragbed.experiments.guests.construct.kinds import BENCHMARK_KINDS, KINDS
from ragbed.experiments.guests.construct.stages import Kind
from ragbed.experiments.settings.file import explain
from ragbed.experiments.settings.spending import Budget, update_budget
from ragbed.experiments.settings.targets import add_setting
from ragbed.retrieval.embedders import EmbedderSettings, Sentence
from ragbed.retrieval.retrievers import Bm25, RetrieverSettings

TRIES = 5  # instances that may be begun for each item that is asked for


class ConstructSettings(BaseModel):
    """What is built, of what, by whom.

    Attributes:
        sources: files, folders and globs.
        benchmark: in the place of sources, one whose questions items are made of.
        out: the folder of the set.
        writer, solvers, judges: models, named as for `ragbed ask`; without solvers the writer solves.
        n: how many items are asked for.
        tries: how many instances may be begun; by default five for each item.
        options: the kind's own settings.
        licence: of the sources, in words, for the card.
        exports: further formats that the set is written in.
        chunker: how documents are cut; by default as the kind's paper says.
        retriever, embedder: what stages search with, and what likeness is measured by.
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
    def _whole(self) -> ConstructSettings:
        if self.kind not in KINDS:
            raise ValueError(f"no kind of construction is called {self.kind!r}; there are: {', '.join(KINDS)}")
        if bool(self.sources) == (self.benchmark is not None):
            raise ValueError("name documents to build from, or a benchmark with --from")
        if self.definition.needs_writer and self.writer is None:
            raise ValueError(f"{self.kind} needs a model that writes; name one with --writer")
        return self

    @property
    def definition(self) -> Kind:
        """The kind."""
        return (BENCHMARK_KINDS if self.benchmark else KINDS).get(self.kind, KINDS[self.kind])

    @cached_property
    def kind_options(self) -> BaseModel:
        """The kind's own settings; SettingsError where they do not fit."""
        try:
            return self.definition.options.model_validate(self.options)
        except ValidationError as error:
            raise SettingsError(explain(error, self.definition.options)) from error

    @property
    def roles(self) -> dict[str, str]:
        """The model of each role, by the role's name."""
        writer = {"writer": self.writer} if self.writer else {}
        solvers = self.solvers or ((self.writer,) if self.writer and self.definition.asks_solvers else ())
        judges = self.judges or (solvers if self.definition.asks_judges else ())
        return {**writer, **{f"solver {number}": name for number, name in enumerate(solvers, 1)},
                **{f"judge {number}": name for number, name in enumerate(judges, 1)}}

    @property
    def all_models(self) -> list[str]:
        """The models of all roles."""
        return list(dict.fromkeys(self.roles.values()))

    @property
    def work_folder(self) -> Path:
        """The folder of the calls and searches that were made."""
        return self.out / "build"

    def for_shard(self, shard: Shard) -> ConstructSettings:
        """Return the settings of a shard: its share of the items, of the budget and of the calls at once."""
        return self.model_copy(update={
            "n": -(-self.n // shard.of), "tries": self.max_tries, "budget": self.budget.scale(1 / shard.of),
            "calls": self.calls.shared(shard.of)})

    @property
    def content_settings(self) -> dict[str, Any]:
        """The settings that decide what is built, wherever it is written and however much of it."""
        return self.model_dump(mode="json", exclude={"out", "n", "tries", "budget", "calls", "sources", "benchmark",
                                                     "licence", "exports"})

    @property
    def max_tries(self) -> int:
        """How many instances may be begun."""
        return self.tries or TRIES * self.n


def parse_settings(given: Mapping[str, Any], others: Sequence[str], budget: Sequence[str],
                       benchmark: str | None = None) -> ConstructSettings:
    """Return the settings that a command line gives: others as `retriever=dense`, a budget as `tokens=200000`, the
    benchmark as `hotpotqa:PATH`, or its name alone. Raises SettingsError where one does not fit."""
    content: dict[str, Any] = dict(given)
    if benchmark is not None:
        kind, _, path = benchmark.partition(":")
        content["benchmark"] = {"kind": kind, **({"path": path} if path else {})}
    for text in others:
        add_setting(content, text)
    try:
        settings = ConstructSettings.model_validate(content)
    except ValidationError as error:
        raise SettingsError(explain(error, ConstructSettings)) from error
    return settings.model_copy(update={"budget": update_budget(settings.budget, budget)})
