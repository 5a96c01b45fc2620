"""What is to be said of a replay once it ended."""
from __future__ import annotations

from experiments.cassettes.misses import misses
from experiments.cassettes.replay import Replay
from experiments.runs.store import RunFolder
from experiments.settings import RunSettings


def on_replay(folder: RunFolder, settings: RunSettings, replay: Replay | None) -> tuple[list[str], bool]:
    """Lines on what was missed, and on whether the results are the recorded ones; and whether all is as recorded.

    Args:
        replay: None where the run's own journal was replayed.
    """
    missed = misses(folder)
    if missed:
        return [f"{missed} of the calls and searches are not in {replay.path if replay else 'the journal'}; each "
                "record says how it differs from the nearest that is"], False
    if replay is None or not replay.same_settings(settings):
        return [], True
    if folder.summary()["results"] == replay.about.results:
        return [f"the results are those of {replay.path}"], True
    return [f"the results are not those of {replay.path}, which ragbed {replay.cassette.ragbed} wrote: what is made of "
            "the calls has changed since, or the file was altered"], False
