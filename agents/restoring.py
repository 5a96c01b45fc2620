"""Bringing a question back to where it was when it was saved."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agents.asked import CallOutcome
from agents.playback import Playback, search_hash
from documents.errors import RecipeMismatch
from documents.types import Chunk
from strategies.types import Failure


def restore(play: Playback, results: Sequence[Mapping[str, Any]]) -> None:
    """Bring a fresh playback to where the recorded results leave it, with what they used of its budget. Nobody is told
    of their steps again.

    Raises:
        RecipeMismatch: the recipe asks for something other than what was recorded, or the index lacks what was found.
    """
    for entry in results:
        node = "generate" if "asked" in entry else "search"
        wanted = [*map(search_hash, play.searches()), *map(play.means.key, play.calls())]
        if play.node != node or wanted != entry["actions"]:
            raise RecipeMismatch(f"question {play.task.id}: step {len(play.trace) + 1} of the strategy differs "
                                 "from what was recorded; the strategy or its prompts have changed since")
        if "found" in entry:
            play.take_found([_chunks(play, ids) for ids in entry["found"]])
        elif "lost" in entry:
            play.take_lost(Failure(**entry["lost"]))
        else:
            play.take_asked([CallOutcome.from_json(one) for one in entry["asked"]])
        play.started -= entry.get("seconds", 0.0)
        play.told = len(play.trace)


def _chunks(play: Playback, ids: Iterable[str]) -> list[Chunk]:
    try:
        return [play.means.chunk(id) for id in ids]
    except KeyError as error:
        raise RecipeMismatch(f"question {play.task.id} names a passage that the index does not have: "
                             f"{error.args[0]!r:.80}") from None
