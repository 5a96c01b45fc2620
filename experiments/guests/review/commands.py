"""`ragbed review`: review questions in the browser."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragbed.experiments.commands.options import AsJson

Target = Annotated[str, typer.Argument(metavar="TARGET", help=(
    "Questions: folder of a set, JSON Lines file, or KIND:PATH."))]
Index = Annotated[Path | None, typer.Option("--index", help="Index of the documents that the questions refer to.")]
Export = Annotated[Path | None, typer.Option("--export", metavar="FILE", help="Write accepted items as JSON Lines.")]


def review(
        target: Target,
        reviewer: Annotated[str | None, typer.Option(help="Your name; otherwise the page asks for it.")] = None,
        sample: Annotated[int | None, typer.Option(min=1, help="Review only N random items.")] = None,
        seed: Annotated[int, typer.Option(help="Random seed of the order of items.")] = 0, index: Index = None,
        port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the page; 0 for any free one.")] = 0,
        summary: Annotated[bool, typer.Option("--summary", help=(
            "Show the results, and add them to the dataset card."))] = False,
        export: Export = None, json: AsJson = False) -> None:
    """Review questions in the browser, and report wrong labels.

    The page shows one question at a time, with the evidence marked in its document. It is served on this machine only,
    with keyboard shortcuts: a accepts, d rejects, e edits, ? shows all. Items come in random order, so whoever stops
    early has reviewed a random sample. Several people may review the same set without seeing each other's decisions.
    Each review is saved at once, in one file next to the set.

    --summary shows the decisions, the agreement between reviewers, and the share of wrong labels.
    """
    from ragbed.experiments.guests.review.display import review_page, show_reviews

    if summary or export is not None:
        show_reviews(target, seed, index, export, json)
    else:
        review_page(target, reviewer, sample, seed, index, port)
