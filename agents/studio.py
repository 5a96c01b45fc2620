"""The graph as LangGraph's own server and Studio open it, through `langgraph.json`.

    pip install "langgraph-cli[inmem]"
    RAGBED_INDEX=idx RAGBED_MODEL=openai:gpt-4o-mini langgraph dev

A question is given as `{"question": "..."}`. The server keeps its state after each step: it can be looked at, stopped
before or after any, and gone on with from there. Events of `agents.graph`, tokens included, come with the stream
mode `custom`.

Environment: `RAGBED_INDEX`, an index folder, and `RAGBED_NAME` for every other name in `AssistantSettings`; what is
more than a name is YAML, as in `RAGBED_RETRIEVER='{kind: reranked, of: bm25}'`.
"""
from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator
from typing import Any

import yaml
from pydantic import ValidationError

from ragbed.agents.assistant import Assistant, AssistantSettings
from ragbed.agents.graph import Graph
from ragbed.documents.errors import SettingsError


@contextlib.asynccontextmanager
async def open_graph() -> AsyncIterator[Graph]:
    """Open the assistant's graph over what the environment names; raise as the settings and `Assistant.open` do."""
    async with Assistant.open(settings_of_environment()) as assistant:
        yield assistant.graph


def settings_of_environment() -> AssistantSettings:
    """Return the settings that the environment names; SettingsError names the variable that does not fit."""
    given: dict[str, Any] = {}
    for name in AssistantSettings.model_fields:
        text = os.environ.get(f"RAGBED_{name.upper()}")
        try:
            given |= {name: text if name in ("index", "model") else yaml.safe_load(text)} if text else {}
        except yaml.YAMLError:
            raise SettingsError(f"RAGBED_{name.upper()}: is no YAML") from None
    if "index" not in given:
        raise SettingsError("set RAGBED_INDEX to an index folder made by `ragbed index`")
    try:
        return AssistantSettings(**given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise SettingsError(f"RAGBED_{str(first['loc'][0]).upper()}: {first['msg']}") from None
