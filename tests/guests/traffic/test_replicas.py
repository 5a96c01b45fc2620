"""Several servers of one index: threads, responses and feedback are right on each, whatever fails."""
import contextlib
import json
import os
import random
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import openai
import psycopg
import pytest
from patience import SECONDS
from postgres_server import postgres_server
from replicas import events, round_robin, server
from streamed import delta, ending, streamed

from ragbed.experiments.guests.traffic.traffic_runs import runs_of
from ragbed.experiments.runs.store import RunFolder

PASSWORD = "bell-and-lamp"
KEYS = "ann ann-has-a-long-key-1\nbob bob-has-a-long-key-2\n"
ANN, BOB = ({"Authorization": f"Bearer {line.split()[1]}"} for line in KEYS.splitlines())


@pytest.fixture(scope="module")
def postgres():
    with postgres_server(PASSWORD) as (url, control):
        yield url, control


@pytest.fixture
def database(postgres, request):
    name = f"d{random.randrange(10**9)}"
    with psycopg.connect(postgres[0], autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return postgres[0].replace("/postgres", f"/{name}")


def reply(body):
    text = body["messages"][-1]["content"]
    return "What is its size?" if "<query>" in text else streamed("Norway [1].")


def ask(url, question, thread=None, headers=ANN):
    sent = httpx.post(f"{url}/api/ask", json={"question": question, **({"thread": thread} if thread else {})},
                      headers=headers, timeout=SECONDS)
    return events(sent)[-1] if sent.status_code == 200 else sent


def converse(address, number):
    """A conversation by responses and one on the page: texts, turns, and what was said of them."""
    answers = []
    for turn in range(3):
        before = {"previous_response_id": answers[-1].id} if answers else {}
        with openai.OpenAI(base_url=f"{address}/v1", api_key=ANN["Authorization"][7:], max_retries=0) as client:
            answers.append(client.responses.create(model="direct", input=f"{number}: where, {turn}?", **before))
    thread = ask(address, f"{number}: where is Rome?")["thread"]
    last = [ask(address, "And Oslo?", thread), ask(address, "And Oslo, then?", thread)][-1]
    kept = httpx.post(f"{address}/api/feedback", json={"record": last["record"], "thumb": "down"}, headers=ANN)
    shown = httpx.get(f"{address}/api/threads/{thread}", headers=ANN).json()["turns"]
    return ([one.output_text for one in answers], len(shown), kept.status_code,
            [turn["feedback"]["thumb"] for turn in shown])


@pytest.mark.slow
def test_servers_over_one_database_share_threads_responses_and_feedback(serve, capitals, tmp_path, database, ragbed):
    model, keys = serve(reply), tmp_path / "keys"
    keys.write_text(KEYS)
    given = (capitals, model.url, "--threads", database, "--keys", keys, "--rate", "10000/second")
    with contextlib.ExitStack() as running, ThreadPoolExecutor(8) as clients:
        # both begin on an empty database at the same time
        urls = [url for _, url in clients.map(lambda name: running.enter_context(
            server(*given, log=tmp_path / name)), ("a.log", "b.log"))]
        one, other = urls
        first = ask(one, "Where is Oslo?")
        assert [turn["question"] for turn in httpx.get(
            f"{other}/api/threads/{first['thread']}", headers=ANN).json()["turns"]] == ["Where is Oslo?"]
        second = ask(other, "And its size?", first["thread"])
        assert (second["record"], second["standalone"]) == (f"{first['thread']}-1", "What is its size?")
        assert httpx.post(f"{other}/api/feedback", json={"record": first["record"], "thumb": "up"},
                          headers=ANN).json() == {"kept": True, "configuration": "direct"}
        # another key's threads, answers and feedback stay its own on every server
        assert httpx.get(f"{other}/api/threads/{first['thread']}", headers=BOB).status_code == 404
        assert ask(other, "What is there?", first["thread"], BOB).status_code == 404
        assert httpx.post(f"{other}/api/feedback", json={"record": first["record"], "thumb": "down"},
                          headers=BOB).status_code == 404
        # the page's cookie of one server is known on the other
        cookie = httpx.post(f"{one}/api/session", json={"key": ANN["Authorization"][7:]}).cookies
        assert httpx.get(f"{other}/api/threads", cookies=cookie).status_code == 200

        address = running.enter_context(round_robin(*urls))

        found = list(clients.map(lambda number: converse(address, number), range(16)))
        assert found == [(["Norway [1]."] * 3, 3, 200, [None, None, "down"])] * 16
    status, out, _ = ragbed("copy-traffic", database, "--out", tmp_path / "copy")
    assert (status, out) == (0, f"{tmp_path / 'copy'}: 17 threads, 98 answers, 17 with feedback\n")
    (run,) = runs_of(tmp_path / "copy")
    with contextlib.closing(RunFolder.existing(run)) as folder:
        assert [record.result.outcome for record in folder.records()] == ["answered"] * 98
    assert ragbed.json("verify", run)["agrees"]
    assert ragbed("diagnose", tmp_path / "copy")[0] == 0
    status, out, _ = ragbed("questions", "--from", tmp_path / "copy", "--out", tmp_path / "q.jsonl", "--json")
    assert (status, json.loads(out)["up"], json.loads(out)["down"]) == (0, 1, 1)
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or PASSWORD.encode() not in file.read_bytes(), file


@pytest.mark.slow
def test_a_server_survives_a_restart_of_its_database(serve, capitals, tmp_path, postgres, database):
    held = threading.Event()

    def script(body):
        if "Wait" in body["messages"][-1]["content"]:
            return {"pieces": [delta(content="Norway"), held, delta(content=" [1]."), *ending()]}
        return reply(body)

    model = serve(script)
    with server(capitals, model.url, "--threads", database, log=tmp_path / "log") as (_, url), \
            ThreadPoolExecutor(1) as client:
        thread = ask(url, "Where is Oslo?")["thread"]
        during = client.submit(ask, url, "Wait: where is Rome?")
        while len(model.requests) < 2:
            threading.Event().wait(0.05)
        postgres[1]("stop")
        refused = [ask(url, "Where is Oslo?"), ask(url, "And Rome?", thread),
                   httpx.get(f"{url}/api/threads"),
                   httpx.post(f"{url}/v1/responses", json={"model": "direct", "input": "Where?"}, timeout=SECONDS)]
        assert [one.status_code for one in refused] == [503] * 4
        assert all("cannot read or store answers" in one.json()["error"]["message"] for one in refused)
        held.set()
        postgres[1]("start")
        assert during.result()["text"] == "Norway [1]."  # kept once the database was back
        assert ask(url, "And its size?", thread)["text"] == "Norway [1]."
        assert len(httpx.get(f"{url}/api/threads").json()["threads"]) == 2
    assert "Traceback" not in (tmp_path / "log").read_text()
    assert PASSWORD not in (tmp_path / "log").read_text()
    with psycopg.connect(database) as connection:
        query = "SELECT count(*) FROM ragbed_traffic.turns WHERE outcome = 'answered'"
        assert connection.execute(query).fetchone() == (3,)


@pytest.mark.slow
def test_a_killed_servers_question_is_ended_by_another_that_the_thread_moves_to(serve, capitals, tmp_path, database):
    held = threading.Event()
    hanging = {"pieces": [delta(content="It"), held, *ending()]}

    def hangs(body):
        return "Wait" in body["messages"][-1]["content"]  # it hangs as it rewrites the question

    model = serve(lambda body: hanging if hangs(body) else reply(body))
    given = (capitals, model.url, "--threads", database)
    with server(*given) as (killed, one), server(*given) as (_, other), ThreadPoolExecutor(1) as client:
        thread = ask(one, "Where is Oslo?")["thread"]

        def wait():
            with contextlib.suppress(httpx.TransportError):
                return ask(one, "Wait: and Rome?", thread)

        during = client.submit(wait)
        while not any(hangs(request) for request, _ in model.requests):
            assert not during.done(), during.result()
            threading.Event().wait(0.05)
        busy = ask(other, "And Norway?", thread)
        assert "a question is being answered" in busy.json()["error"]["message"]
        os.kill(killed.pid, signal.SIGKILL)
        during.result()
        held.set()
        assert ask(other, "And Norway?", thread)["record"] == f"{thread}-2"
        turns = httpx.get(f"{other}/api/threads/{thread}").json()["turns"]
        assert [turn["answer"] and turn["answer"]["text"] for turn in turns] == ["Norway [1].", None, "Norway [1]."]
