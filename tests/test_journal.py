"""The journal: what makes two calls the same, what its modes give back, and that it outlives the process."""
import asyncio
import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ragbed.agents import CallLimits, Database, Journal, Model, ModelSettings, open_model
from ragbed.agents.journal import SCHEMA, Mode, call_key
from ragbed.strategies import Failure, Generate, Message, Reply

ASK = Generate((Message("system", ("Be brief.",)), Message("user", ("Documents: none.\n\n", "Where is Oslo?"))),
               "answer")
SETTINGS = ModelSettings(calls=CallLimits(attempts=1))


async def ask(path: Path, url: str, *actions: Generate, mode: Mode = "record", repeat: int = 0, max_tokens: int = 64):
    """The outcomes of calls made one after the other in one session."""
    database = Database(path, SCHEMA)
    try:
        async with open_model(f"{url}#m", SETTINGS, calls=mode != "replay") as client:
            model = Model(client, Journal(database, mode), max_tokens, repeat)
            return [await model.ask(action, time.monotonic() + 60) for action in actions]
    finally:
        database.close()


async def test_a_call_made_before_is_not_made_again_and_costs_nothing(serve, tmp_path):
    server = serve([{"text": "Norway", "message": {"content": "Norway", "reasoning_content": "Hm."},
                     "usage": {"prompt_tokens": 7, "completion_tokens": 2}}])
    (first,) = await ask(tmp_path / "j", server.url, ASK)
    (second,) = await ask(tmp_path / "j", server.url, ASK)
    assert second.outcome == first.outcome == Reply("Norway", "Hm.", usage=first.outcome.usage)
    assert (first.outcome.usage.prompt_tokens, first.outcome.usage.calls) == (7, 1)
    assert (first.replayed, first.attempts, second.replayed, second.attempts) == (False, 1, True, 0)


@pytest.mark.parametrize("other", [
    replace(ASK, messages=(*ASK.messages[:1], Message("user", ("Documents: none.\n\n", "Where is Oslo ?")))),
    replace(ASK, messages=(Message("user", ("Be brief.",)), ASK.messages[1])), replace(ASK, temperature=0.5),
    replace(ASK, max_tokens=65), replace(ASK, stop=("\n",)), replace(ASK, sample=1),
    replace(ASK, schema={"type": "object"}), replace(ASK, tools=({"type": "function"},))])
async def test_every_part_of_a_call_makes_another_call(serve, tmp_path, other):
    server = serve(["one", "two"])
    outcomes = await ask(tmp_path / "j", server.url, ASK, other)
    assert [one.outcome.text for one in outcomes] == ["one", "two"]


async def test_a_repeat_is_another_call_and_another_host_or_split_of_the_message_is_not(serve, tmp_path):
    one, other = serve(["one", "again"]), serve([])
    assert (await ask(tmp_path / "j", one.url, ASK))[0].outcome.text == "one"
    assert (await ask(tmp_path / "j", one.url, ASK, repeat=1))[0].outcome.text == "again"
    joined = tuple(Message(message.role, (message.content,)) for message in ASK.messages)
    assert (await ask(tmp_path / "j", other.url, Generate(joined, "else", (4,))))[0].outcome.text == "one"
    assert other.requests == []


def test_the_key_does_not_change_between_versions():
    key = call_key("m", ASK.messages, {"temperature": 0.0, "max_tokens": 64}, 0, 0)
    assert key == "2fbd7680e738d0fd6266eec0ea44d7cef031ddd265ad8a86d522d86cc2725ebe"


async def test_a_failure_is_asked_anew_by_the_next_session_and_given_again_by_a_replay(serve, tmp_path):
    server = serve([{"status": 500}, "Norway"])
    failed, still = await ask(tmp_path / "j", server.url, ASK, ASK)
    assert failed.outcome == still.outcome == Failure("http_500", f"{server.url}#m: HTTP 500")
    assert len(server.requests) == 1
    (replayed,) = await ask(tmp_path / "j", server.url, ASK, mode="replay")
    assert (replayed.outcome, replayed.replayed) == (failed.outcome, True)
    (anew,) = await ask(tmp_path / "j", server.url, ASK)
    (kept,) = await ask(tmp_path / "j", server.url, ASK, mode="replay")
    assert anew.outcome.text == kept.outcome.text == "Norway"


