"""`ragbed review` at work: the page, the figures, the card and the export."""
from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from ragbed.documents.errors import MissingExtra, RunError
from ragbed.experiments.guests.review.figures import accepted_lines, describe_figures, read_figures, write_on_card
from ragbed.experiments.guests.review.items import open_set
from ragbed.experiments.runs.store import write_text
from ragbed.experiments.terminal.display import note, print_json, say, stoppable


def review_page(target: str, reviewer: str | None, sample: int | None, seed: int, index: Path | None,
                port: int) -> None:
    """Serve the page until Ctrl-C. Raises UserError where the items cannot be read, or the port is taken."""
    MissingExtra.check("serve", "starlette", "uvicorn")
    from ragbed.experiments.guests.review.server import serve

    reviewed = open_set(target, seed, index)
    query = f"?reviewer={quote(reviewer)}" if reviewer is not None else ""

    def told(address: str) -> None:
        say(f"{min(sample or len(reviewed.items), len(reviewed.items))} items of {reviewed.name} to review at "
            f"{address}{query}")
        note(f"reviews are kept in {reviewed.file}; Ctrl-C ends the page")

    with stoppable(f"what was reviewed is kept; ragbed review {target} --summary shows it"):
        serve(reviewed, sample, port, told)


def show_reviews(target: str, seed: int, index: Path | None, export: Path | None, json: bool) -> None:
    """Show what was decided, write it onto the card of a constructed set, and export what was accepted."""
    reviewed = open_set(target, seed, index)
    found, reviews = read_figures(reviewed)
    if export is not None:
        lines = accepted_lines(reviewed.items, reviews, reviewed.documents)
        if not lines:
            raise RunError(f"{target}: no item is accepted yet, so that nothing can be written to {export}")
        write_text(export, "".join(f"{line}\n" for line in lines))
    if json:
        print_json(found)
    else:
        for line in describe_figures(found):
            say(line)
        if export is not None:
            say(f"{len(lines)} accepted items are in {export}; to ask them: ragbed run jsonl {export}")
    if reviewed.folder is not None:
        write_on_card(reviewed.folder, found)
