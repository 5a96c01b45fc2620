"""Find the guest that splits a command into shards and merges their results."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ragbed.experiments.commands.options import refuse
from ragbed.guests import entries, load

if TYPE_CHECKING:
    from ragbed.documents.shards import Shard
    from ragbed.experiments.runs.store import RunFolder
    from ragbed.retrieval.build import BuildReport
    from ragbed.retrieval.types import Progress


class ShardLauncher(Protocol):
    """A way to run a command as shards, such as in several processes; guests add it in the slot `launcher`."""

    def launch(self, words: Sequence[str], launcher: str, wholes: Sequence[Path],
               asking: Iterable[Any] = ()) -> list[Shard]:
        """Run the command line `words` once per shard and return the shards. `launcher` is the value of the option,
        `wholes` are the folders to merge into, and `asking` has settings whose local models must be served."""
        ...

    def merge_indexes(self, folders: Sequence[Path], out: Path, progress: Progress) -> BuildReport:
        """Merge the shards of an index into the folder `out`."""
        ...

    def merged_run(self, folders: Sequence[Path], out: Path, fresh: bool = False) -> AbstractContextManager[RunFolder]:
        """Merge the shards of a run into the folder `out` and yield it; `fresh` replaces a run there."""
        ...


def find_launcher(text: str) -> ShardLauncher:
    """Return the launcher that the value of `--launcher` names by its first word, as in `local:4`. Raises
    SettingsError: no guest adds it."""
    known = entries("launcher")
    name = text.partition(":")[0]
    if name not in known:
        refuse(f"--launcher {text}: unknown launcher; there are: {', '.join(known) or 'none'}, as in local:4")
    found: ShardLauncher = load(known[name])
    return found
