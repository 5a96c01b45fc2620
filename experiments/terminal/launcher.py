"""Launchers: a command carried out as shards, a process each, with one view of how all of them come on."""
from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from ragbed.agents.local_server import LocalServer
from ragbed.agents.models import SHARED, resolve
from ragbed.agents.settings import LocalSettings
from ragbed.documents.errors import RunError, SettingsError
from ragbed.documents.http import SERVER_SCHEMES
from ragbed.documents.paths import child_environment
from ragbed.documents.shards import Shard
from ragbed.experiments.construct.settings import ConstructSettings
from ragbed.experiments.settings import RunSettings
from ragbed.experiments.terminal.display import Bars, note, stoppable

_ALONE = ("--json", "--launcher")  # options of the whole
MOST = 256  # processes
Servers = dict[str, tuple[str, str]]  # address and key of a local model's server, by the model's identity
_CHILD = """import runpy, signal, sys
from ragbed.agents.local_child import die_with
die_with(int(sys.argv.pop(1)), signal.SIGTERM)
runpy.run_module("ragbed.experiments.cli", run_name="__main__")"""  # `ragbed`, which ends when we end


def launch(words: Sequence[str], launcher: str, wholes: Sequence[Path],
           asking: Iterable[RunSettings | ConstructSettings] = ()) -> list[Shard]:
    """Carry out the command of these words as shards, a process each, and return these: as many as `local:N` names, or
    on the nodes of a cluster, `ray:ADDRESS`. They are to be merged into the folders `wholes`; local models of the
    settings that ask are served once on each machine. Raises SettingsError for another launcher, and RunError where the
    cluster cannot be used, or a shard did not come to its end: its work is kept, and the same command continues."""
    kind, _, where = launcher.partition(":")
    kept = [word for before, word in pairwise(["", *words])
            if word not in _ALONE and before != "--launcher" and not word.startswith("--launcher=")]
    models = {name: settings.calls.local for settings in asking for name in settings.every_model
              if name.partition(":")[0] not in SERVER_SCHEMES}
    with stoppable("what was made is kept, and the same command continues"), Bars() as bars:
        if kind == "ray":
            from ragbed.experiments.terminal.cluster import on_cluster

            ends = on_cluster(kept, where, wholes, models, bars)
        elif kind == "local" and where.isdecimal() and 2 <= int(where) <= MOST:
            shards = [Shard(number + 1, int(where)) for number in range(int(where))]
            statuses = asyncio.run(_launched(kept, shards, models, Together(bars, len(shards))))
            ends = dict(zip(shards, statuses, strict=True))
        else:
            raise SettingsError(f"--launcher {launcher}: expected local:N, for 2 to {MOST} processes, as in local:4, "
                                "or ray, ray:auto or ray:HOST:PORT")
    if failed := [str(shard) for shard, status in ends.items() if status]:
        raise RunError(f"{'shard' if len(failed) == 1 else 'shards'} {', '.join(failed)} did not come to the end; what "
                       "was made is kept, and the same command continues")
    return list(ends)


class Together:
    """The progress of all shards, stage by stage; the total is known once each of them has said its own. What several
    note in the same words is shown once."""

    def __init__(self, bars: Bars, count: int) -> None:
        self._bars, self._count = bars, count
        self._said: dict[str, dict[Shard, tuple[int, int | None]]] = defaultdict(dict)
        self._noted = {""}

    def __call__(self, shard: Shard, line: str) -> None:
        """Take a line of a shard's."""
        try:
            said = json.loads(line)
            of = self._said[said["stage"]]
            of[shard] = said["done"], said["total"]
        except (ValueError, TypeError, KeyError):
            if line not in self._noted:
                note(line)
            self._noted.add(line)
            return
        totals = [total for _, total in of.values() if total is not None]
        self._bars(said["stage"], sum(done for done, _ in of.values()),
                   sum(totals) if len(totals) == self._count else None)


async def _launched(words: Sequence[str], shards: Sequence[Shard], models: Mapping[str, LocalSettings],
                    progress: Together) -> list[int]:
    async with served(models) as servers:
        return await asyncio.gather(*(carried_out(words, shard, servers, progress) for shard in shards))


async def carried_out(words: Sequence[str], shard: Shard, servers: Servers,
                      progress: Callable[[Shard, str], object]) -> int:
    """Carry out a shard of the command in a process, whose lines go to `progress`; return its exit status."""
    environment = {**os.environ, "PYTHONPATH": child_environment()["PYTHONPATH"], SHARED: json.dumps(servers)}
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-c", _CHILD, str(os.getpid()), *words, "--shard", str(shard), env=environment,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
        start_new_session=True)  # Ctrl-C is for us, who pass it on
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
async def served(models: Mapping[str, LocalSettings]) -> AsyncIterator[Servers]:
    """Start the server of each that is a local model, and yield their addresses and keys by the models' identities."""
    servers: Servers = {}
    async with contextlib.AsyncExitStack() as stack:
        for name, settings in models.items():
            target = await asyncio.to_thread(resolve, name)
            if target.weights is not None and target.identity not in servers:
                server = LocalServer(target.weights, settings)
                stack.push_async_callback(server.aclose)
                address = await server.address()
                servers[target.identity] = address.url, address.key
        yield servers
