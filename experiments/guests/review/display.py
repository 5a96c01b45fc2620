"""Show the review page, or the figures of reviews, from the terminal."""
from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from ragbed.documents.errors import MissingExtra, RunError
from ragbed.experiments.formatting import plural
from ragbed.experiments.guests.review.figures import accepted_lines, describe_figures, read_figures, write_on_card
from ragbed.experiments.guests.review.items import open_set
from ragbed.experiments.runs.store import write_text
from ragbed.experiments.terminal.display import note, print_json, say, stoppable


def review_page(target: str, reviewer: str | None, sample: int | None, seed: int, index: Path | None,
                port: int) -> None:
    """Serve the page until Ctrl-C. Raises UserError if the items cannot be read, or the port is in use."""
    MissingExtra.check("serve", "starlette", "uvicorn")
    from ragbed.experiments.guests.review.review_server import serve

    reviewed = open_set(target, seed, index)
    query = f"?reviewer={quote(reviewer)}" if reviewer is not None else ""

    def announce(address: str) -> None:
        count = min(sample or len(reviewed.items), len(reviewed.items))
        say(f"{plural(count, 'item')} of {reviewed.name} to review at {address}{query}")
        note(f"reviews are saved in {reviewed.file}; press Ctrl-C to stop")

    with stoppable(f"reviews are saved; show them with: ragbed review {target} --summary"):
        serve(reviewed, sample, port, announce)


def show_reviews(target: str, seed: int, index: Path | None, export: Path | None, json: bool) -> None:
    """Show the decisions, write them onto the card of a constructed set, and export accepted items."""
    reviewed = open_set(target, seed, index)
    found, reviews = read_figures(reviewed)
    if export is not None:
        lines = accepted_lines(reviewed.items, reviews, reviewed.documents)
        if not lines:
            raise RunError(f"{target}: no item has been accepted yet, so there is nothing to write to {export}")
        write_text(export, "".join(f"{line}\n" for line in lines))
    if json:
        print_json(found)
    else:
        for line in describe_figures(found):
            say(line)
        if export is not None:
            say(f"{plural(len(lines), 'accepted item')} written to {export}; to run them: ragbed run jsonl {export}")
    if reviewed.folder is not None:
        write_on_card(reviewed.folder, found)
