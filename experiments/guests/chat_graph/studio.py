"""Provide the graph to LangGraph's own server and Studio, which open it through `langgraph.json`.

    pip install "langgraph-cli[inmem]"
    RAGBED_INDEX=idx RAGBED_MODEL=openai:gpt-4o-mini langgraph dev

The input is `{"messages": [...]}` or `{"question": "..."}`. The server saves the state after each step, so that a
question can be inspected, interrupted, edited and continued. The stream mode `custom` has the events of `agents.graph`,
including tokens.

Environment: `RAGBED_INDEX` is an index folder, and `RAGBED_NAME` any other setting of `AssistantSettings`, as YAML:
`RAGBED_RETRIEVER='{kind: reranked, of: bm25}'`.
"""
from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator
from typing import Any

import yaml
from pydantic import ValidationError

from ragbed.agents.assistant import Assistant, AssistantSettings
from ragbed.documents.errors import SettingsError
from ragbed.experiments.guests.chat_graph.chat_graph import chat_graph


@contextlib.asynccontextmanager
async def open_graph() -> AsyncIterator[Any]:
    """Yield the graph of an assistant with settings from the environment."""
    async with Assistant.open(settings_of_environment()) as assistant:
        yield chat_graph(assistant)


def settings_of_environment() -> AssistantSettings:
    """Read settings from the environment. Raises SettingsError, which names the variable, for an invalid one."""
    given: dict[str, Any] = {}
    for name in AssistantSettings.model_fields:
        text = os.environ.get(f"RAGBED_{name.upper()}")
        try:
            given |= {name: text if name in ("index", "model") else yaml.safe_load(text)} if text else {}
        except yaml.YAMLError:
            raise SettingsError(f"RAGBED_{name.upper()}: is not YAML") from None
    if "index" not in given:
        raise SettingsError("set RAGBED_INDEX to an index folder made by `ragbed index`")
    try:
        return AssistantSettings(**given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise SettingsError(f"RAGBED_{str(first['loc'][0]).upper()}: {first['msg']}") from None
