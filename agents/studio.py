"""The graph as LangGraph's own server and Studio open it, through `langgraph.json`.

Environment: `RAGBED_INDEX` (an index folder, needed), `RAGBED_MODEL`, `RAGBED_REASONING`, `RAGBED_RETRIEVAL`.
"""
from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

from agents.assistant import Assistant, AssistantSettings
from agents.graph import Graph
from documents.errors import SettingsError


@contextlib.asynccontextmanager
async def open_graph() -> AsyncIterator[Graph]:
    """The assistant's graph over the index and model that the environment names.

    Raises:
        SettingsError: `RAGBED_INDEX` is not set.
        UserError: as `Assistant.open`.
    """
    if not os.environ.get("RAGBED_INDEX"):
        raise SettingsError("set RAGBED_INDEX to an index folder made by `ragbed index`")
    given = {name: os.environ[f"RAGBED_{name.upper()}"] for name in ("model", "reasoning", "retrieval")
             if os.environ.get(f"RAGBED_{name.upper()}")}
    settings = AssistantSettings(index=Path(os.environ["RAGBED_INDEX"]), **given)
    async with Assistant.open(settings) as assistant:
        yield assistant.graph
