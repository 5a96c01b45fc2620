"""`ragbed review`: review questions in the browser."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragbed.experiments.commands.options import AsJson


def review(
        target: Annotated[str, typer.Argument(metavar="TARGET", help="Folder of a set that `ragbed construct` wrote, a "
                                              "JSON Lines file of questions, or KIND:PATH of a benchmark.")],
        reviewer: Annotated[str | None, typer.Option(help="Your name; by default the page asks for it.")] = None,
        sample: Annotated[int | None, typer.Option(min=1, help="Only so many items, drawn by --seed.")] = None,
        seed: Annotated[int, typer.Option(help="Of the order in which items are shown.")] = 0,
        index: Annotated[Path | None, typer.Option("--index", help="Index that has the documents of the questions of a "
                                                   "file.")] = None,
        port: Annotated[int, typer.Option(min=0, max=65535, help="Of the page; by default any that is free.")] = 0,
        summary: Annotated[bool, typer.Option("--summary", help=(
            "Show what was decided, how far reviewers agree, and the share of wrong labels; write it onto the set's "
            "card."))] = False,
        export: Annotated[Path | None, typer.Option("--export", metavar="FILE", help=(
            "Write the accepted items, as edited, as JSON Lines of questions."))] = None,
        json: AsJson = False) -> None:
    """Review questions in the browser, one at a time, their evidence marked in its document.

    The page is served on this machine alone, and works by keys: a accepts, d rejects, e edits, ? shows all. Items
    come in a random order, so that whoever stops has reviewed a random sample. Several people may review the same set;
    nobody sees what the others decided. Reviews are kept beside the set, in one file, as soon as they are made.
    """
    from ragbed.experiments.guests.review.display import review_page, show_reviews

    if summary or export is not None:
        show_reviews(target, seed, index, export, json)
    else:
        review_page(target, reviewer, sample, seed, index, port)
