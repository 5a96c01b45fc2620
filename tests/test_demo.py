"""The demo: what is recorded covers its questions, is the same anywhere, and stands beside a live model."""
import json

import pytest

from agents.recorded import SHIPPED, recording_of
from experiments.terminal.demo import QUESTIONS, RECORDED

CASSETTE = SHIPPED / f"{RECORDED.removeprefix('recorded:')}.cassette.jsonl.gz"


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
        assert f"the results are those of {CASSETTE}" in err
    one, other = ((tmp_path / name / "recorded" / "summary.json").read_bytes() for name in ("one", "other"))
    assert one == other


@pytest.mark.slow
def test_the_demo_is_two_runs_and_a_second_time_nothing_is_left_to_do(serve, ragbed, tmp_path):
    server = serve(lambda _: json.dumps({"reasoning": "As it says.", "refused": False, "answer": "1941",
                                         "citations": [1]}))
    command = ("demo", "--model", f"{server.url}#m", "--out", tmp_path)
    recorded, both = ragbed.json(*command)
    assert {cell["n"] for cell in recorded["cells"]} == {recording_of(RECORDED).questions}
    assert {cell["outcomes"]["error"] for cell in recorded["cells"]} == {0}
    assert {(cell["model"], cell["n"]) for cell in both["cells"]} == {(RECORDED, 12), (f"{server.url}#m", 12)}
    calls = len(server.requests)
    assert ragbed.json(*command) == [recorded, both]
    assert len(server.requests) == calls
    assert all((tmp_path / name / "report.html").is_file() for name in ("demo", "demo-live"))
