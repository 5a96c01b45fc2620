"""What a model calls is part of the call: a run with tools is made again, verified, read again and told about."""
import gzip
import hashlib
import json
import sqlite3
from pathlib import Path

import pytest

from ragbed.agents.journal import call_key
from ragbed.agents.replies import read_reply
from ragbed.experiments import RunFolder
from ragbed.strategies import Message

DATA = Path(__file__).parent / "data"
BAD = '</script><img src=x onerror="window.pwned = 1">'


def function(name, arguments):
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


def reply(body):
    """Two iterations of calls, one of them unreadable, and then the answer."""
    results = sum(message["role"] == "tool" for message in body["messages"])
    if body.get("tool_choice") == "none":
        return "<Answer>yes [2]</Answer>"
    calls = [{**function("search", '{"query": "Scott Derrickson"}'), "id": "a"}, {**function("search", BAD), "id": "b"}]
    calls = calls if not results else [{**function("search", {"query": f"Ed Wood {BAD}"}), "id": "c"}]
    calls = calls if results < 3 else [{**function("finish", "{}"), "id": "d"}]
    return {"message": {"role": "assistant", "content": None, "tool_calls": calls}, "finish_reason": "tool_calls"}


@pytest.fixture
def run(serve, town, ragbed):
    """A run of react over searches."""
    path = DATA / "hotpotqa/hotpot_dev_distractor_v1.json"
    config = town.config(serve(reply).url, benchmark={"kind": "hotpotqa", "path": str(path), "limit": 2},
                         conditions="retrieved", retriever={"kind": "bm25", "k": 1}, reasoning="react")
    status, _, err = ragbed("run", config)
    assert status == 0, err
    return town.run


def rows(run: Path) -> list[tuple[str, ...]]:
    with sqlite3.connect(run / "records.sqlite") as connection:
        found = connection.execute("SELECT cell, question, result FROM records ORDER BY cell, question").fetchall()
    connection.close()
    return found


def steps(run: Path) -> list[dict]:
    """Those of its first question."""
    return json.loads(rows(run)[0][2])["trace"]


def test_a_record_holds_what_was_called_and_which_message_answers_it(run):
    first, *_, last = (step for step in steps(run) if step["kind"] == "generate")
    assert [call["id"] for call in first["tool_calls"]] == ["a", "b"]
    assert "tool_calls" not in first["messages"][0]
    assert [one.get("call_id") for one in last["messages"]] == [
        None, None, None, "a", "b", None, "c", None, "d", None]
    called = last["messages"][2]["tool_calls"]
    assert [call["function"]["arguments"] for call in called] == ['{"query": "Scott Derrickson"}', "{}"]
    assert [step["text"] for step in steps(run) if step["kind"] == "decision"][-1] == "finish is called"


def test_a_cassette_with_tools_is_replayed_to_the_byte_and_says_its_version(run, ragbed, tmp_path):
    assert ragbed("cassette", "export", run, "--out", tmp_path / "c.gz")[0] == 0
    lines = [json.loads(line) for line in gzip.decompress((tmp_path / "c.gz").read_bytes()).splitlines()]
    assert lines[0]["version"] == 3
    lengths = {len(message) for line in lines if "call" in line for message in line["messages"]}
    assert lengths == {2, 4}
    status, _, err = ragbed("run", "--replay", tmp_path / "c.gz", "--out", tmp_path / "again")
    assert (status, "0 calls sent" in err) == (0, True), err
    copy = tmp_path / "again" / "town"
    assert rows(copy) == rows(run)
    assert (copy / "summary.json").read_bytes() == (run / "summary.json").read_bytes()
    assert ragbed("cassette", "export", copy, "--out", tmp_path / "again.gz")[0] == 0
    assert (tmp_path / "again.gz").read_bytes() == (tmp_path / "c.gz").read_bytes()
    for one in (run, copy):
        status, out, err = ragbed("verify", one)
        assert status == 0, out + err


def rehash(folder):
    """Store the hashes of altered results, as an earlier version would have."""
    for cell, question, result in folder.database.read("SELECT cell, question, result FROM records"):
        folder.database.put("UPDATE records SET hash = ? WHERE cell = ? AND question = ?", (
            hashlib.sha256(result.encode()).hexdigest(), cell, question))
    folder.seal((folder.path / "summary.json").read_text())


