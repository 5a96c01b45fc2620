"""Shards on a cluster of Ray, two nodes on this machine: one that is lost in the middle, what is amiss in a line, and a
local model once on each node."""
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from patience import SECONDS, until
from test_local_server import LINUX, alive
from test_run import COMMAND
from test_server_embedder import serving, usual

from ragbed.documents.errors import RunError
from ragbed.documents.shards import Shard
from ragbed.experiments.guests.local_models import model_catalogue
from ragbed.experiments.terminal.display import Bars

pytestmark = [LINUX, pytest.mark.usefixtures("own_cache")]
PAGES = Path(__file__).parents[3] / "experiments" / "data" / "demo" / "pages"
KEY = "sk-nobody-may-read-this-12345"


@pytest.fixture
def cluster(own_cache, monkeypatch):
    """Two nodes of two processors; `lost()` ends the second of them as a machine ends that loses its power."""
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    from ray.cluster_utils import Cluster

    folder = tempfile.mkdtemp(prefix="ray", dir="/tmp")  # the paths of Ray's sockets are to be short
    Path("/tmp/ray").mkdir(exist_ok=True)  # Ray writes a file into it, but makes it only with its default folder
    node = {"num_cpus": 2, "object_store_memory": 80 << 20}
    nodes = Cluster(True, head_node_args={**node, "temp_dir": folder, "include_dashboard": False})
    second = nodes.add_node(**node)
    nodes.folder, nodes.lost = Path(folder), lambda: nodes.remove_node(second, allow_graceful=False)
    yield nodes
    nodes.shutdown()
    shutil.rmtree(folder)


