"""A second model, an answer cache and spending limits, each marked in the answer and the record."""
import contextlib
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import httpx2 as httpx
import pytest
from patience import SECONDS, until
from serving import client_that_leaves, direct, index_of, served
from streamed import DONE, as_asked, delta, ending

from ragbed.agents.model_settings import CallLimits, ModelSettings, Price
from ragbed.agents.types import failed_answer
from ragbed.documents import SettingsError
from ragbed.experiments.guests.access.access import Access
from ragbed.experiments.guests.operations.alternatives import AnswerCache
from ragbed.experiments.guests.operations.serve_settings import ServeSettings
from ragbed.experiments.guests.operations.server_settings import ServerSettings
from ragbed.experiments.guests.operations.spending import SpendingLimit
from ragbed.experiments.guests.serving.api_keys import Keys
from ragbed.experiments.guests.serving.app import create_app, note_access, open_server
from ragbed.experiments.guests.serving.middleware import GateSettings, Rate
from ragbed.experiments.guests.traffic.traffic_runs import runs_of
from ragbed.experiments.runs.store import RunFolder
from ragbed.strategies.types import Failure

ANN, BOB = "ann-key-0123456789", "bob-key-0123456789"
TEXT = "Which country is Oslo the capital of?"
QUESTION = {"model": "direct", "messages": [{"role": "user", "content": TEXT}]}
ONCE = CallLimits(attempts=1)


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return index_of(tmp_path_factory.mktemp("pages"))


@pytest.fixture
def start(serve, index, tmp_path):
    """Serves scripted models with these options; returns a client and the models' servers."""
    with contextlib.ExitStack() as stack:
        def opened(first, second=None, keys=(), allow=(), price=None, spend="", over=None, history="none",
                   **answering):
            models = [serve(one if callable(one) else list(one)) for one in (first, second) if one is not None]
            names = [f"{one.url}#{name}" for one, name in zip(models, ("first", "second"), strict=False)]
            if second is not None:
                answering["fallback"] = names[1]
            prices = {name: Price(prompt=price, completion=price) for name in names} if price else {}
            known = Keys(keys)

            def make(serving):
                note_access(serving, known)
                return create_app(serving, GateSettings(known, rate=Rate("10000/second")))

            url = stack.enter_context(served(
                [direct(over or index, names[0], history=history, calls=ModelSettings(calls=ONCE, prices=prices))],
                tmp_path / "t", make,
                answering=answering, spend=spend, access=Access(allow, known.claims)))
            return stack.enter_context(httpx.Client(base_url=url, timeout=SECONDS)), *models

        yield opened


def ask(client, text=TEXT, key=None, **more):
    return client.post("/v1/chat/completions", json={**QUESTION, "messages": [{"role": "user", "content": text}]},
                       headers={**({"Authorization": f"Bearer {key}"} if key else {}), **more})


def said(answer):
    return answer.json()["choices"][0]["message"]["content"], answer.json()["ragbed"]


def page_answer(client, question, thread=None):
    given = {"question": question, **({"thread": thread} if thread else {})}
    return json.loads(client.post("/api/ask", json=given).text.split("data: ")[-1])


def notes(folder):
    """The model and the notes of every record."""
    found = []
    for run in runs_of(folder):
        with contextlib.closing(RunFolder.existing(run)) as kept:
            found += [(record.result.outcome, tuple(record.result.notes)) for record in kept.records(traces=True)]
    return sorted(found)


def test_a_second_model_answers_if_the_first_fails(start, tmp_path):
    client, first, second = start([{"status": 500, "error": {"message": "no"}}, "Norway [1]."], ["Norway indeed [1]."])
    text, about = said(ask(client))
    assert (text, about["fallback"], about["model"]) == ("Norway indeed [1].", True, "second")
    assert said(ask(client))[1]["fallback"] is False
    assert (len(first.requests), len(second.requests)) == (2, 1)
    assert 'ragbed_fallback_answers_total{configuration="direct"} 1.0' in client.get("/metrics").text
    assert notes(tmp_path / "t") == [("answered", ()), ("answered", ("fallback",))]
    assert len(runs_of(tmp_path / "t")) == 2  # one for each model


