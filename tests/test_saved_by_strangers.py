"""A saved question may be a stranger's: no key goes where nobody named, and no file of any form ends in a traceback."""
from __future__ import annotations

import json
from pathlib import Path

import pytest

from agents.checkpoint import read_state, write_state
from documents.errors import SettingsError
from retrieval.build import build_index
from retrieval.storage.manifest import read_manifest
from retrieval.storage.sealed import seal

QUESTION = "Which country is Oslo the capital of?"
ELSEWHERE = "https://models.example/v1#m"
ANSWER = "<Answer>Norway [1]</Answer>"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    (folder / "oslo.txt").write_text("Oslo is the capital of Norway. It has 700,000 people.")
    build_index([folder / "oslo.txt"], folder / "index")
    return folder / "index"


@pytest.fixture
def saved(index, serve, ragbed, tmp_path):
    """A question that was saved after its search and its first call, the file, and the server for what is left."""
    server, file = serve(["1. Which country?", "Norway [1].", ANSWER]), tmp_path / "q.json"
    assert ragbed("ask", QUESTION, "--index", index, "--model", f"{server.url}#m", "--retriever", "bm25", "--reasoning",
                  "least_to_most", "--save", file, "--stop-after", 2)[0] == 0
    return read_state(file), file, server


def test_a_server_elsewhere_gets_nothing_before_the_user_names_it(ragbed, saved, monkeypatch):
    monkeypatch.setenv("RAGBED_API_KEY", "canary-7f3e9d21c0ffee")
    state, file, server = saved
    state["made"]["settings"]["model"] = ELSEWHERE
    write_state(file, state)
    ragbed.refuses("resume", file, says=[f"goes on with {ELSEWHERE}", "gets your key", f"--model '{ELSEWHERE}'"])
    state["made"]["settings"]["retriever"] = {
        "kind": "reranked", "of": {"kind": "bm25"}, "by": {"kind": "judge", "model": ELSEWHERE}}
    write_state(file, state)
    again = ("resume", file, "--model", f"{server.url}#m")
    ragbed.refuses(*again, says=[f"--judge '{ELSEWHERE}'"])
    ragbed.refuses(*again, "--judge", ELSEWHERE, says=["begun otherwise"])  # the name is no longer what is amiss
    assert len(server.requests) == 1


def test_an_index_whose_questions_are_embedded_elsewhere_is_named_too(ragbed, saved, tmp_path, index):
    state, file, _ = saved
    other = tmp_path / "other"
    build_index([index.parent / "oslo.txt"], other)
    body = read_manifest(other).model_dump(mode="json")
    body["embedder"] |= {"name": ELSEWHERE, "choice": None}
    seal(body, other / "manifest.json")
    state["made"]["settings"]["index"] = str(other)
    write_state(file, state)
    ragbed.refuses("resume", file, says=["embeds questions at a server that gets your key", f"--index {other}"])
    assert ragbed("resume", file, "--index", other)[0] == 0


def test_what_names_nothing_in_the_question_is_refused(ragbed, saved):
    _, file, server = saved
    ragbed.refuses("resume", file, "--plugin", "zz", says=["--plugin zz", "goes on without it"])
    ragbed.refuses("resume", file, "--judge", "zz", says=["--judge zz", "goes on without it"])
    assert len(server.requests) == 1


def changed(state, *path, value=None, without=False):
    *before, last = path
    place = state
    for part in before:
        place = place[part]
    if without:
        del place[last]
    else:
        place[last] = value


@pytest.mark.parametrize(("path", "value"), [
    (("question",), 5), (("question",), "\ud800"), (("results",), "xx"), (("results",), None),
    (("results",), [{"a": 1}]), (("results", 1), {}), (("results", 0, "found"), [["no chunk"]]),
    (("results", 0, "found"), []), (("results", 0, "found"), None), (("results", 1, "asked", 0, "reply"), None),
    (("results", 1, "asked", 0, "reply", "text"), 5), (("results", 1, "seconds"), -1.0), (("options",), [["a"]]),
    (("options",), 5), (("made",), None), (("made", "settings"), {}), (("made", "settings", "calls"), None),
    (("made", "settings", "index"), "a\0")])
def test_a_changed_file_whose_hash_fits_is_one_line(ragbed, saved, path, value):
    state, file, server = saved
    changed(state, *path, value=value)
    write_state(file, state)
    ragbed.refuses("resume", file, says=[])
    assert len(server.requests) == 1


@pytest.mark.parametrize("path", [("id",), ("made", "model"), ("made", "settings", "calls"), ("results", 1, "actions")])
def test_what_is_missing_is_one_line(ragbed, saved, path):
    state, file, _ = saved
    changed(state, *path, without=True)
    write_state(file, state)
    ragbed.refuses("resume", file, says=[])


@pytest.mark.parametrize("state", [None, [1, 2], "x", {}])
def test_no_state_is_one_line(ragbed, tmp_path, state):
    write_state(tmp_path / "q.json", state)
    ragbed.refuses("resume", tmp_path / "q.json", says=["q.json: was changed"])


def test_a_step_too_many_and_an_unknown_passage_are_named(ragbed, saved):
    state, file, _ = saved
    state["results"].append(state["results"][0])
    write_state(file, state)
    ragbed.refuses("resume", file, says=["step 3 of the strategy differs"])
    state["results"] = [{**state["results"][0], "found": [["no chunk"]]}]
    write_state(file, state)
    ragbed.refuses("resume", file, says=["names a passage that the index does not have: 'no chunk'"])


@pytest.mark.parametrize("line", [{"status": 418}, {"status": 200, "body": b"{}"}])
def test_a_question_that_a_failed_call_ended_is_tried_again(ragbed, serve, index, tmp_path, line):
    server, file = serve(["1. Which country?", line, line, "Norway [1].", ANSWER]), tmp_path / "q.json"
    asked = ("--index", index, "--model", f"{server.url}#m", "--retriever", "bm25", "--reasoning", "least_to_most")
    assert ragbed("ask", QUESTION, *asked, "--save", file)[0] == 1
    assert ragbed("resume", file)[0] == 1
    status, out, _ = ragbed("resume", file, "--json")
    answer = json.loads(out)
    assert (status, answer["answer"], answer["usage"]["calls"], len(server.requests)) == (0, "Norway [1]", 3, 5)
    assert ragbed("resume", file)[0] == 0
    assert len(server.requests) == 5


def test_a_place_for_the_question_that_is_none_is_one_line(ragbed, saved, index, tmp_path):
    _, file, _ = saved
    (tmp_path / "a.txt").write_text("my notes")
    asked = ("ask", QUESTION, "--index", index, "--save")
    ragbed.refuses(*asked, "x" * 300, says=["File name too long"])
    ragbed.refuses(*asked, tmp_path / "a.txt", says=["a.txt is there already, and keeps no question"])
    ragbed.refuses(*asked, file, says=["is there already", f"ragbed resume {file}"])
    ragbed.refuses("resume", tmp_path, says=["is no file"])
    assert (tmp_path / "a.txt").read_text() == "my notes"


def test_after_a_full_disk_what_is_kept_goes_on(saved, tmp_path, monkeypatch):
    state, file, _ = saved

    def full(path, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("agents.checkpoint.write_atomically", full)
    with pytest.raises(SettingsError, match=f"free space, and `ragbed resume {file}` goes on"):
        write_state(file, state)
    with pytest.raises(SettingsError, match="free space, and the same command begins again"):
        write_state(tmp_path / "new.json", state)
