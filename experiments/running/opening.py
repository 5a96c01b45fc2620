"""Opening what the cells of a run need: models, and what is searched."""
from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence

from agents.journal import Mode
from agents.models import open_model
from experiments.cells import Cell
from experiments.evidence.resources import Resources
from experiments.judges import ModelJudge
from experiments.running.beginning import Beginning
from experiments.running.searching import open_searching
from experiments.settings import RunSettings
from experiments.settings.finders import finders_of
from retrieval.build import Progress
from retrieval.rerankers.judge import judges_of


@contextlib.asynccontextmanager
async def open_resources(settings: RunSettings, cells: Sequence[Cell], resources: Resources, beginning: Beginning,
                         mode: Mode | None, progress: Progress) -> AsyncIterator[None]:
    """Open what the cells need into the resources; closed at the end.

    A replay opens no model, and neither index nor embedder where every search was kept.

    Args:
        mode: None where no question is left, and only what is searched is looked at.

    Raises:
        SettingsError: an index is of another format.
        ModelError, IndexFolderError: see `open_model`, `Index.open`.
    """
    async with contextlib.AsyncExitStack() as stack:
        if mode is not None:
            await _open_models(settings, cells, mode != "replay", beginning.manifest["models"], resources, stack)
        resources.recording.pins = beginning.kept() if mode == "replay" else None
        open_searching(cells, settings, resources, progress)
        for searcher in resources.searchers.values():
            stack.callback(searcher.close)
        for pooled in resources.pools.values():
            stack.callback(pooled.searcher.close)
            if mode is not None and pooled.pool is not None and pooled.embeds:
                pooled.pool.embed(progress)
        yield
        if mode in ("replay", "live"):  # every question was asked again, so by now every search was kept
            beginning.keeps_searches()


async def _open_models(settings: RunSettings, cells: Sequence[Cell], calls: bool, known: Mapping[str, str],
                       resources: Resources, stack: contextlib.AsyncExitStack) -> None:
    finders = finders_of(settings)
    found = [finders[cell.finder].retriever for cell in cells if cell.finder is not None]
    for name in dict.fromkeys([*(cell.model for cell in cells), *(judge.model for judge in judges_of(found))]):
        resources.clients[name] = await stack.enter_async_context(
            open_model(name, settings.asking, calls=calls, known=known.get(name)))
    if isinstance(settings.judge, ModelJudge):
        name = settings.judge.model
        resources.judge = resources.clients.get(name) or await stack.enter_async_context(
            open_model(name, settings.asking, calls=calls, known=known.get(name)))