async def test_live_makes_every_call_and_keeps_the_last(serve, tmp_path):
    server = serve(["one", "two"])
    outcomes = await ask(tmp_path / "j", server.url, ASK, ASK, mode="live")
    assert [one.outcome.text for one in outcomes] == ["one", "two"]
    assert (await ask(tmp_path / "j", server.url, ASK, mode="replay"))[0].outcome.text == "two"


async def test_a_miss_names_the_nearest_prompt_and_is_no_call(serve, tmp_path):
    server = serve(["Norway", "Italy"])
    far = replace(ASK, messages=(Message("system", ("Say nothing.",)),))
    await ask(tmp_path / "j", server.url, far, ASK)
    near = replace(ASK, messages=(ASK.messages[0], Message("user", ("Documents: none.\n\n", "Where is Rome?"))))
    (missed,) = await ask(tmp_path / "j", server.url, near, mode="replay")
    assert missed.outcome.kind == "replay_miss"
    assert "differs from character 37: recorded 'Oslo?', asked 'Rome?'" in missed.outcome.message
    (empty,) = await ask(tmp_path / "other", server.url, near, mode="replay")
    assert empty.outcome.message.endswith("the journal has no calls")
    assert len(server.requests) == 2
    database = Database(tmp_path / "j", SCHEMA)
    assert database.read("SELECT count(*) FROM calls") == [(2,)]  # a replay leaves the journal as it is
    database.close()


async def test_a_miss_of_a_recorded_prompt_names_what_else_differs(serve, tmp_path):
    server = serve(["Norway"])
    await ask(tmp_path / "j", server.url, ASK)
    database = Database(tmp_path / "j", SCHEMA)
    messages = {}
    for name, model, changed, repeat in (("model", "other", {}, 0), ("parameter", "m", {"max_tokens": 65}, 0),
                                         ("repeat", "m", {}, 2)):
        async with open_model(f"{server.url}#{model}", SETTINGS, calls=False) as client:
            asked = Model(client, Journal(database, "replay"), changed.get("max_tokens", 64), repeat)
            messages[name] = (await asked.ask(ASK, time.monotonic() + 60)).outcome.message.partition("; ")[2]
    database.close()
    assert messages == {
        "model": "this prompt is recorded with a different model",
        "parameter": "this prompt is recorded with different parameters: max_tokens: recorded 64, asked 65",
        "repeat": "this prompt is recorded with different parameters: seed: recorded None, asked 2000 (another repeat)"}


async def test_equal_calls_at_the_same_moment_are_one(serve, tmp_path):
    server = serve([{"text": "Norway", "delay": 0.1}])
    database = Database(tmp_path / "j", SCHEMA)
    async with open_model(f"{server.url}#m", SETTINGS) as client:
        journal = Journal(database)
        models = [Model(client, journal, 64) for _ in range(5)]
        outcomes = await asyncio.gather(*(model.ask(ASK, time.monotonic() + 60) for model in models))
    database.close()
    assert [one.outcome.text for one in outcomes] == ["Norway"] * 5
    assert sorted(one.attempts for one in outcomes) == [0, 0, 0, 0, 1]


@pytest.mark.parametrize("text", ["nul\x00byte", "half \ud83d surrogate", "한국어 😀", "\x1b[31m", "x" * 2_000_000])
async def test_odd_text_in_prompt_and_reply_survives(serve, tmp_path, text):
    body = {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}
    server = serve([{"body": json.dumps(body).encode()}])
    odd = replace(ASK, messages=(Message("user", (text.replace("\ud83d", "?"),)),))
    (first,) = await ask(tmp_path / "j", server.url, odd)
    (second,) = await ask(tmp_path / "j", server.url, odd, mode="replay")
    assert first.outcome.text == second.outcome.text == text.replace("\ud83d", "\ufffd")
