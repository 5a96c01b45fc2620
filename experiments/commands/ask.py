"""`ragbed search` and `ragbed ask`: look something up in an index, or answer one question from it."""
from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragbed.experiments.commands.options import (
    AnyModel,
    AsJson,
    Asked,
    Conditions,
    IndexFolder,
    Query,
    RetrieverText,
    Streamed,
    Traced,
    refuse,
)

if TYPE_CHECKING:
    from ragbed.agents.assistant import AssistantSettings
    from ragbed.retrieval.index import Index
    from ragbed.retrieval.types import Hit, RetrieverKind
    from ragbed.strategies.types import Turn


def search(query: Query, index: IndexFolder,
           k: Annotated[int, typer.Option("-k", min=1, max=1000, help="Number of chunks to show.")] = 10,
           retriever: RetrieverText = "dense", where: Conditions = None,
           allow_server: Annotated[bool, typer.Option("--allow-server", help=(
               "Trust the index's embedding server with queries and API key."))] = False,
           json: AsJson = False) -> None:
    """Search an index, and show the best chunks."""
    from ragbed.experiments.settings.texts import parse_retriever
    from ragbed.experiments.terminal.display import note, print_json, say
    from ragbed.experiments.terminal.steps import hit_row, place
    from ragbed.retrieval.filters.filtered_collection import filter_collection
    from ragbed.retrieval.index import Index, allow_servers
    from ragbed.retrieval.storage.manifest import read_manifest

    if not query.strip():
        refuse("the query is empty; give a search query")
    kind, conditions = parse_retriever(retriever, where or [])
    if allow_server:
        allow_servers(read_manifest(index))
    opened = Index.open(index)
    hits, judging = asyncio.run(_search(opened, kind, conditions, query, k))
    rows = [hit_row(hit, opened) for hit in hits]
    for text in judging.get("notes", ()):
        note(text)
    if not rows:
        met = filter_collection(opened, conditions).among
        left = len(opened.chunks) if met is None else int(met.sum())
        note(f"nothing was found among {left} of {len(opened.chunks)} chunks" +
             (", those that meet --where" if conditions else ""))
    if json:
        print_json({"hits": rows, **judging})
        return
    for row in rows:
        found_by = f"  {row['found_by']}" if "(" in row["found_by"] else ""
        say(f"{row['rank']:>3}. {row['score']:.3f}  {place(row)}  [{row['start']}-{row['end']}]{found_by}")
        say("     " + " ".join(row["text"].split())[:240])


async def _search(index: Index, kind: RetrieverKind, where: tuple[str, ...], query: str,
                  k: int) -> tuple[list[Hit], dict[str, Any]]:
    """Search in a thread, since models that judge relevance are called on the event loop. Also return their usage.
    """
    from dataclasses import asdict

    from ragbed.agents.model_settings import ModelSettings
    from ragbed.agents.models import open_reranker_deps
    from ragbed.agents.relevance_judge import judge_notes, judge_tallies
    from ragbed.retrieval.pool import RetrieverChoice, WholeSearch
    from ragbed.strategies.types import Usage

    async with open_reranker_deps(kind, ModelSettings()) as deps:
        searching = WholeSearch(index, RetrieverChoice(kind, where, lambda: deps))
        hits = (await asyncio.to_thread(searching.search, [query], k))[0]
    used = sum((tally.usage for tally in judge_tallies(deps).values()), Usage())
    return hits, {"usage": asdict(used), "notes": judge_notes(deps)} if used.calls else {}


Reasoning = Annotated[str, typer.Option("--reasoning", metavar="NAME", help="Name from `ragbed list strategies`.")]
Retrieval = Annotated[str, typer.Option("--retrieval", metavar="NAME", help="Name from `ragbed list strategies`.")]
ChunksPerSearch = Annotated[int, typer.Option("-k", min=1, help="Number of chunks per search.")]
MaxTokens = Annotated[int, typer.Option("--max-tokens", min=1, help="Maximum tokens per reply.")]
Temperature = Annotated[str, typer.Option("--temperature", help="Sampling temperature; `none` omits it from requests.")]


def ask(question: Asked, index: IndexFolder, model: AnyModel = None,
        reasoning: Reasoning = "chain_of_thought", retrieval: Retrieval = "once", k: ChunksPerSearch = 5,
        retriever: RetrieverText = "dense", where: Conditions = None, max_tokens: MaxTokens = 1024,
        temperature: Temperature = "0",
        headers: Annotated[bool, typer.Option("--headers", help=(
            "Prompts name the document, section and page of each passage."))] = False,
        history: Annotated[Path | None, typer.Option("--history", metavar="FILE", help=(
            "Earlier messages: JSON Lines with role and content."))] = None,
        stream: Streamed = False, trace: Traced = False, json: AsJson = False) -> None:
    """Answer one question from an index, with citations or a refusal.

    Without --model, ragbed uses the first of these that it finds: the model in RAGBED_MODEL; OpenAI, if OPENAI_API_KEY
    is set; a server on this machine (Ollama, LM Studio, llama.cpp, vLLM); a small local model.

    --reasoning and --retrieval also take FILE.py:FUNCTION or YAML. Exit status 1: the model neither answered nor
    refused.
    """
    from ragbed.experiments.terminal.answer_display import ask

    settings = _settings(index, model, reasoning, retrieval, k, retriever, where, max_tokens, temperature
                         ).model_copy(update={"headers": headers})
    if not ask(settings, question, turns=_turns(history) if history else (), stream=stream, trace=trace, json=json):
        raise typer.Exit(1)


def _settings(index: Path, model: str | None, reasoning: str, retrieval: str, k: int, retriever: str,
              where: list[str] | None, max_tokens: int, temperature: str) -> AssistantSettings:
    from ragbed.agents.assistant import AssistantSettings
    from ragbed.agents.discovery import default_model
    from ragbed.agents.model_settings import Limits
    from ragbed.experiments.settings.texts import parse_model, parse_retriever, parse_spec
    from ragbed.experiments.terminal.display import note
    from ragbed.strategies.settings.strategy_config import parse_strategy

    kind, conditions = parse_retriever(retriever, where or [])
    name, calls = parse_model(model or default_model(note), temperature=_temperature(temperature))
    return AssistantSettings(index=index, model=name, k=k, retriever=kind, where=conditions,
                             reasoning=parse_strategy("reasoning", parse_spec(reasoning, "--reasoning")).spec,
                             retrieval=parse_strategy("retrieval", parse_spec(retrieval, "--retrieval")).spec,
                             limits=Limits(max_tokens=max_tokens),
                             calls=calls)


def _turns(file: Path) -> tuple[Turn, ...]:
    from ragbed.documents.rows import read_rows
    from ragbed.strategies.history import read_turns

    messages = [(row.text("role"), row.text("content")) if row.fields.get("role") in ("user", "assistant") else
                row.fail("role", "user or assistant", row.fields.get("role")) for row in read_rows(file)]
    return read_turns(messages)


def _temperature(text: str) -> float | None:
    if text.lower() == "none":
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        refuse(f"--temperature {text!r}: give a number of at least 0, or none")
    return value
