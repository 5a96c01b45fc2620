"""What is served: configurations by name, each with what was measured of it. They share indexes and model clients."""
from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ragbed.agents.assistant import Assistant, AssistantSettings
from ragbed.agents.client import ModelClient
from ragbed.agents.models import open_model, open_reranker_deps
from ragbed.documents.errors import SettingsError, UserError
from ragbed.experiments.cells import PART, PIPELINE, Cell, labels, short_name
from ragbed.experiments.formatting import estimate
from ragbed.experiments.running.open_resources import index_folder
from ragbed.experiments.running.plan import Plan
from ragbed.experiments.runs.finished import Finished, open_finished
from ragbed.experiments.settings.file import content_of, runs_of
from ragbed.guests import locate_run
from ragbed.retrieval.index import Index
from ragbed.retrieval.retrievers import KINDS
from ragbed.retrieval.storage.manifest import MANIFEST
from ragbed.strategies.catalogue import SEARCH_ONLY
from ragbed.strategies.prompting import prompts_hash
from ragbed.strategies.settings.choosing import chosen

RENEWAL_SECONDS = 3.0  # after which a server looks whether an index was replaced


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run found of a configuration: the first metric of its table, with its 95 % interval.

    Attributes:
        n: questions that the mean is of.
        changed: whether prompts or strategies of one's own are others today than those that were measured.
    """

    metric: str
    mean: float | None
    low: float | None
    high: float | None
    n: int
    run: str
    date: str
    changed: bool = False

    def __str__(self) -> str:
        changed = "; its prompts or strategies have changed since" if self.changed else ""
        return (f"{self.metric} {estimate(self.mean, self.low, self.high)} on {self.n} questions, run {self.run} of "
                f"{self.date}{changed}")


@dataclass(frozen=True)
class Described:
    """A configuration before it is opened."""

    name: str
    settings: AssistantSettings
    measured: Measured | None = None


@dataclass(frozen=True)
class Configuration:
    """A configuration that answers; `threads` is the same assistant with the checkpointer that keeps threads."""

    name: str
    assistant: Assistant
    threads: Assistant
    measured: Measured | None = None

    @property
    def made_of(self) -> str:
        """Return its strategies, its retriever and its model, in a line."""
        settings, (reasoning, retrieval, _) = self.assistant.settings, self.assistant.strategies
        found = f"{settings.retriever.kind}@{settings.k}"
        return PART.join((reasoning.label, retrieval.label, found, short_name(settings.model)))

    @property
    def description(self) -> str:
        """Return what it is and what was measured of it, in a line."""
        return f"{self.made_of}. {self.measured or 'Not measured'}."


@dataclass
class Opened:
    """Indexes and model clients that are open, each once."""

    stack: contextlib.AsyncExitStack
    indexes: dict[Path, Index] = field(default_factory=dict)
    clients: dict[tuple[str, str], ModelClient] = field(default_factory=dict)

    async def configuration(self, described: Described, checkpointer: Any) -> Configuration:
        """Open a configuration; raises UserError as `Assistant.open`."""
        settings = described.settings
        if settings.index not in self.indexes:
            self.indexes[settings.index] = await asyncio.to_thread(Index.open, settings.index)
        if settings.retriever.embeds:  # loaded before the first question
            await asyncio.to_thread(self.indexes[settings.index].check_embedder)
        key = settings.model, settings.calls.model_dump_json()
        if key not in self.clients:
            self.clients[key] = await self.stack.enter_async_context(open_model(settings.model, settings.calls))
        deps = await self.stack.enter_async_context(
            open_reranker_deps(settings.retriever, settings.calls, settings.limits))
        assistant = Assistant(settings, self.indexes[settings.index], self.clients[key], None, deps)
        return Configuration(described.name, assistant, assistant.with_checkpointer(checkpointer), described.measured)


@contextlib.asynccontextmanager
async def open_configurations(described: Sequence[Described],
                              checkpointer: Any) -> AsyncIterator[dict[str, Configuration]]:
    """Open all that are served, by name, closed at the end; raises UserError where an index, a model or a strategy
    cannot be opened."""
    async with contextlib.AsyncExitStack() as stack:
        configurations = await _opened(described, checkpointer, Opened(stack))
        try:
            yield configurations
        finally:
            for one in configurations.values():
                one.assistant.searcher.close()


async def _opened(described: Sequence[Described], checkpointer: Any, opened: Opened) -> dict[str, Configuration]:
    return {one.name: await opened.configuration(one, checkpointer) for one in described}


async def renew(configurations: dict[str, Configuration], checkpointer: Any) -> None:
    """Exchange, for ever, each configuration whose index was replaced in its folder; what is under way ends with the
    one that it was begun with. An index that cannot be opened is told of, and the old one stays."""
    refused: set[Path] = set()
    while True:
        await asyncio.sleep(RENEWAL_SECONDS)
        for name in list(configurations):
            await _renew(configurations, name, checkpointer, refused)  # which keeps hold of no index


async def _renew(configurations: dict[str, Configuration], name: str, checkpointer: Any, refused: set[Path]) -> None:
    one = configurations[name]
    old, place = one.assistant, one.assistant.settings.index
    others = (other.assistant.index for other in configurations.values() if other.assistant.settings.index == place)
    try:
        if not await asyncio.to_thread(lambda: old.index.replaced):
            return
        index = next((other for other in others if not other.replaced), None)
        if index is None:
            index = await asyncio.to_thread(_reopened, old)
    except UserError as error:
        if place not in refused:
            logging.getLogger("ragbed").warning("the old index goes on: %s", error)
        refused.add(place)
        return
    refused.discard(place)
    assistant = Assistant(old.settings, index, old.client, None, old.deps, old.strategies)
    configurations[name] = replace(one, assistant=assistant, threads=assistant.with_checkpointer(checkpointer))


def _reopened(old: Assistant) -> Index:
    """The index that is in the place of an assistant's, with the embedder that is loaded, where it is of that one."""
    index = Index.open(old.settings.index)
    if old.settings.retriever.embeds:
        if index.manifest.embedder == old.index.manifest.embedder:
            return Index.open(old.settings.index, old.index.embedder)
        index.check_embedder()
    return index


