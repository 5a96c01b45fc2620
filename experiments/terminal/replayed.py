"""What is to be said of a replay once it ended."""
from __future__ import annotations

from collections.abc import Iterator

from experiments.cassettes.misses import misses
from experiments.cassettes.replay import Replay
from experiments.settings import RunSettings
from experiments.store import RunFolder


def on_replay(folder: RunFolder, settings: RunSettings, replay: Replay | None) -> tuple[list[str], bool]:
    """Lines on what was missed, and on whether the results are the recorded ones; and whether nothing was missed.

    Args:
        replay: None where the run's own journal was replayed.
    """
    missed = misses(folder)
    said = [f"{missed} of the calls and searches are not in {replay.path if replay else 'the journal'}; each record "
            "names the nearest prompt that is"] if missed else []
    if replay is not None and not missed:
        said += _on_results(folder, settings, replay)
    return said, not missed


def _on_results(folder: RunFolder, settings: RunSettings, replay: Replay) -> Iterator[str]:
    if not replay.same_settings(settings):
        return
    same = folder.summary()["results"] == replay.about.results
    yield (f"the results are those of {replay.path}" if same else
           f"the results are not those of {replay.path}, which ragbed {replay.cassette.ragbed} wrote: the calls are "
           "the same, but what is made of them has changed")
