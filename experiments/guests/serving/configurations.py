"""Open the configurations to serve, by name, with the scores that a run measured. They share indexes and model clients.
"""
from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ragbed.agents.assistant import Assistant, AssistantSettings, open_tools, resolve_strategies
from ragbed.agents.client import ModelClient
from ragbed.agents.models import open_model, open_reranker_deps
from ragbed.documents.errors import RunError, SettingsError, UserError
from ragbed.experiments.cells import PIPELINE, SEPARATOR, Cell, label_rows, short_name
from ragbed.experiments.formatting import estimate
from ragbed.experiments.guests.operations.serve_settings import ServeSettings
from ragbed.experiments.running.open_resources import index_folder
from ragbed.experiments.running.plan import Plan
from ragbed.experiments.runs.finished import Finished, open_finished
from ragbed.experiments.settings.file import read_content, split_runs
from ragbed.guests import locate_run
from ragbed.retrieval.embedders.opening import allow_server, check_allowed
from ragbed.retrieval.index import Index, allow_servers
from ragbed.retrieval.retrievers import KINDS
from ragbed.retrieval.storage.manifest import MANIFEST, read_manifest
from ragbed.strategies.catalogue import SEARCH_ONLY
from ragbed.strategies.prompting import prompts_hash
from ragbed.strategies.settings.strategy_config import parse_strategy

_OPTIONS = {"limits": "max-tokens", "calls": "call-seconds"}  # options of `ragbed serve` by the setting they change
RELOAD_SECONDS = 3.0  # seconds between checks whether an index was replaced


@dataclass(frozen=True, slots=True)
class Measured:
    """Score of a configuration in a run: the first metric of the run's table, with its 95 % interval.

    Attributes:
        n: number of questions.
        changed: whether prompts or custom strategies have changed since the run.
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
class ConfigurationSettings:
    """A configuration before it is opened, with the rules on who may read which documents, and how to answer."""

    name: str
    settings: AssistantSettings
    measured: Measured | None = None
    allow: tuple[str, ...] = ()
    serve: ServeSettings = field(default_factory=ServeSettings)


@dataclass(frozen=True)
class Configuration:
    """An open configuration; `threads` is the same assistant with a checkpointer that keeps its threads."""

    name: str
    assistant: Assistant
    threads: Assistant
    measured: Measured | None = None

    @property
    def parts(self) -> str:
        """Return strategies, retriever and model in one line."""
        settings, (reasoning, retrieval, _) = self.assistant.settings, self.assistant.strategies
        found = f"{settings.retriever.kind}@{settings.k}"
        return SEPARATOR.join((reasoning.label, retrieval.label, found, short_name(settings.model)))

    @property
    def description(self) -> str:
        """Return the parts and the score in one line."""
        return f"{self.parts}. {self.measured or 'Not measured'}."


@dataclass
class SharedResources:
    """Open indexes and model clients, each opened once."""

    stack: contextlib.AsyncExitStack
    indexes: dict[Path, Index] = field(default_factory=dict)
    clients: dict[tuple[str, str], ModelClient] = field(default_factory=dict)

    async def open_all(self, settings: Sequence[ConfigurationSettings],
                       checkpointer: Any) -> dict[str, Configuration]:
        """Open the configurations, and return them by name. Raises UserError as `Assistant.open` does."""
        return {one.name: await self._open(one, checkpointer) for one in settings}

    async def _open(self, given: ConfigurationSettings, checkpointer: Any) -> Configuration:
        settings = given.settings
        if settings.index not in self.indexes:
            self.indexes[settings.index] = await asyncio.to_thread(Index.open, settings.index)
        if settings.retriever.embeds:  # warm up, so that the first question need not wait
            await asyncio.to_thread(self.indexes[settings.index].check_embedder)
        key = settings.model, settings.calls.model_dump_json()
        if key not in self.clients:
            self.clients[key] = await self.stack.enter_async_context(open_model(settings.model, settings.calls))
        deps = await self.stack.enter_async_context(
            open_reranker_deps(settings.retriever, settings.calls, settings.limits))
        strategies = await asyncio.to_thread(resolve_strategies, settings)
        tools = await self.stack.enter_async_context(open_tools(strategies))
        assistant = Assistant(settings, self.indexes[settings.index], self.clients[key], None, deps, strategies,
                              tools=tools)
        return Configuration(given.name, assistant, assistant.with_checkpointer(checkpointer), given.measured)


@contextlib.asynccontextmanager
async def open_configurations(settings: Sequence[ConfigurationSettings],
                              checkpointer: Any) -> AsyncIterator[dict[str, Configuration]]:
    """Yield open configurations by name, and close them at the end. Raises UserError if an index, a model or a strategy
    cannot be opened."""
    async with contextlib.AsyncExitStack() as stack:
        configurations = await SharedResources(stack).open_all(settings, checkpointer)
        try:
            yield configurations
        finally:
            for one in configurations.values():
                one.assistant.searcher.close()


async def reload_indexes(configurations: dict[str, Configuration], checkpointer: Any) -> None:
    """Reopen each configuration whose index folder was replaced, until cancelled.

    Questions that are being answered keep the old index. If a new index cannot be opened, a warning is logged and the
    old one stays.
    """
    broken: set[Path] = set()
    while True:
        await asyncio.sleep(RELOAD_SECONDS)
        for name in list(configurations):
            await _reload(configurations, name, checkpointer, broken)  # no local name here keeps an index open


async def _reload(configurations: dict[str, Configuration], name: str, checkpointer: Any, broken: set[Path]) -> None:
    one = configurations[name]
    old, place = one.assistant, one.assistant.settings.index
    others = (other.assistant.index for other in configurations.values() if other.assistant.settings.index == place)
    try:
        if not await asyncio.to_thread(lambda: old.index.replaced):
            return
        index = next((other for other in others if not other.replaced), None)
        if index is None:
            index = await asyncio.to_thread(_reopen_index, old)
    except UserError as error:
        if place not in broken:
            logging.getLogger("ragbed").warning("the new index cannot be opened, so the old one is still used: %s",
                                                error)
        broken.add(place)
        return
    broken.discard(place)
    assistant = Assistant(old.settings, index, old.client, None, old.deps, old.strategies, tools=old.tools)
    configurations[name] = replace(one, assistant=assistant, threads=assistant.with_checkpointer(checkpointer))


def _reopen_index(old: Assistant) -> Index:
    """Open the index that replaced an assistant's, with the loaded embedder if it uses the same one."""
    index = Index.open(old.settings.index)
    if old.settings.retriever.embeds:
        if index.manifest.embedder == old.index.manifest.embedder:
            return Index.open(old.settings.index, old.index.embedder)
        index.check_embedder()
    return index