def describe(target: Path, given: Mapping[str, Any]) -> list[Described]:
    """Return what a target stands for: the cells of a finished run, or of a run's settings, which are measured where
    that run has finished; or one configuration over an index, with the settings that are `provided` by name. Raises
    UserError where it is none of them, or nothing in it can be served."""
    if (target / MANIFEST).is_file() and not (target / "config.yaml").is_file():
        settings = AssistantSettings(index=target, **given)
        return [Described(_name(str(chosen("reasoning", settings.reasoning).label)), settings)]
    if given:
        raise SettingsError(f"{target} is no index: what answers is in the run's settings; leave out "
                            f"{', '.join(f'--{name}' for name in given)}")
    if target.is_dir():
        with open_finished(locate_run(target)) as run:
            return _of_run(run)
    found = []
    for one in runs_of(content_of(target), str(target)):
        if (one.folder / "summary.json").is_file():
            with open_finished(one.folder) as run:
                found += _of_run(run, trusted=True)
        else:
            plan = Plan.of(one)
            rows = [{"id": cell.id, **cell.levels} for cell in plan.cells]
            found += _served(plan, dict(zip(labels(rows), plan.cells, strict=True)), {}, str(target))
    return found


def _of_run(run: Finished, trusted: bool = False) -> list[Described]:
    """The cells of a run; strategies that are none of ragbed's own are loaded for settings that are `trusted`."""
    plan = Plan.of_finished(run)
    if trusted:
        plan = plan.loading(plan.strategies)
    settings = plan.settings.model_copy(update={"out": run.path.parent, "name": run.path.name})
    plan = Plan(settings, plan.benchmark, plan.cells, plan.strategies, plan.finders, plan.exemplars, plan.notes,
                plan.functions).showing_exemplars()
    day = datetime.fromtimestamp((run.path / "summary.json").stat().st_mtime, UTC).date().isoformat()
    changed = run.made.prompts != prompts_hash() or (trusted and run.made.sources != plan.sources)
    first = str(run.summary["columns"][0]).split(" / ")[0]
    measured = {}
    for row in run.rows:
        found = row["metrics"].get(first) or {"mean": None, "low": None, "high": None, "n": 0}
        measured[row["id"]] = Measured(first, found["mean"], found["low"], found["high"], found["n"], run.name, day,
                                       changed)
    cells = {run.labels[cell.id]: cell for cell in run.cells}
    return _served(plan, cells, measured, str(run.path))


def _served(plan: Plan, cells: Mapping[str, Cell], measured: Mapping[str, Measured], where: str) -> list[Described]:
    """The cells that search an index; of those that repeat one another, the first."""
    found: dict[str, Described] = {}
    names: set[str] = set()
    for label, cell in cells.items():
        settings = _settings(plan, cell)
        if settings is None or settings.model_dump_json() in found:
            continue
        name = _name(label)
        if name in names:
            name = f"{name}-{cell.id[:6]}"
        names.add(name)
        found[settings.model_dump_json()] = Described(name, settings, measured.get(cell.id))
    if not found:
        raise SettingsError(f"{where}: none of its cells can be served: those that can search an index, as with "
                            "`conditions: retrieved` and `retriever: {kind: dense, index: FOLDER}`, by strategies of "
                            "ragbed's own; to serve a strategy of yours, name the file of settings")
    return list(found.values())


def _settings(plan: Plan, cell: Cell) -> AssistantSettings | None:
    """What serves a cell; None for one that searches no index, or whose strategies a finished run only names, since no
    code is executed for what a run's folder says."""
    if cell.condition != "retrieved" or cell.perturbation or cell.finder is None or cell.format is None \
            or cell.reasoning == PIPELINE:
        return None
    settings, retriever = plan.settings, plan.finders[cell.finder].retriever
    kind = next(one for one in KINDS if isinstance(retriever, one))
    own = kind.model_validate({name: getattr(retriever, name) for name in kind.model_fields})
    reasoning = plan.strategies["reasoning"][cell.reasoning]
    retrieval = plan.strategies["retrieval"][str(cell.retrieval)]
    named = (reasoning.has_plugins and not reasoning.is_loaded) or (retrieval.has_plugins and not retrieval.is_loaded)
    if named or reasoning.kind == SEARCH_ONLY:
        return None
    history = {"history": plan.strategies["history"][cell.history].said} if cell.history else {}
    return AssistantSettings(
        **history, index=index_folder(settings, retriever, cell.format), model=cell.model, reasoning=reasoning.said,
        retrieval=retrieval.said, rules=cell.rules, answer_format=cell.answer_format or "tags",
        framing=cell.framing or "none", prompt_variant=cell.prompt_variant or 1, layout=settings.layout,
        brief=settings.brief, exemplars=plan.exemplars, k=retriever.k, retriever=own, where=retriever.where,
        limits=settings.limits, calls=settings.asking)


def _name(label: str) -> str:
    """A model's name as clients take it."""
    return re.sub(r"[^A-Za-z0-9._@+-]+", "-", label).strip("-") or "ragbed"