@pytest.mark.slow
def test_a_slow_model_is_left_before_its_first_text_and_not_after(start):
    held = threading.Event()
    client, _, second = start([{"text": "late", "delay": 20}, {"pieces": [
        delta(content="Nor"), held, delta(content="way [1]."), *ending()]}],
        as_asked(lambda body: "Norway [1]."), fallback_after=0.5)
    text, about = said(ask(client))
    assert (text, about["fallback"]) == ("Norway [1].", True)
    with client.stream("POST", "/v1/chat/completions", json={**QUESTION, "stream": True}) as reply:
        lines = reply.iter_lines()
        while "Nor" not in next(lines):
            pass
        time.sleep(1)
        held.set()
        rest = "".join(lines)
    assert "way [1]." in rest
    assert '"fallback": false' in rest
    assert len(second.requests) == 1


def test_a_model_that_fails_again_and_again_is_not_asked_for_a_while(start):
    client, first, second = start(lambda body: {"status": 500, "error": {"message": "no"}},
                                  as_asked(lambda body: "Norway [1]."))
    assert [said(ask(client))[0] for _ in range(5)] == ["Norway [1]."] * 5
    assert (len(first.requests), len(second.requests)) == (3, 5)


@pytest.mark.slow
def test_a_prompt_that_is_too_long_or_a_client_that_leaves_is_no_failure_of_the_model(start):
    client, first, second = start([{"status": 400, "error": {
        "code": "context_length_exceeded", "message": "maximum context length is 10 tokens"}},
        {"text": "late", "delay": 1_000}], lambda body: "Norway [1].")
    assert ask(client).status_code == 400
    with client_that_leaves(client, "/v1/chat/completions", QUESTION):
        until(lambda: len(first.requests) == 2)
    time.sleep(1)
    assert (len(first.requests), len(second.requests)) == (2, 0)


def test_both_models_fail(start, tmp_path):
    client, _, _ = start([{"status": 500, "error": {"message": "first"}}], [{"status": 500, "error": {"message": "x"}}])
    failed = ask(client)
    assert (failed.status_code, failed.json()["error"]["code"]) == (502, "error")
    assert notes(tmp_path / "t") == [("error", ("fallback",))]


def test_a_thread_goes_on_after_an_answer_of_the_second_model_or_the_cache(start):
    client, first, _ = start(
        lambda body: {"status": 500, "error": {"message": "no"}} if "Where is Oslo" in str(body) else "Italy [2].",
        as_asked(lambda body: "Norway [1]."), cache=60, history="rewrite")
    begun = page_answer(client, "Where is Oslo?")
    assert (begun["text"], begun["notes"]) == ("Norway [1].", ["fallback"])
    kept = client.get(f"/api/threads/{begun['thread']}").json()["turns"]
    assert [turn["answer"]["text"] for turn in kept] == ["Norway [1]."]
    further = page_answer(client, "And what about the other?", begun["thread"])
    assert further["text"] == "Norway [1]."  # the history has Oslo, so the first model fails again
    assert "Norway" in str(first.requests[1][0])  # it was sent the earlier answer, to rewrite the question
    for _ in range(2):
        other = page_answer(client, "What is the capital of Italy?")
    assert other["notes"] == ["cached"]
    assert page_answer(client, "And what else?", other["thread"])["failure"] is None
    assert "What is the capital of Italy?" in str(first.requests[-2][0])


@pytest.mark.slow
def test_the_same_question_is_answered_from_the_cache_until_it_expires(start, tmp_path):
    client, model = start(as_asked(lambda body: f"Norway [1]. {len(str(body))}"), cache=1.5)
    first, again = said(ask(client)), said(ask(client))
    assert first[0] == again[0]
    assert (first[1]["cached"], again[1]["cached"]) == (False, True)
    assert ask(client).json()["usage"]["total_tokens"] == 0
    stream = client.post("/v1/chat/completions", json={**QUESTION, "stream": True}).text
    assert first[0] in stream
    assert stream.endswith(DONE.decode())
    assert said(ask(client, "Which country is Rome the capital of?"))[1]["cached"] is False
    assert said(ask(client, **{"Cache-Control": "no-cache"}))[1]["cached"] is False
    assert len(model.requests) == 3
    assert 'ragbed_cached_answers_total{configuration="direct"} 3.0' in client.get("/metrics").text
    time.sleep(1.6)
    assert said(ask(client))[1]["cached"] is False
    assert notes(tmp_path / "t").count(("answered", ("cached",))) == 3