def allow_target(target: Path) -> None:
    """Remember that the user trusts the servers that an index, a run or a settings file names."""
    if (target / MANIFEST).is_file() and not (target / "config.yaml").is_file():
        allow_servers(read_manifest(target))
    elif target.is_dir():
        with open_finished(locate_run(target)) as run:
            _cells_of_run(run, servers=True)


def read_target(target: Path, given: Mapping[str, Any]) -> list[ConfigurationSettings]:
    """Return the configurations of a target. A run or a settings file gives its cells, with scores if the run has
    finished. An index gives one configuration, with the settings in `given`.

    Raises UserError for any other target, or if nothing in it can be served."""
    if (target / MANIFEST).is_file() and not (target / "config.yaml").is_file():
        settings = AssistantSettings(index=target, **given)
        label = str(parse_strategy("reasoning", settings.reasoning).label)
        return [ConfigurationSettings(_model_name(label), settings)]
    if given:
        options = [_OPTIONS.get(name, name) for name in given if name != "calls" or "model" not in given]
        raise SettingsError(f"{target} is not an index and has its own settings; omit "
                            f"{', '.join(f'--{name}' for name in options)}")
    if target.is_dir():
        with open_finished(locate_run(target)) as run:
            return _cells_of_run(run)
    found = []
    for one in split_runs(read_content(target), str(target)):
        if (one.folder / "summary.json").is_file():
            with open_finished(one.folder) as run:
                found += _cells_of_run(run, trusted=True)
        else:
            plan = Plan.of(one)
            rows = [{"id": cell.id, **cell.levels} for cell in plan.cells]
            found += _servable(plan, dict(zip(label_rows(rows), plan.cells, strict=True)), {}, str(target))
    return found


