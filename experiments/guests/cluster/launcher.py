"""Run a command as shards, one process each, and show their progress together."""
from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from pathlib import Path
from typing import Any

from ragbed.agents.model_settings import LocalSettings
from ragbed.agents.models import SHARED_SERVERS, resolve_model
from ragbed.documents.errors import RunError, SettingsError
from ragbed.documents.http import SERVER_SCHEMES
from ragbed.documents.paths import child_environment
from ragbed.documents.shards import Shard
from ragbed.experiments.guests.local_models.llama_server import LocalServer
from ragbed.experiments.runs.store import RunFolder
from ragbed.experiments.terminal.display import Bars, note, stoppable
from ragbed.retrieval.build import BuildReport
from ragbed.retrieval.types import Progress

_PARENT_OPTIONS = ("--json", "--launcher")  # options that are not passed to shards
MAX_PROCESSES = 256
Servers = dict[str, tuple[str, str]]  # address and key of each local model's server, by the model's identity
_CHILD = """import runpy, signal, sys
from ragbed.documents.child_process import end_with_parent
end_with_parent(int(sys.argv.pop(1)), signal.SIGTERM)
runpy.run_module("ragbed", run_name="__main__")"""  # runs the command line in a process that ends with this one


class Launcher:
    """`--launcher local:N` runs N processes here. `ray_nodes.RayLauncher` runs shards on a Ray cluster."""

    def launch(self, words: Sequence[str], launcher: str, wholes: Sequence[Path],
               asking: Iterable[Any] = ()) -> list[Shard]:
        """Run the command line `words` once per shard and return the shards.

        Args:
            launcher: the value of `--launcher`.
            wholes: the output folders, into which the shards are merged.
            asking: settings of runs or sets that call models. Their local models are served once per machine.

        Raises:
            SettingsError: `launcher` is malformed.
            RunError: the cluster cannot be used, or a shard failed. Finished work is kept.
        """
        kept = [word for before, word in pairwise(["", *words])
                if word not in _PARENT_OPTIONS and before != "--launcher" and not word.startswith("--launcher=")]
        models = {spec: settings.calls.of(name).local for settings in asking for name in settings.all_models
                  if (spec := settings.calls.config(name).model).partition(":")[0] not in SERVER_SCHEMES}
        with stoppable("finished work is kept; rerun the command to continue"), Bars() as bars:
            statuses = self.run_shards(kept, launcher, wholes, models, bars)
        if failed := [str(shard) for shard, status in statuses.items() if status]:
            raise RunError(f"{'shard' if len(failed) == 1 else 'shards'} {', '.join(failed)} failed; finished work is "
                           "kept: rerun the command to continue")
        return list(statuses)

    def run_shards(self, words: Sequence[str], launcher: str, wholes: Sequence[Path],
                   models: Mapping[str, LocalSettings], bars: Bars) -> dict[Shard, int]:
        """Run the command line `words` as shards and return the exit status of each. `models` has the server of
        each local model."""
        kind, _, count = launcher.partition(":")
        if kind != "local" or not (count.isdecimal() and 2 <= int(count) <= MAX_PROCESSES):
            raise SettingsError(f"--launcher {launcher}: expected local:N, for 2 to {MAX_PROCESSES} processes, as "
                                "in local:4, or ray, ray:auto or ray:HOST:PORT")
        shards = [Shard(number + 1, int(count)) for number in range(int(count))]
        ended = asyncio.run(_run_here(words, shards, models, ShardProgress(bars, len(shards))))
        return dict(zip(shards, ended, strict=True))

    def merge_indexes(self, folders: Sequence[Path], out: Path, progress: Progress) -> BuildReport:
        """Merge the shards of an index into the folder `out`."""
        from ragbed.experiments.guests.cluster.merge_shards import merge_indexes

        return merge_indexes(folders, out, progress)

    def merged_run(self, folders: Sequence[Path], out: Path, fresh: bool = False) -> AbstractContextManager[RunFolder]:
        """Merge the shards of a run into the folder `out` and yield it."""
        from ragbed.experiments.guests.cluster.merge_shards import merged_run

        return merged_run(folders, out, fresh)


LAUNCHER = Launcher()


class ShardProgress:
    """Adds up the progress of all shards, per stage. Call it with each line that a shard writes to standard error. It
    shows the total once every shard has reported one. It shows a note only once, even if several shards send it."""

    def __init__(self, bars: Bars, count: int) -> None:
        self._bars, self._count = bars, count
        self._stages: dict[str, dict[Shard, tuple[int, int | None]]] = defaultdict(dict)
        self._noted = {""}

    def __call__(self, shard: Shard, line: str) -> None:
        try:
            report = json.loads(line)
            stage = self._stages[report["stage"]]
            stage[shard] = report["done"], report["total"]
        except (ValueError, TypeError, KeyError):
            if line not in self._noted:
                note(line)
            self._noted.add(line)
            return
        totals = [total for _, total in stage.values() if total is not None]
        self._bars(report["stage"], sum(done for done, _ in stage.values()),
                   sum(totals) if len(totals) == self._count else None)


async def _run_here(words: Sequence[str], shards: Sequence[Shard], models: Mapping[str, LocalSettings],
                    progress: ShardProgress) -> list[int]:
    async with serve_models(models) as servers:
        return await asyncio.gather(*(run_shard(words, shard, servers, progress) for shard in shards))


async def run_shard(words: Sequence[str], shard: Shard, servers: Servers,
                    progress: Callable[[Shard, str], object]) -> int:
    """Run one shard of a command in a process and return its exit status. `progress` receives the lines of its stderr.
    """
    environment = {**os.environ, "PYTHONPATH": child_environment()["PYTHONPATH"], SHARED_SERVERS: json.dumps(servers)}
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-c", _CHILD, str(os.getpid()), *words, "--shard", str(shard), env=environment,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
        start_new_session=True)  # Ctrl-C reaches this process only, which ends the child
    try:
        assert child.stderr is not None
        async for line in child.stderr:
            progress(shard, line.decode(errors="replace").rstrip())
        return await child.wait()
    finally:
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                child.terminate()
            await child.wait()


@contextlib.asynccontextmanager
async def serve_models(models: Mapping[str, LocalSettings]) -> AsyncIterator[Servers]:
    """Start a server for each local model and yield their addresses and keys by model identity."""
    servers: Servers = {}
    async with contextlib.AsyncExitStack() as stack:
        for name, settings in models.items():
            target = await asyncio.to_thread(resolve_model, name)
            if target.weights is not None and target.identity not in servers:
                server = LocalServer(target.weights, settings)
                stack.push_async_callback(server.aclose)
                address = await server.address()
                servers[target.identity] = address.url, address.key
        yield servers