def test_an_answer_that_began_before_a_deletion_is_not_kept(start):
    held, began = threading.Event(), threading.Event()
    lines = [{"text": "Norway 1 [1]."}, {"text": "Norway 2 [1].", "hold": held}, {"text": "Norway 3 [1]."}]

    def next_line(body):
        if len(lines) == 2:
            began.set()
        return lines.pop(0)

    client, _ = start(next_line, cache=60)
    first = page_answer(client, "Where is Rome?")
    with ThreadPoolExecutor(1) as pool:
        during = pool.submit(page_answer, client, TEXT)
        assert began.wait(SECONDS)
        assert client.delete(f"/api/threads/{first['thread']}").status_code == 200
        held.set()
        assert during.result()["text"] == "Norway 2 [1]."
    assert [page_answer(client, TEXT)["text"] for _ in range(2)] == ["Norway 3 [1]."] * 2


def test_history_and_filter_are_part_of_what_is_cached(start):
    client, _ = start(as_asked(lambda body: "Norway [1]."), cache=60)
    history = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    bodies = [QUESTION, {**QUESTION, "where": "source = oslo*"}, {**QUESTION, "where": "source = rome*"},
              {**QUESTION, "messages": [*history, *QUESTION["messages"]]},
              {**QUESTION, "messages": [history[0], {"role": "assistant", "content": "Bye"}, *QUESTION["messages"]]}]
    asked = [client.post("/v1/chat/completions", json=body).json() for body in bodies * 2]
    assert [one["ragbed"]["cached"] for one in asked] == [False] * 5 + [True] * 5
    assert [one["ragbed"]["evidence"] for one in asked[:5]] == [one["ragbed"]["evidence"] for one in asked[5:]]


def test_what_one_key_may_read_is_not_in_the_cache_of_another(start, tmp_path):
    folder = tmp_path / "two"
    folder.mkdir()
    (folder / "metadata.csv").write_text("source,groups\noslo.txt,north\nrome.txt,south\n")
    for name, text in (("oslo.txt", "The code of Oslo is 4711."), ("rome.txt", "The code of Rome is 815.")):
        (folder / name).write_text(text)
    from ragbed.retrieval import build_index
    build_index([folder / "oslo.txt", folder / "rome.txt"], folder / "index",
                metadata={"oslo.txt": {"groups": "north"}, "rome.txt": {"groups": "south"}})
    client, model = start(as_asked(lambda body: "4711 [1]." if "4711" in str(body) else "815 [1]."), cache=60,
                          keys=[f"ann {ANN} groups=north", f"bob {BOB} groups=south",
                                "eve eve-key-0123456789 groups=north"],
                          allow=["groups in key.groups"], over=folder / "index")
    found = [said(ask(client, "What is the code?", key)) for key in (ANN, BOB, "eve-key-0123456789", BOB)]
    assert [(text, about["cached"]) for text, about in found] == [
        ("4711 [1].", False), ("815 [1].", False), ("4711 [1].", True), ("815 [1].", True)]
    assert len(model.requests) == 2


def test_failed_and_malformed_answers_are_not_cached(start):
    lines = [{"status": 500, "error": {"message": "no"}}, "Norway [1]."]
    client, _ = start(lambda body: lines.pop(0), cache=60)
    assert ask(client).status_code == 502
    assert said(ask(client))[1]["cached"] is False


def test_the_cache_is_bounded():
    cache = AnswerCache()
    answer = failed_answer(Failure("x", "y"))
    cache.keep("failed", answer, 60)
    assert cache.find("failed") is None
    from dataclasses import replace
    good = replace(answer, outcome="answered", failure=None, text="x" * 1_000_000)
    for number in range(1_100):
        cache.keep(str(number), good, 60)
    assert [cache.find(str(number)) is not None for number in (0, 1_049, 1_050, 1_099)] == [False, False, True, True]


