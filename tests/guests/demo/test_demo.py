"""The demo: what is recorded covers its questions, is the same anywhere, and stands beside a live model."""
import json
import subprocess
import sys
import threading

import pytest

from ragbed.agents.cassette import SHIPPED, load_recording
from ragbed.experiments.guests.demo.demo import QUESTIONS, RECORDED

CASSETTE = SHIPPED / f"{RECORDED.removeprefix('recorded:')}.cassette.jsonl.gz"


@pytest.mark.slow
def test_the_recording_answers_the_first_questions_without_a_miss_and_says_what_it_is(ragbed, tmp_path):
    first = {"kind": "demo", "limit": 6}
    (tmp_path / "six.json").write_text(json.dumps({
        **QUESTIONS, "name": "six", "out": str(tmp_path), "models": RECORDED, "benchmark": first}))
    said = ragbed.json("run", tmp_path / "six.json")
    assert len(said["cells"]) == 9
    assert {cell["outcomes"]["error"] for cell in said["cells"]} == {0}
    assert sum(cell["outcomes"]["malformed"] for cell in said["cells"]) <= 0.05 * 6 * 9
    noted, = (note for note in said["notes"] if note.startswith(f"The replies of {RECORDED} are recorded: "))
    assert "sha256 cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046, 2026-11-23" in noted


@pytest.mark.slow
def test_a_replay_of_the_shipped_cassette_is_the_recorded_run_in_any_folder(ragbed, tmp_path):
    for name in ("one", "other"):
        _, _, err = ragbed("run", "--replay", CASSETTE, "--out", tmp_path / name)
        assert f"the results equal those recorded in {CASSETTE}" in err
    one, other = ((tmp_path / name / "recorded" / "summary.json").read_bytes() for name in ("one", "other"))
    assert one == other


@pytest.mark.slow
def test_the_demo_asks_a_live_model_as_many_questions_as_fit_and_a_second_time_the_same_and_nothing(
        serve, ragbed, tmp_path, monkeypatch):
    server = serve(lambda _: json.dumps({"refused": False, "answer": "1941", "citations": [1]}))
    command = ("demo", "--model", f"{server.url}#m", "--out", tmp_path)
    every = load_recording(RECORDED).questions
    with monkeypatch.context() as slow:
        slow.setattr("ragbed.experiments.guests.demo.demo._SECONDS", 0)
        recorded, both = ragbed.json(*command)
    assert [(cell["model"], cell["n"]) for cell in recorded["cells"]] == [(RECORDED, every)] * 9
    assert [(cell["model"], cell["n"]) for cell in both["cells"]] == [(RECORDED, 6)] * 9 + [(f"{server.url}#m", 6)] * 2
    assert {cell["outcomes"]["error"] for cell in (*recorded["cells"], *both["cells"])} == {0}
    calls = len(server.requests)
    assert ragbed.json(*command) == [recorded, both]
    assert len(server.requests) == calls
    assert all((tmp_path / name / "report.html").is_file() for name in ("demo", "demo-live"))
    assert {cell["n"] for cell in ragbed.json(*command, "--fresh")[1]["cells"]} == {every}  # a server this fast


@pytest.mark.slow
def test_the_table_of_the_recorded_replies_is_there_before_the_live_model_answers(serve, tmp_path):
    asked, hold = [], threading.Event()

    def answer(_):
        hold.wait(240)
        asked.append(1)
        return json.dumps({"refused": True, "answer": "", "citations": []})

    command = [sys.executable, "-m", "ragbed", "demo", "--model", f"{serve(answer).url}#m", "--out", tmp_path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as demo:
        assert any(line.startswith("direct · retrieved") for line in demo.stdout)
        assert any(line.endswith(f"; next: ragbed diagnose {tmp_path / 'demo'}\n") for line in demo.stdout)
        assert not asked
        demo.terminate()
        hold.set()
