"""Processes of their own: deadlines, memory, and the end with their parent."""
import os
import subprocess
import sys
from pathlib import Path

import pytest
from patience import until

from ragbed.documents.child_process import ChildFailure, ChildProcess

CHILD = """
import os, time
from ragbed.documents.child_process import answer_requests

def nest():
    return nest()

ACTIONS = {"sleep": lambda: time.sleep(60), "exit": lambda: os._exit(3), "kill": lambda: os.kill(os.getpid(), 9),
           "fill": lambda: bytearray(10**9), "nest": nest, "add": lambda: {"n": 1 + 1}}

answer_requests(lambda request: ACTIONS[request["action"]](), 1 << 29)
"""


@pytest.fixture
def child(tmp_path, monkeypatch):
    (tmp_path / "asked_child.py").write_text(CHILD)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    started = ChildProcess("asked_child")
    yield started
    started.stop()


@pytest.mark.slow
@pytest.mark.parametrize(("action", "reason"), [
    ("sleep", "it took longer than 5 seconds"), ("exit", "its process ended with exit status 3"),
    ("kill", "its process ended with SIGKILL")])
def test_a_child_that_is_late_or_dies_gives_a_reason(child, action, reason):
    with pytest.raises(ChildFailure, match=reason):
        child.ask({"action": action}, 5)
    assert not child.running


@pytest.mark.skipif(sys.platform == "win32", reason="there is no limit on memory")
def test_a_child_that_needs_too_much_memory_or_depth_says_so_and_goes_on(child):
    assert child.ask({"action": "fill"}, 30) == {"reason": "needs more than 0.5 GB of memory"}
    assert child.ask({"action": "nest"}, 30) == {"reason": "nested too deeply"}
    assert child.ask({"action": "add"}, 30) == {"n": 2}


@pytest.mark.skipif(sys.platform != "linux", reason="other systems let it live")
def test_a_program_ends_with_a_parent_that_is_killed(tmp_path):
    code = ("import subprocess, sys; from ragbed.documents.child_process import bind_to_parent; "
            "subprocess.run(bind_to_parent(['sh', '-c', 'echo $$; exec sleep 10000']))")
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        pid = int(parent.stdout.readline())
        parent.kill()
    stat = Path(f"/proc/{pid}/stat")
    until(lambda: not stat.exists() or stat.read_text().rpartition(") ")[2][0] == "Z")
