"""`ragbed search`."""
from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.commands.options import AsJson, Conditions, IndexFolder, Query, RetrieverText

if TYPE_CHECKING:
    from retrieval.index import Index
    from retrieval.retrievers import Kind
    from retrieval.types import Hit


def search(query: Query, index: IndexFolder,
           k: Annotated[int, typer.Option("-k", min=1, max=1000, help="How many chunks.")] = 10,
           retriever: RetrieverText = "dense", where: Conditions = None,
           json: AsJson = False) -> None:
    """Show the chunks that a retriever finds for a query, with scores and where they come from."""
    from documents.errors import SettingsError
    from experiments.settings.finders import finding
    from experiments.terminal.display import note, print_json, say
    from experiments.terminal.show import hit_row, place
    from retrieval.filters.narrowed import narrowed
    from retrieval.index import Index

    if not query.strip():
        raise SettingsError("the query is empty: say what to look for")
    kind, conditions = finding(retriever, where or [])
    opened = Index.open(index)
    hits, judging = asyncio.run(_found(opened, kind, conditions, query, k))
    rows = [hit_row(hit, opened) for hit in hits]
    for text in judging.get("notes", ()):
        note(text)
    if not rows:
        met = narrowed(opened, conditions).among
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


async def _found(index: Index, kind: Kind, where: tuple[str, ...], query: str,
                 k: int) -> tuple[list[Hit], dict[str, Any]]:
    """In a thread: a model that judges relevance is asked on the event loop meanwhile. With what such models used."""
    from dataclasses import asdict

    from agents.relevance import on_judges, open_aids, tallies
    from agents.settings import ModelSettings
    from retrieval.scoped import How, Whole
    from strategies.types import Usage

    async with open_aids(kind, ModelSettings()) as aids:
        hits = (await asyncio.to_thread(Whole(index, How(kind, where, lambda: aids)).search, [query], k))[0]
    used = sum((tally.usage for tally in tallies(aids).values()), Usage())
    return hits, {"usage": asdict(used), "notes": on_judges(aids)} if used.calls else {}
