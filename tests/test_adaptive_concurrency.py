"""Calls at once follow what the server takes: fewer when it refuses them for their number, more as they succeed."""
import asyncio
import json
import threading
import time

import pytest

from agents import CallLimits, ModelSettings, open_model
from documents import CallError
from strategies import Generate, Message

ASK = Generate((Message("user", ("Where?",)),), "answer")


@pytest.fixture(autouse=True)
def _quick_and_keyless(monkeypatch):
    monkeypatch.delenv("RAGBED_API_KEY", raising=False)
    monkeypatch.setattr("retrieval.servers._FIRST", 0.01)


def only(number, seconds=0.02):
    """A server's script: so many requests at once are answered, each in so many seconds, and the rest refused."""
    ends: list[float] = []

    def answer(_):
        now = time.monotonic()
        ends[:] = [end for end in ends if end > now]
        if len(ends) >= number:
            return {"status": 429, "headers": {"Retry-After-Ms": "30"}}
        ends.append(now + seconds)
        return {"text": "<Answer>x</Answer>", "delay": seconds}

    return answer


def test_a_run_over_a_server_that_takes_few_at_once_has_no_failed_record_and_counts_every_request(serve, town, ragbed):
    server = serve(only(3))
    own = town.own(*({"id": str(number), "question": f"Question {number}?", "answer": "x"} for number in range(60)))
    path = town.config(server.url, benchmark=own, conditions="closed-book", concurrency=16,
                       calls={"calls": {"attempts": 1, "seconds": 20}})
    status, _, err = ragbed("run", path)
    assert status == 0
    timings = [record["timing"] for record in town.records()]
    assert {record["result"]["outcome"] for record in town.records()} == {"answered"}
    assert sum(timing["attempts"] for timing in timings) == len(server.requests) > 60
    retried = [timing["attempts"] > 1 for timing in timings]
    assert [timing["retried"] > 0 for timing in timings] == retried
    assert f"{len(server.requests)} calls sent, tries of {sum(retried)} retried ones among them, and 0 from" in err
    shown = ragbed("show", town.run, str(retried.index(True)))[1]
    assert "requests (calls retried: 1) in" in shown


@pytest.mark.parametrize("settings", [
    {"concurrency": 12}, {"concurrency": None, "calls": {"calls": {"concurrency": 12}}},
    {"concurrency": 12, "calls": {"calls": {"concurrency": 2}}}])
def test_either_setting_alone_says_how_many_questions_are_under_way(serve, town, ragbed, settings):
    all_came = threading.Event()

    def reply(body):
        if len(server.requests) == 12:
            all_came.set()
        return {"text": town.reply(body), "hold": all_came}

    server = serve(reply)
    status, _, err = ragbed("run", town.config(server.url, reasoning=["direct", "chain_of_thought"], **settings))
    assert (status, server.busiest) == (0, 12)
    *_, last = (line for line in err.splitlines() if line.startswith('{"stage": "questions"'))
    assert json.loads(last)["calls"]["places_at_most"] == 12


async def test_what_one_call_is_told_to_wait_holds_the_others_back_too(serve):
    server = serve([{"status": 429, "headers": {"Retry-After-Ms": "300"}}, "a", "b"])
    async with open_model(f"{server.url}#m", ModelSettings()) as model:
        begun = time.monotonic()
        refused = asyncio.create_task(model.complete(ASK, max_tokens=9))
        while not model.rate_limited:
            await asyncio.sleep(0.01)
        other = await model.complete(ASK, max_tokens=9)
        assert time.monotonic() - begun >= 0.3
        assert ((await refused).reply.text, other.reply.text) == ("a", "b")
        assert ((await refused).attempts, other.attempts) == (2, 1)


async def test_a_wait_longer_than_any_call_has_fails_each_call_by_itself_and_at_once(serve):
    server = serve(lambda _: {"status": 429, "headers": {"Retry-After": "3600"}})
    async with open_model(f"{server.url}#m", ModelSettings(calls=CallLimits(seconds=60))) as model:
        ends = await asyncio.gather(*(model.complete(ASK, max_tokens=9) for _ in range(30)), return_exceptions=True)
    said = f"{server.url}#m: HTTP 429; the server asks for 3600 s more; "
    assert [end for end in ends if not str(end).startswith(said)] == []
    assert len(server.requests) == 30


@pytest.mark.parametrize("line", [
    {"status": 429}, {"status": 529}, {"status": 503, "headers": {"Retry-After": "0"}},
    {"status": 503, "error": {"message": "Please try again", "type": "overloaded_error"}},
    {"status": 503, "error": {"message": "The engine is currently overloaded", "type": "server_error"}}])
async def test_refusals_for_the_number_of_calls_use_up_no_attempts(serve, line):
    server = serve([line] * 4 + ["Paris"])
    async with open_model(f"{server.url}#m", ModelSettings(calls=CallLimits(attempts=1))) as model:
        done = await model.complete(ASK, max_tokens=9)
        assert (done.reply.text, done.attempts, model.rate_limited, model.places) == ("Paris", 5, 4, 2)


async def test_refusals_for_the_number_of_calls_end_when_there_is_no_time_for_another(serve):
    server = serve([{"status": 429, "headers": {"Retry-After-Ms": str(wait)}} for wait in (10, 60_000)])
    async with open_model(f"{server.url}#m", ModelSettings(calls=CallLimits(seconds=50))) as model:
        with pytest.raises(CallError, match=r"HTTP 429; the server asks for 60 s more; \d+ s were left") as caught:
            await model.complete(ASK, max_tokens=9)
    assert (caught.value.kind, caught.value.attempts, len(server.requests)) == ("http_429", 2, 2)


async def test_a_server_out_of_order_uses_up_attempts_and_keeps_its_places(serve):
    server = serve(lambda _: {"status": 503, "error": {"message": "database down"}})
    async with open_model(f"{server.url}#m", ModelSettings(calls=CallLimits(attempts=2))) as model:
        with pytest.raises(CallError, match="database down"):
            await model.complete(ASK, max_tokens=9)
        assert (len(server.requests), model.places, model.rate_limited) == (2, 16, 0)


async def test_a_request_larger_than_the_whole_limit_is_not_sent_again(serve):
    server = serve([{"status": 429, "error": {"message": "Request too large for m on tokens per min (TPM): Limit 9"}}])
    async with open_model(f"{server.url}#m", ModelSettings()) as model:
        with pytest.raises(CallError, match="too large") as caught:
            await model.complete(ASK, max_tokens=9)
        assert (caught.value.kind, caught.value.attempts, model.places) == ("http_429", 1, 16)
