"""The local launcher: a command carried out as shards, a process each, with one view of how all of them come on."""
from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import pairwise

from agents.local_server import LocalServer
from agents.models import SHARED, resolve
from documents.errors import RunError, SettingsError
from documents.places import child_environment
from documents.shards import Shard
from experiments.settings import RunSettings
from experiments.terminal.display import Bars, note, stoppable

_ALONE = ("--json", "--launcher")  # options of the whole
_MOST = 256  # processes
_CHILD = """import runpy, signal, sys
from agents.local_child import die_with
die_with(int(sys.argv.pop(1)), signal.SIGTERM)
runpy.run_module("experiments.cli", run_name="__main__")"""  # the command `ragbed`, ended with us, however we end


def launch(words: Sequence[str], launcher: str, runs: Iterable[RunSettings] = ()) -> list[Shard]:
    """Carry out the command of these words as the shards that `local:N` names, a process each, and return these; a
    local model of the runs is served once, to all of them. Raises SettingsError for another launcher, and RunError
    where a shard did not come to its end: its work is kept, and the same command continues."""
    kind, _, count = launcher.partition(":")
    if kind != "local" or not count.isdecimal() or not 2 <= int(count) <= _MOST:
        raise SettingsError(f"--launcher {launcher}: expected local:N, for 2 to {_MOST} processes, as in local:4")
    shards = [Shard(number + 1, int(count)) for number in range(int(count))]
    kept = [word for before, word in pairwise(["", *words])
            if word not in _ALONE and before != "--launcher" and not word.startswith("--launcher=")]
    with stoppable("what was made is kept, and the same command continues"), Bars() as bars:
        ends = asyncio.run(_launched(kept, shards, list(runs), _Together(bars, len(shards))))
    if failed := [str(shard) for shard, status in zip(shards, ends, strict=True) if status]:
        raise RunError(f"{'shard' if len(failed) == 1 else 'shards'} {', '.join(failed)} did not come to the end; what "
                       "was made is kept, and the same command continues")
    return shards


class _Together:
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


async def _launched(words: Sequence[str], shards: Sequence[Shard], runs: Sequence[RunSettings],
                    progress: _Together) -> list[int]:
    """Carry out all shards; return the exit status of each."""
    async with _served(runs) as servers:
        environment = {**os.environ, "PYTHONPATH": child_environment()["PYTHONPATH"], SHARED: json.dumps(servers)}
        return await asyncio.gather(*(_carried_out(words, shard, environment, progress) for shard in shards))


async def _carried_out(words: Sequence[str], shard: Shard, environment: dict[str, str], progress: _Together) -> int:
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
async def _served(runs: Sequence[RunSettings]) -> AsyncIterator[dict[str, tuple[str, str]]]:
    """Start the server of each local model, and yield their addresses and keys by the models' identities."""
    servers: dict[str, tuple[str, str]] = {}
    async with contextlib.AsyncExitStack() as stack:
        for settings in runs:
            models = [*settings.models, *(name for more in settings.include for name in more.models or ())]
            for name in dict.fromkeys([*models, *settings.other_models]):
                target = await asyncio.to_thread(resolve, name)
                if target.weights is not None and target.identity not in servers:
                    server = LocalServer(target.weights, settings.asking.local)
                    stack.push_async_callback(server.aclose)
                    address = await server.address()
                    servers[target.identity] = address.url, address.key
        yield servers