def _cells_of_run(run: Finished, trusted: bool = False, servers: bool = False) -> list[ConfigurationSettings]:
    """Return the cells of a run. Custom strategies are loaded only if the settings are `trusted`. A remote model is
    asked only if they are, the user named its server before, or allows the run's `servers` now."""
    if damage := run.folder.find_damage():
        raise RunError(f"{run.path}: {damage}; `ragbed verify` shows what differs")
    plan = Plan.of_finished(run)
    if trusted:
        plan = plan.loading(plan.strategies)
    settings = plan.settings.model_copy(update={"out": run.path.parent, "name": run.path.name})
    plan = Plan(settings, plan.benchmark, plan.cells, plan.strategies, plan.finders, plan.exemplars, plan.notes,
                plan.functions).with_prompt_files()
    date = datetime.fromtimestamp((run.path / "summary.json").stat().st_mtime, UTC).date().isoformat()
    changed = run.made.prompts != prompts_hash() or (trusted and run.made.sources != plan.sources)
    first = str(run.summary["columns"][0]).split(" / ")[0]
    measured = {}
    for row in run.rows:
        found = row["metrics"].get(first) or {"mean": None, "low": None, "high": None, "n": 0}
        measured[row["id"]] = Measured(first, found["mean"], found["low"], found["high"], found["n"], run.name, date,
                                       changed)
    cells = {run.labels[cell.id]: cell for cell in run.cells}
    found = _servable(plan, cells, measured, str(run.path))
    for url in {url for one in found for url in _list_servers(one.settings)}:
        if trusted or servers:
            allow_server(url)
        else:
            check_allowed(url, run.path, "asks a model on", "RAGBED_API_KEY", "serve")
    return found


def _list_servers(settings: AssistantSettings) -> Iterator[str]:
    """Yield the URLs of models that answer, grade or rewrite with these settings."""
    values = [settings.model_dump(mode="json", include={"model", "retriever", "calls"})]
    for value in values:
        if isinstance(value, dict | list):
            values += value.values() if isinstance(value, dict) else value
        elif isinstance(value, str) and value.startswith(("http://", "https://")):
            yield value


def _servable(plan: Plan, cells: Mapping[str, Cell], measured: Mapping[str, Measured],
              where: str) -> list[ConfigurationSettings]:
    """Return the cells that search an index, one for each distinct settings."""
    found: dict[str, ConfigurationSettings] = {}
    names: set[str] = set()
    for label, cell in cells.items():
        settings = _settings(plan, cell)
        if settings is None or settings.model_dump_json() in found:
            continue
        name = _model_name(label)
        if name in names:
            name = f"{name}-{cell.id[:6]}"
        names.add(name)
        found[settings.model_dump_json()] = ConfigurationSettings(
            name, settings, measured.get(cell.id), tuple(filter(None, (getattr(plan.settings, "allow", None),))),
            getattr(plan.settings, "serve", None) or ServeSettings())
    if not found:
        raise SettingsError(f"{where}: none of its cells can be served; a cell needs `conditions: retrieved` and a "
                            "retriever with an index, such as {kind: dense, index: FOLDER}; to serve a custom "
                            "strategy, name the settings file instead of the run")
    return list(found.values())


def _settings(plan: Plan, cell: Cell) -> AssistantSettings | None:
    """Return the settings that serve a cell.

    Returns None if the cell does not search an index, or if it uses custom strategies of a finished run, because code
    that a run's folder names is not trusted.
    """
    if cell.condition != "retrieved" or cell.perturbation or cell.finder is None or cell.format is None \
            or cell.reasoning == PIPELINE:
        return None
    settings, retriever = plan.settings, plan.finders[cell.finder].retriever
    kind = next(one for one in KINDS if isinstance(retriever, one))
    own = kind.model_validate({name: getattr(retriever, name) for name in kind.model_fields})
    reasoning = plan.strategies["reasoning"][cell.reasoning]
    retrieval = plan.strategies["retrieval"][str(cell.retrieval)]
    untrusted = any(one.has_plugins and not one.is_loaded for one in (reasoning, retrieval))
    if untrusted or reasoning.kind == SEARCH_ONLY:
        return None
    history = {"history": plan.strategies["history"][cell.history].spec} if cell.history else {}
    return AssistantSettings(
        **history, index=index_folder(settings, retriever, cell.format), model=cell.model, reasoning=reasoning.spec,
        retrieval=retrieval.spec, rules=cell.rules, answer_format=cell.answer_format or "tags",
        framing=cell.framing or "none", headers=bool(cell.headers), prompt_variant=cell.prompt_variant or 1,
        language=cell.language or "english", layout=settings.layout, brief=settings.brief, exemplars=plan.exemplars,
        prompts=dict(plan.tasks(cell).prompts),
        k=retriever.k, retriever=own, where=retriever.where, limits=settings.limits, calls=settings.call_settings)


def _model_name(label: str) -> str:
    return re.sub(r"[^A-Za-z0-9._@+-]+", "-", label).strip("-") or "ragbed"
