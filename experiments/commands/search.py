"""`ragbed search`."""
from __future__ import annotations

from typing import Annotated

import typer

from experiments.commands.options import AsJson, IndexFolder, Query


def search(query: Query, index: IndexFolder,
           k: Annotated[int, typer.Option("-k", min=1, max=1000, help="How many chunks.")] = 10,
           json: AsJson = False) -> None:
    """Show the chunks nearest to a query, with scores and where they come from."""
    from documents.errors import SettingsError
    from experiments.terminal.display import print_json, say
    from experiments.terminal.passages import hit_row, place
    from retrieval.index import Index

    if not query.strip():
        raise SettingsError("the query is empty: say what to look for")
    opened = Index.open(index)
    rows = [hit_row(hit, opened) for hit in opened.search([query], k)[0]]
    if json:
        print_json({"hits": rows})
        return
    for row in rows:
        say(f"{row['rank']:>3}. {row['score']:.3f}  {place(row)}  [{row['start']}-{row['end']}]")
        say("     " + " ".join(row["text"].split())[:240])
