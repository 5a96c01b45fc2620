"""The launcher on a cluster: a task of Ray Core for each shard, on any node, which writes to a folder that all share.
Nothing goes through Ray but words, lines of progress and exit statuses."""
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

from ragbed.agents.settings import LocalSettings
from ragbed.documents.errors import MissingExtra, RunError, SettingsError, UserError
from ragbed.documents.shards import Shard, divisions
from ragbed.experiments.running.prepare import OWN_FILES
from ragbed.experiments.runs.store import hold, remove
from ragbed.experiments.terminal.display import Bars, note
from ragbed.experiments.terminal.launcher import MOST, Servers, Together, carried_out, served
from ragbed.retrieval.storage.folder import alone

_RETRIES = 3  # of a shard whose node or process was lost
_CONNECTING = 5  # seconds
_SETTINGS = b"\x04"  # the kind of frame with which a server of HTTP/2, such as gRPC's, begins
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + _SETTINGS + bytes(5)
_ALONE = {"include_dashboard": False, "object_store_memory": 80 << 20}  # bytes that are not used; Ray takes no less
_GONE = 90  # seconds for a process of an earlier try to end: a node that nobody reaches gives up after sixty


def on_cluster(words: Sequence[str], address: str, wholes: Sequence[Path], models: Mapping[str, LocalSettings],
               bars: Bars) -> dict[Shard, int]:
    """Carry out the command of these words as shards on a cluster, started here where there is no address, and return
    the exit status of each. There are as many as were begun before, else as processors. Each node serves the models
    that are local ones. Raises MissingExtra without Ray; SettingsError or RunError where no cluster is at the address,
    shards were begun of two divisions, or a shard's folder is not seen here."""
    begun = sorted(set().union(*map(divisions, wholes)))
    if len(begun) > 1:
        raise SettingsError(f"{wholes[0]} was divided into {' and into '.join(map(str, begun))} shards; remove those "
                            "folders that are not wanted")
    with _connected(address):
        import ray

        count = begun[0] if begun else min(max(int(ray.cluster_resources().get("CPU", 0)), 2), MOST)
        shards = [Shard(number + 1, count) for number in range(count)]
        note(f"{count} shards; nodes of the cluster: {sum(node['Alive'] for node in ray.nodes())}")
        places = {shard: [shard.folder(whole) for whole in wholes] for shard in shards}
        for place in [place for own in places.values() for place in own] if "--fresh" in words else ():
            lock = hold(place)  # once, here: a shard that is tried again keeps what it has made
            for name in OWN_FILES:
                remove(place / name)
            lock.release()
        ends = _ended([word for word in words if word != "--fresh"], places, models, Together(bars, count))
    for shard, own in places.items():
        if not ends[shard] and (unseen := [place for place in own if not place.is_dir()]):
            raise RunError(f"shard {shard} came to its end on a node, and {unseen[0]} is not here: all nodes need the "
                           "folder in which the command is given")
    return ends


@contextlib.contextmanager
def _connected(address: str) -> Iterator[None]:
    MissingExtra.check("ray", "ray")
    found = os.environ.get("RAY_ADDRESS") or address if address == "auto" else address
    server = re.fullmatch(r"([^\s/]+):(\d{1,5})", found)
    if server:  # where something else listens, or nothing, Ray would try for minutes
        try:
            with socket.create_connection((server[1].strip("[]"), int(server[2])), _CONNECTING) as connection:
                connection.sendall(_GREETING)
                if connection.recv(4)[3:] != _SETTINGS:
                    raise OSError("what listens there is no head of Ray's")
        except (OSError, OverflowError) as error:
            raise RunError(f"no cluster of Ray at {found}: {getattr(error, 'strerror', None) or error}") from error
    elif found not in ("", "auto"):
        raise SettingsError(f"--launcher ray:{address}: expected ray, ray:auto or ray:HOST:PORT, as `ray start --head` "
                            "shows it")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):  # where Ray says what it meets
        before = signal.getsignal(signal.SIGTERM)
        try:
            try:
                ray.init(found or "local", log_to_driver=False, logging_level="CRITICAL", **({} if found else _ALONE))
            except (ConnectionError, TimeoutError, RuntimeError, ValueError) as error:
                raise RunError(f"no cluster of Ray at {found or 'this machine'}: {error}") from error
            signal.signal(signal.SIGTERM, before)
            yield
        finally:
            ray.shutdown()


