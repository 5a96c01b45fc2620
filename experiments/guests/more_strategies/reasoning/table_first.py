"""Table first: collect the facts in a table with their sources, then reason over it.

After Chain-of-Table (Wang et al. 2024) and Tab-CoT (Jin and Lu 2023), which reason in tables. Here one call makes the
table from the documents, and its values are looked up there.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from ragbed.experiments.guests.more_strategies.parts.quotes import check_rows, format_rows, read_rows
from ragbed.strategies.answering import answer, ask, ask_for_answer, draft
from ragbed.strategies.prompting import fill, fill_untrusted, shown_numbers
from ragbed.strategies.types import Decision, Draft, Recipe, Reply, Task


def table_first(task: Task, *, rows: Annotated[int, Field(ge=1, le=40)] = 12) -> Recipe:
    """Collect up to `rows` facts in a table in one call, then reason over table and documents.

    A row is dropped only if it names a document that was not shown, and no document has its value. Other rows stay even
    without a verbatim match, since the value may be computed or rephrased. The figure `rows_found` is the share of rows
    whose value a document contains.
    """
    evidence = yield from task.gather(task.question)
    shown = shown_numbers(task, evidence)
    numbered = bool(shown) and task.separators
    asked = fill("table_first" if numbered else "table_first_uncited", count=str(rows))
    reply: Reply = yield ask(task, asked, evidence, "table")
    read = read_rows(reply.text, rows, numbered)
    kept = check_rows(read, evidence) if shown else read
    if len(kept) < len(read):
        yield Decision("drops rows", f"{len(read) - len(kept)} of {len(read)} name a document that was not shown")
    if not kept:
        yield Decision("answers without a table", "no row could be read")
        return (yield from answer(task, "chain_of_thought", evidence, "no_table"))
    table = fill_untrusted("table_first_answer", table=format_rows(kept, numbered))
    made: Draft = yield from draft(ask_for_answer(task, table, evidence), task)
    found = {"rows_found": sum(row.found for row in kept) / len(read)} if shown else {}
    return replace(made, figures={"rows": float(len(kept)), **found})
