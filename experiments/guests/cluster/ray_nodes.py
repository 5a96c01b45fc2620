"""Run shards on a Ray cluster: one task per shard, on any node, writing to a folder that all nodes share.

Only the command line, lines of progress and exit statuses pass through Ray.
"""
from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ragbed.agents.model_settings import LocalSettings
from ragbed.documents.errors import MissingExtra, RunError, SettingsError, UserError
from ragbed.documents.shards import Shard, parts
from ragbed.experiments.guests.cluster.launcher import (
    MAX_PROCESSES,
    Launcher,
    Servers,
    ShardProgress,
    run_shard,
    serve_models,
)
from ragbed.experiments.running.preflight import OWN_FILES
from ragbed.experiments.runs.store import lock_run, remove
from ragbed.experiments.terminal.display import Bars, note
from ragbed.retrieval.storage.folder import exclusive

_MAX_RETRIES = 3  # retries of a shard whose node or process was lost
_CONNECT_TIMEOUT = 5  # seconds
_SETTINGS = b"\x04"  # type of the first frame that an HTTP/2 server, such as a gRPC server, sends
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + _SETTINGS + bytes(5)
_LOCAL_CLUSTER = {"include_dashboard": False, "object_store_memory": 80 << 20}  # bytes; unused, but Ray's minimum
_RELEASE_TIMEOUT = 90  # seconds for the process of an earlier attempt to end; an unreachable node gives up after 60


class RayLauncher(Launcher):
    """`--launcher ray`, `ray:auto` and `ray:HOST:PORT` run shards on a Ray cluster."""

    def run_shards(self, words: Sequence[str], launcher: str, wholes: Sequence[Path],
                   models: Mapping[str, LocalSettings], bars: Bars) -> dict[Shard, int]:
        """Run the command line `words` as shards and return the exit statuses. Raises as `run_on_cluster` does."""
        return run_on_cluster(words, launcher.partition(":")[2], wholes, models, bars)


LAUNCHER = RayLauncher()


def run_on_cluster(words: Sequence[str], address: str, wholes: Sequence[Path], models: Mapping[str, LocalSettings],
               bars: Bars) -> dict[Shard, int]:
    """Run the command line `words` as shards on a Ray cluster and return the exit status of each.

    The number of shards is that of an earlier start, or else the cluster's number of processors. Each node serves local
    models.

    Args:
        address: address of the cluster; if empty, a cluster is started on this machine.
        wholes: the output folders, into which the shards are merged.

    Raises:
        MissingExtra: Ray is not installed.
        SettingsError: `address` is malformed, or earlier shards divide the work differently.
        RunError: no cluster answers at the address, or a node wrote to a folder that is not shared.
    """
    begun = {int(path.name.rpartition("-")[2]) for whole in wholes for path in parts(whole)
             if path.name.rpartition("-")[2].isdecimal()}
    if len(begun) > 1:
        counts = " and of ".join(map(str, sorted(begun)))
        raise SettingsError(f"{wholes[0]} mixes shards of different splits (of {counts}); keep the shard folders of "
                            "one split and delete the others")
    with _connect(address):
        import ray

        count = min(begun or [min(max(int(ray.cluster_resources().get("CPU", 0)), 2), MAX_PROCESSES)])
        shards = [Shard(number + 1, count) for number in range(count)]
        note(f"{count} shards on {sum(node['Alive'] for node in ray.nodes())} nodes")
        places = {shard: [shard.folder(whole) for whole in wholes] for shard in shards}
        for place in [place for folders in places.values() for place in folders] if "--fresh" in words else ():
            lock = lock_run(place)  # delete earlier results only here, once: a retried shard keeps its finished work
            for name in OWN_FILES:
                remove(place / name)
            lock.release()
        statuses = _run_tasks([word for word in words if word != "--fresh"], places, models,
                              ShardProgress(bars, count))
    for shard, folders in places.items():
        if not statuses[shard] and (unseen := [place for place in folders if not place.is_dir()]):
            raise RunError(f"shard {shard} finished on a node, but {unseen[0]} is not on this machine; run the "
                           "command in a folder that all nodes share")
    return statuses


@contextlib.contextmanager
def _connect(address: str) -> Iterator[None]:
    MissingExtra.check("ray", "ray")
    found = os.environ.get("RAY_ADDRESS") or address if address == "auto" else address
    server = re.fullmatch(r"([^\s/]+):(\d{1,5})", found)
    if server:  # if no Ray cluster listens there, Ray itself would try for minutes
        try:
            with socket.create_connection((server[1].strip("[]"), int(server[2])), _CONNECT_TIMEOUT) as connection:
                connection.sendall(_GREETING)
                if connection.recv(4)[3:] != _SETTINGS:
                    raise OSError("it is not the head of a Ray cluster")
        except (OSError, OverflowError) as error:
            raise RunError(f"no Ray cluster at {found}: {getattr(error, 'strerror', None) or error}") from error
    elif found not in ("", "auto"):
        raise SettingsError(f"--launcher ray:{address}: expected ray, ray:auto or ray:HOST:PORT, as printed by "
                            "`ray start --head`")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):  # keeps Ray's warnings off the terminal
        before = signal.getsignal(signal.SIGTERM)
        try:
            try:
                ray.init(found or "local", log_to_driver=False, logging_level="CRITICAL",
                         **({} if found else _LOCAL_CLUSTER))
            except (ConnectionError, TimeoutError, RuntimeError, ValueError) as error:
                raise RunError(f"no Ray cluster at {found or 'this machine'}: {error}") from error
            signal.signal(signal.SIGTERM, before)
            yield
        finally:
            ray.shutdown()