def test_spending_is_limited_by_key_and_says_when_it_is_reset(start):
    client, _ = start(as_asked(lambda body: "Norway [1]."), price=1_000, spend="1.5/day",  # 0.712 dollars an answer
                      keys=[f"ann {ANN}", f"bob {BOB} spend=0.8/month"])
    assert [ask(client, key=ANN).status_code for _ in range(4)] == [200, 200, 200, 429]
    late = ask(client, key=ANN)
    error = late.json()["error"]
    assert (error["code"], error["type"]) == ("insufficient_quota", "insufficient_quota")
    assert "1.5 US dollars per day" in error["message"]
    assert 0 < int(late.headers["Retry-After"]) <= 86_400
    assert [ask(client, key=BOB).status_code for _ in range(3)] == [200, 200, 429]
    page = client.post("/api/ask", json={"question": "Who?"}, headers={"Authorization": f"Bearer {BOB}"})
    assert page.status_code == 429
    assert client.get("/v1/models", headers={"Authorization": f"Bearer {BOB}"}).status_code == 200


def test_questions_at_the_same_time_exceed_a_limit_by_little(start):
    client, model = start(as_asked(lambda body: "Norway [1]."), price=1_000, spend="15/day", keys=[f"ann {ANN}"])
    with ThreadPoolExecutor(40) as pool:
        found = list(pool.map(lambda _: ask(client, key=ANN).status_code, range(40)))
    assert found.count(200) * 0.712 <= 15 + 0.712
    assert found.count(429) == 40 - found.count(200)
    assert len(model.requests) == found.count(200)


def test_what_was_spent_is_known_after_a_restart(start, tmp_path):
    import sqlite3
    client, _ = start(as_asked(lambda body: "Norway [1]."), price=1_000, spend="0.7/day")
    assert [ask(client).status_code for _ in range(2)] == [200, 429]
    with contextlib.closing(sqlite3.connect(tmp_path / "t" / "traffic.sqlite")) as kept:
        (row,) = kept.execute("SELECT owner, day, round(usd, 3) FROM spending").fetchall()
    assert row == ("", datetime.now(UTC).date().isoformat(), 0.712)


async def test_limits_without_a_price_and_fallbacks_to_the_same_model_are_refused_at_the_start(index, tmp_path):
    model = "http://127.0.0.1:9/v1#m"
    async with open_server([direct(index, model)], ServerSettings(tmp_path / "t", spend="5/day")) as server:
        with pytest.raises(SettingsError, match=r"--spend: the price of .* is unknown; set `prices`"):
            note_access(server, Keys())
    with pytest.raises(SettingsError, match="this is the model of direct"):
        async with open_server([direct(index, model)], ServerSettings(
                tmp_path / "t", answering={"fallback": model})):
            pass


@pytest.mark.parametrize("text", ["5", "5/week", "0/day", "-1/day", "1e3/day", "nan/day", "5 /day", "inf/month", ""])
def test_limits_that_are_none_are_refused(text):
    with pytest.raises(SettingsError, match="such as 5/day"):
        SpendingLimit.parse(text, "--spend")


def test_periods_begin_and_end_by_utc():
    now = datetime(2024, 12, 31, 23, 59, tzinfo=UTC)
    month, day = SpendingLimit.parse("5/month", ""), SpendingLimit.parse("5/day", "")
    assert [one.isoformat()[:16] for one in (month.begin(now), month.end(now), day.begin(now), day.end(now))] == [
        "2024-12-01T00:00", "2025-01-01T00:00", "2024-12-31T00:00", "2025-01-01T00:00"]


def test_settings_without_effect_are_refused():
    with pytest.raises(SettingsError, match="fallback_after has no effect"):
        ServeSettings().merged({"fallback_after": 3.0})
    assert ServeSettings(fallback="openai:a", cache=3).merged({"fallback_after": 3.0}).cache == 3
