"""A server that is stopped, whose store fails, or that is given a stranger's run."""
import json
import re
import signal
import subprocess
import sys
import threading

import httpx2
import pytest
from patience import SECONDS
from serving import direct, served

from ragbed.documents import SettingsError
from ragbed.experiments.guests.serving.configurations import allow_target, read_target


@pytest.mark.slow
def test_after_the_grace_a_stream_ends_with_an_error_event_and_the_log_has_no_traceback(serve, capitals, tmp_path):
    hold = threading.Event()
    model = serve(lambda body: {"text": "<Answer>Norway [1]</Answer>", "hold": hold})
    child = subprocess.Popen(
        [sys.executable, "-m", "ragbed", "serve", capitals, "--model", f"{model.url}#m", "--retriever", "bm25",
         "--reasoning", "direct", "--port", "0", "--traffic", tmp_path / "traffic", "--grace", "1"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    url = re.search(r"http://[\d.:]+", child.stdout.readline())[0]
    with httpx2.stream("POST", f"{url}/v1/chat/completions", timeout=SECONDS, json={
            "model": "direct", "stream": True, "messages": [{"role": "user", "content": "Where is Oslo?"}]}) as reply:
        child.send_signal(signal.SIGTERM)
        lines = [line for line in reply.iter_lines() if line]
    _, err = child.communicate(timeout=SECONDS)
    hold.set()
    assert json.loads(lines[-1].removeprefix("data: "))["error"]["code"] == "stopped"
    assert (child.returncode, "Traceback" in err) == (0, False)


def test_ready_says_that_a_damaged_run_of_traffic_cannot_be_written(serve, capitals, tmp_path):
    settings = [direct(capitals, f"{serve(['<Answer>Norway [1]</Answer>']).url}#m")]
    asked = {"model": "direct", "messages": [{"role": "user", "content": "Where is Oslo?"}]}
    with served(settings, tmp_path / "traffic") as url:
        assert httpx2.post(f"{url}/v1/chat/completions", json=asked).status_code == 200
        assert httpx2.get(f"{url}/ready").json()["store"] == "ok"
    run, = (path.parent for path in (tmp_path / "traffic").glob("*/manifest.json"))
    (run / "manifest.json").write_text("{")
    with served(settings, tmp_path / "traffic") as url:
        reply = httpx2.post(f"{url}/v1/chat/completions", json=asked)
        assert (reply.status_code, reply.json()["error"]["code"]) == (503, "store")
        assert httpx2.get(f"{url}/ready").json()["store"] == "failed"


def test_a_run_that_names_another_host_is_served_only_with_a_yes(town, ragbed, capitals, monkeypatch, tmp_path):
    monkeypatch.setenv("RAGBED_CACHE", str(tmp_path / "cache"))
    path = town.config("http://rag.invalid/v1", retriever={"kind": "bm25", "index": str(capitals), "k": 1},
                       conditions="retrieved", calls={"calls": {"attempts": 1, "seconds": 5}})
    assert ragbed("run", path)[0] == 1  # nobody answers
    with pytest.raises(SettingsError, match=r"town asks a model on a server, http://rag\.invalid/v1#m, which would .* "
                                            "run `ragbed serve` once with --allow-server"):
        read_target(town.run, {})
    allow_target(town.run)
    assert [one.settings.model for one in read_target(town.run, {})] == ["http://rag.invalid/v1#m"]