def _run_tasks(words: Sequence[str], places: Mapping[Shard, Sequence[Path]], models: Mapping[str, LocalSettings],
               progress: ShardProgress) -> dict[Shard, int]:
    """Return the exit status of each shard; 1 if Ray gave up on it."""
    import ray

    desk = _start_actor(_Desk, ray.get_runtime_context().get_node_id(), models, os.getcwd())
    task = ray.remote(num_cpus=1, max_retries=_MAX_RETRIES, retry_exceptions=[ChildProcessError],
                      scheduling_strategy="SPREAD")(_run_task)
    left = {task.remote(words, shard, own, desk, os.getcwd()): shard for shard, own in places.items()}
    statuses = dict.fromkeys(places, 1)
    while left:
        done, _ = ray.wait(list(left), timeout=1)
        for shard, line in ray.get(desk.lines.remote()):
            progress(shard, line)
        for one in done:
            shard = left.pop(one)
            try:
                statuses[shard] = ray.get(one)
            except ray.exceptions.RayError as error:
                note(f"ragbed: shard {shard}: {str(error).strip().splitlines()[-1].partition('. ')[0]}")
    return statuses


def _start_actor(kind: type, node: str, *given: Any) -> Any:
    """Start an actor on a node. Ray restarts it if its process is lost."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(node, soft=False)
    return ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1, scheduling_strategy=here)(kind).remote(*given)


def _run_task(words: Sequence[str], shard: Shard, places: Sequence[Path], desk: Any, folder: str) -> int:
    """Run a shard on a node and return its exit status. Raises ChildProcessError if a signal ended its process."""
    import ray

    try:
        os.chdir(folder)
        models = ray.get(desk.start.remote(shard, ray.get_runtime_context().get_node_id()))
        servers: Servers = ray.get(models.servers.remote()) if models else {}
    except (OSError, UserError) as error:
        ray.get(desk.say.remote(shard, f"ragbed: {folder} on {socket.gethostname()}: {error.args[-1]}"))
        return 2
    end = time.monotonic() + _RELEASE_TIMEOUT
    while not all(map(_is_free, places)) and time.monotonic() < end:
        time.sleep(1)
    status = asyncio.run(run_shard(words, shard, servers, desk.say.remote))
    ray.get(desk.say.remote(shard, ""))  # this call waits until earlier lines have arrived
    if not 0 <= status <= 128:
        raise ChildProcessError(f"the process of shard {shard} was killed, with exit status {status}")
    return status


def _is_free(place: Path) -> bool:
    """Return whether a shard's folder is free: no process uses it, such as that of an earlier attempt."""
    try:
        with exclusive(place):
            if (place / ".lock").exists():
                lock_run(place).release()
    except UserError:
        return False
    return True


class _Desk:
    """Actor on the launcher's node. Collects the lines of all shards, and starts a model server per node."""

    def __init__(self, *given: Any) -> None:
        self._given = given
        self._started: set[Shard] = set()
        self._lines: list[tuple[Shard, str]] = []
        self._nodes: dict[str, Any] = {}

    def start(self, shard: Shard, node: str) -> Any:
        """Register a shard that starts on a node. Return the actor that serves models there, or None without models."""
        if shard in self._started:
            self.say(shard, f"shard {shard} lost its node or its process, and continues")
        self._started.add(shard)
        if self._given[0] and node not in self._nodes:
            self._nodes[node] = _start_actor(_Node, node, *self._given)
        return self._nodes.get(node)

    def say(self, shard: Shard, line: str) -> None:
        self._lines.append((shard, line))

    def lines(self) -> list[tuple[Shard, str]]:
        """Return the lines since the last call."""
        lines, self._lines = self._lines, []
        return lines


class _Node:
    """Actor that serves local models to all shards on its node, until the launcher ends."""

    def __init__(self, models: Mapping[str, LocalSettings], folder: str) -> None:
        os.chdir(folder)
        self._serving = serve_models(models)
        self._servers: asyncio.Task[Servers] | None = None

    async def servers(self) -> Servers:
        """Return the servers. The first call starts them."""
        if self._servers is None:
            self._servers = asyncio.ensure_future(self._serving.__aenter__())
        return await asyncio.shield(self._servers)