def _ended(words: Sequence[str], places: Mapping[Shard, Sequence[Path]], models: Mapping[str, LocalSettings],
           progress: Together) -> dict[Shard, int]:
    """Return the exit status of each shard; 1 where Ray gave it up."""
    import ray

    desk = _actor(_Desk, ray.get_runtime_context().get_node_id(), models, os.getcwd())
    task = ray.remote(num_cpus=1, max_retries=_RETRIES, retry_exceptions=[ChildProcessError],
                      scheduling_strategy="SPREAD")(_task)
    left = {task.remote(words, shard, own, desk, os.getcwd()): shard for shard, own in places.items()}
    ends = dict.fromkeys(places, 1)
    while left:
        done, _ = ray.wait(list(left), timeout=1)
        for shard, line in ray.get(desk.lines.remote()):
            progress(shard, line)
        for one in done:
            shard = left.pop(one)
            try:
                ends[shard] = ray.get(one)
            except ray.exceptions.RayError as error:
                note(f"ragbed: shard {shard}: {str(error).strip().splitlines()[-1].partition('. ')[0]}")
    return ends


def _actor(kind: type, node: str, *given: Any) -> Any:
    """Start an actor on a node; where its process is lost it is started again."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(node, soft=False)
    return ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1, scheduling_strategy=here)(kind).remote(*given)


def _task(words: Sequence[str], shard: Shard, places: Sequence[Path], desk: Any, folder: str) -> int:
    """Carry out a shard on a node; return its exit status. Raises ChildProcessError where its process was killed."""
    import ray

    try:
        os.chdir(folder)
        models = ray.get(desk.begun.remote(shard, ray.get_runtime_context().get_node_id()))
        servers: Servers = ray.get(models.servers.remote()) if models else {}
    except (OSError, UserError) as error:
        ray.get(desk.say.remote(shard, f"ragbed: {folder} on {socket.gethostname()}: {error.args[-1]}"))
        return 2
    end = time.monotonic() + _GONE
    while not all(map(_is_free, places)) and time.monotonic() < end:
        time.sleep(1)
    status = asyncio.run(carried_out(words, shard, servers, desk.say.remote))
    ray.get(desk.say.remote(shard, ""))  # so what it said before has come
    if not 0 <= status <= 128:  # a signal ended it
        raise ChildProcessError(f"the process of shard {shard} was killed, with exit status {status}")
    return status


def _is_free(place: Path) -> bool:
    """Say whether nobody works on a shard's folder, as the process of an earlier try may do."""
    try:
        with alone(place):
            if (place / ".lock").exists():
                hold(place).release()
    except UserError:
        return False
    return True


class _Desk:
    """An actor beside the launcher: takes the lines of all shards, and knows who serves the models on each node."""

    def __init__(self, *given: Any) -> None:
        self._given = given
        self._begun: set[Shard] = set()
        self._lines: list[tuple[Shard, str]] = []
        self._nodes: dict[str, Any] = {}

    def begun(self, shard: Shard, node: str) -> Any:
        """Take note that a shard begins on a node; return the actor that serves the models there, if there are any."""
        if shard in self._begun:
            self.say(shard, f"shard {shard} lost its node or its process, and continues")
        self._begun.add(shard)
        if self._given[0] and node not in self._nodes:
            self._nodes[node] = _actor(_Node, node, *self._given)
        return self._nodes.get(node)

    def say(self, shard: Shard, line: str) -> None:
        self._lines.append((shard, line))

    def lines(self) -> list[tuple[Shard, str]]:
        """Return what was said since the last time."""
        said, self._lines = self._lines, []
        return said


class _Node:
    """An actor that serves the local models on its node, to all shards there, until the launcher ends."""

    def __init__(self, models: Mapping[str, LocalSettings], folder: str) -> None:
        os.chdir(folder)
        self._serving = served(models)
        self._servers: asyncio.Task[Servers] | None = None

    async def servers(self) -> Servers:
        """Return the servers, which the first call starts."""
        if self._servers is None:
            self._servers = asyncio.ensure_future(self._serving.__aenter__())
        return await asyncio.shield(self._servers)