def test_a_run_with_tools_is_read_again_and_one_whose_calls_were_altered_is_not(run, ragbed):
    status, out, _ = ragbed("rescore", run, "--json")
    assert (status, json.loads(out)["read"]) == (0, {"same": 2, "changed": 0, "skipped": 0})
    folder = RunFolder.existing(run)
    folder.database.put("UPDATE records SET result = json_set(result, '$.trace[4].messages[2].tool_calls[0].id', 'z')"
                        " WHERE question = ?", (rows(run)[0][1],))
    rehash(folder)
    folder.close()
    assert json.loads(ragbed("rescore", run, "--json")[1])["read"]["skipped"] == 1


def test_exports_and_the_terminal_show_calls_and_what_answers_them(run, ragbed, tmp_path):
    assert ragbed("export", run, tmp_path / "r.jsonl")[0] == 0
    first = json.loads((tmp_path / "r.jsonl").read_text().splitlines()[0])
    messages = [step for step in first["trace"] if step["kind"] == "generate"][-1]["messages"]
    assert [one["tool_calls"][0]["id"] for one in messages if one["role"] == "assistant"] == ["a", "c", "d"]
    assert [one["call_id"] for one in messages if one["role"] == "tool"] == ["a", "b", "c", "d"]
    out = ragbed("show", run, rows(run)[0][1], "--prompts")[1]
    assert 'calls search {"query": "Scott Derrickson"} as a' in out
    assert "-- tool for a" in out
    assert "decides: stops (finish is called)" in out


def test_the_key_of_a_call_names_its_tools_and_without_any_it_is_what_it_was():
    plain = (Message("system", ("Be brief.",)), Message("user", ("Where?",)))
    call = {"id": "a", **function("search", '{"query": "x"}')}
    asked = (*plain, Message("assistant", (), (call,)), Message("tool", ("Oslo.",), call_id="a"))
    keys = {call_key("m", messages, {"max_tokens": 64}, 0, 0) for messages in (
        plain, asked, (*asked[:3], Message("tool", ("Oslo.",), call_id="b")),
        (*plain, Message("assistant", (), ({**call, "id": "c"},)), asked[3]))}
    assert len(keys) == 4
    assert "d56b1ba2b74e728d79fe6b216dca00eb896aea5e98d6ac807b9646393922c93a" in keys


def read(calls):
    return read_reply({"choices": [{"message": {"content": None, "tool_calls": calls}}]}, None, lambda *_: None)


@pytest.mark.parametrize(("calls", "kept"), [
    (None, []), ("x", []), ([None, 3, {}, {"function": "x"}], []),
    ([{"id": 3, "function": {"name": None}}], [("", "", "")]),
    ([{"id": "a", "index": 0, "function": {"name": "f", "arguments": {"q": "é"}}}], [("a", "f", '{"q": "é"}')]),
    ([{"id": "a" * 900, "function": {"name": "f" * 900, "arguments": "x" * 90_000}}],
     [("a" * 200, "f" * 200, "x" * 20_000)]),
    ([{"id": "a", "function": {"name": "f", "arguments": '{"q": "\\u0041\\ud800"}'}}],
     [("a", "f", '{"q": "A\ufffd"}')])])
def test_calls_of_a_reply_have_only_the_fields_that_they_should_and_texts_of_bounded_length(calls, kept):
    assert [(call["id"], call["function"]["name"], call["function"]["arguments"])
            for call in read(calls).tool_calls] == kept


KEY = 'sk-canary/+"0123456789'
ESCAPED = "".join(f"\\u{ord(letter):04x}" for letter in KEY)
INNER = json.dumps(KEY)[1:-1]


@pytest.mark.parametrize("arguments", [
    f'{{"query": "{ESCAPED}"}}', f'{{"query": "{INNER}"}}', {"query": KEY}, KEY,
    f'{{"query": "{" " * 30_000}{ESCAPED}"}}'])
def test_a_key_that_a_server_sends_back_in_a_call_however_escaped_is_kept_nowhere(
        serve, town, ragbed, monkeypatch, arguments):
    monkeypatch.setenv("RAGBED_API_KEY", KEY)

    def echo(body):
        if body.get("tool_choice") == "none":
            return "<Answer>1 [1]</Answer>"
        return {"message": {"content": "", "tool_calls": [
            {"id": KEY, **function(KEY, "{}")}, {"id": "b", **function("search", arguments)}]}}

    assert ragbed("run", town.config(serve(echo).url, reasoning="react"), "--limit", 2)[0] == 0
    written = b"".join(path.read_bytes() for path in town.folder.rglob("*") if path.is_file())
    assert b"[key]" in written
    for form in (KEY, INNER, json.dumps(INNER)[1:-1], ESCAPED, json.dumps(ESCAPED)[1:-1], "canary"):
        assert form.encode() not in written