def processes(folder):
    """The command lines, by their ids, of the processes whose cache is in the folder."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"RAGBED_CACHE={folder}/".encode() in (path / "environ").read_bytes() and alive(path.name):
                found[path.name] = (path / "cmdline").read_bytes()
    return {pid: line for pid, line in found.items() if int(pid) != os.getpid()}


@pytest.mark.slow
def test_a_node_lost_in_the_middle_of_a_run_leaves_the_summary_of_the_run_that_was_never_divided(
        serve, town, ragbed, cluster):
    waiting, released = threading.Event(), threading.Event()
    town.write([town.row(number) for number in range(12)])
    ids = ["refusal-0", *(f"non_refusal-{number}" for number in range(1, 12))]
    third = [[number for number, id in enumerate(ids) if id in Shard(part, 2)][2] for part in (1, 2)]

    def reply(body):
        held = any(f"town {number}?" in body["messages"][-1]["content"] for number in third)
        return {"text": town.reply(body), **({"hold": released} if held and waiting.is_set() else {})}

    server = serve(reply)
    path = town.config(server.url, concurrency=1)
    for part in (1, 2):
        assert ragbed("run", path, "--shard", f"{part}/2")[0] == 0
    assert len(server.requests) == 12
    waiting.set()
    child = subprocess.Popen([*COMMAND, str(path), "--fresh", "--launcher", f"ray:{cluster.address}"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until(lambda: server._open == 2)
    assert len(server.requests) == 12 + 6
    cluster.lost()
    until(lambda: len(server.requests) == 12 + 7)
    released.set()
    out, err = child.communicate()
    assert child.returncode == 0, err
    assert len(server.requests) == 12 + 12 + 1  # the one that was under way on the lost node
    assert err.count("lost its node or its process, and continues") == 1
    assert "2 shards on 2 nodes" in err
    assert '{"stage": "questions", "done": 12, "total": 12}' in err, err
    assert "raylet" not in out + err
    merged = (town.run / "summary.json").read_bytes()
    assert ragbed("run", path, "--fresh")[0] == 0
    assert (town.run / "summary.json").read_bytes() == merged
    assert [file for file in cluster.folder.rglob("*") if file.is_file() and KEY.encode() in file.read_bytes()] == []


@pytest.mark.slow
def test_a_process_and_a_node_lost_in_the_middle_of_an_index_leave_the_files_of_one_build(tmp_path, ragbed, cluster):
    released = threading.Event()
    (tmp_path / "pages").mkdir()
    for number in range(40):
        (tmp_path / "pages" / f"{number}.txt").write_text("word " * (number % 7 + 1) * 60)

    def held(body):
        released.wait(SECONDS)
        return usual(body)

    with serving(held) as (url, seen):
        words = ["index", str(tmp_path / "pages"), "--embedder", f"{url}#bge", "--out"]
        child = subprocess.Popen([*COMMAND[:-1], *words, str(tmp_path / "idx"), "--launcher", f"ray:{cluster.address}"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        until(lambda: len(seen) == 4)
        first = next(pid for pid, line in processes(tmp_path).items() if b"--shard\x001/4" in line)
        os.kill(int(first), signal.SIGKILL)
        until(lambda: len(seen) == 5)
        cluster.lost()
        until(lambda: sum(b"--shard" in line for line in processes(tmp_path).values()) == 2)
        released.set()
        out, err = child.communicate()
        assert child.returncode == 0, err
        assert "40 documents" in out
        assert "shard 1/4 lost its node or its process, and continues" in err
        assert ragbed(*words, tmp_path / "whole")[0] == 0
    merged, whole = ({path.name: path.read_bytes() for path in (tmp_path / one).iterdir()} for one in ("idx", "whole"))
    assert merged == whole


@pytest.mark.slow
def test_a_local_model_is_loaded_once_on_each_node(town, cluster, tmp_path):
    weights = model_catalogue.find_model_files(model_catalogue.ENTRIES[0])
    if weights is None:
        pytest.skip("the local model is not here; run: ragbed models pull smollm2-135m")
    town.write([town.row(number) for number in range(12)])
    path = town.config("", models=f"gguf:{weights}", limits={"max_tokens": 4})
    child = subprocess.Popen([*COMMAND, str(path), "--launcher", f"ray:{cluster.address}"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
    servers, serving_line = set(), b"-m\0ragbed.experiments.guests.local_models.child"
    while child.poll() is None:
        servers |= {pid for pid, line in processes(tmp_path).items() if serving_line in line}
        time.sleep(0.05)
    assert child.returncode == 0, child.communicate()[1]
    child.communicate()
    assert len(list(Path(f"{town.run}.shards").iterdir())) == 4
    assert len(servers) == 2


@pytest.mark.slow
@pytest.mark.parametrize(("ends", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_a_launcher_that_is_ended_leaves_no_process_and_the_same_command_continues(ends, status, serve, town, tmp_path):
    waiting = threading.Event()
    server = serve(lambda body: {"text": town.reply(body), "hold": waiting})
    words = [*COMMAND, str(town.config(server.url)), "--launcher", "ray"]
    launcher = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                start_new_session=True)
    until(lambda: len(server.requests) == 4)
    os.killpg(launcher.pid, ends) if ends == signal.SIGINT else launcher.send_signal(ends)
    out, err = launcher.communicate()
    assert (launcher.returncode, out) == (status, ""), err
    assert ("rerun the command to continue" in err) == (ends != signal.SIGKILL)
    # a process of Ray that is still connecting when its cluster dies gives up after 60 seconds
    until(lambda: not any(b"--shard" in line or b"ray::_" in line for line in processes(tmp_path).values()))
    waiting.set()
    if ends == signal.SIGINT:
        subprocess.run(words, check=True, capture_output=True)
        assert len(town.hashes()) == 6


def test_an_address_where_no_cluster_is_and_a_missing_package_are_one_line(serve, town, ragbed, monkeypatch):
    path = town.config("http://127.0.0.1:9/v1")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        free = f"127.0.0.1:{listening.getsockname()[1]}"
    other = serve([]).url.split("/")[2]
    ragbed.refuses("run", path, "--launcher", f"ray:{free}", says=[free, "Connection refused"])
    ragbed.refuses("run", path, "--launcher", f"ray:{other}", says=[other, "not the head of a Ray"])
    monkeypatch.setenv("RAY_ADDRESS", free)
    ragbed.refuses("run", path, "--launcher", "ray:auto", says=[free, "Connection refused"])
    for wrong in ("foo", "ray://10.0.0.1:10001", "10.0.0.1:x"):
        ragbed.refuses("run", path, "--launcher", f"ray:{wrong}", says=[wrong, "ray:HOST:PORT"])
    for number in (2, 3):
        Shard(1, number).folder(town.run).mkdir(parents=True)
    ragbed.refuses("run", path, "--launcher", "ray", says=["of 2 and of 3"])
    shutil.rmtree(f"{town.run}.shards")
    monkeypatch.setitem(sys.modules, "ray", None)
    ragbed.refuses("run", path, "--launcher", "ray", says=["pip install 'ragbed[ray]'"])
    assert not Path(f"{town.run}.shards").exists()


@pytest.mark.slow
def test_a_set_is_constructed_on_a_cluster(ragbed, tmp_path):
    words = ["construct", "computed", PAGES, "--n", 12, "--out"]
    assert ragbed(*words, tmp_path / "divided", "--launcher", "ray")[0] == 0
    assert ragbed(*words, tmp_path / "whole")[0] == 0
    assert len(list((tmp_path / "divided" / "build.shards").iterdir())) > 1
    for name in ("card.json", "items.jsonl", "report.html"):
        assert (tmp_path / "divided" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.slow
def test_retrieval_is_evaluated_on_a_cluster_and_a_folder_that_is_not_shared_is_named(ragbed, tmp_path):
    from ragbed.experiments.guests.cluster.ray_nodes import run_on_cluster  # loads Ray

    data = Path(__file__).parents[2] / "data" / "beir"
    words = ["evaluate-retrieval", "beir", str(data), "--retriever", "bm25", "--name", "beir", "--out",
             str(tmp_path / "runs")]
    merged = ragbed.json(*words, "--launcher", "ray")
    summary = tmp_path / "runs" / "beir" / "summary.json"
    divided = summary.read_bytes()
    assert merged["lines"][0]["n"] == 2
    assert ragbed(*words, "--fresh")[0] == 0
    assert summary.read_bytes() == divided
    with Bars() as bars, pytest.raises(RunError, match=r"1/2 finished .*elsewhere\.shards/1-of-2 is not on this"):
        run_on_cluster(words, "", [tmp_path / "elsewhere"], {}, bars)
