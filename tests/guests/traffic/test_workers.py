"""One server in several processes: threads, limits and cookies are right in all, and none outlives the supervisor."""
import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from fastapi import HTTPException
from patience import SECONDS, until
from postgres_server import postgres_server
from replicas import events, server
from streamed import delta, ending

from ragbed.documents.errors import SettingsError
from ragbed.experiments.guests.serving.api_keys import LoginLimit
from ragbed.experiments.guests.serving.connections import allowed_connections
from ragbed.experiments.guests.serving.middleware import Queue, Rate
from ragbed.experiments.guests.serving.supervisor import SharedNumbers

KEYS = "ann ann-has-a-long-key-1\nbob bob-has-a-long-key-2\n"
ANN, BOB = ({"Authorization": f"Bearer {line.split()[1]}"} for line in KEYS.splitlines())


def ask(url, question, thread=None, headers=ANN):
    given = {"question": question, **({"thread": thread} if thread else {})}
    with httpx.Client(timeout=SECONDS, headers=headers) as client:  # a connection each, so that any process answers
        sent = client.post(f"{url}/api/ask", json=given)
    return events(sent)[-1] if sent.status_code == 200 else sent


def children(process):
    listed = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=False)
    return [int(pid) for pid in listed.stdout.split()]


@pytest.fixture(scope="module")
def postgres():
    with postgres_server() as (url, _):
        yield url


@contextlib.contextmanager
def alone(supervisor, number):
    """Let one of the workers answer, while the others do not run."""
    others = [pid for place, pid in enumerate(sorted(children(supervisor))) if place != number]
    for pid in others:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in others:
            os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def two_workers(index, model, *options, log=None):
    """A server of two workers that both answer: its supervisor and URL."""
    with server(index, model, *options, "--workers", 2, log=log) as (supervisor, url):
        until(lambda: len(children(supervisor)) == 2)
        for number in (0, 1):
            with alone(supervisor, number):
                assert httpx.get(f"{url}/health", timeout=SECONDS).status_code == 200
        yield supervisor, url


def says(body):
    return "<Answer>Norway [1].</Answer>"


@pytest.mark.slow
def test_workers_share_threads_rates_and_cookies_and_a_killed_one_is_restarted(serve, capitals, tmp_path):
    (tmp_path / "keys").write_text(KEYS)
    given = ("--traffic", tmp_path / "t", "--keys", tmp_path / "keys", "--rate", "40/hour", "--workers", 2)
    with server(capitals, serve(says).url, *given, log=tmp_path / "log") as (supervisor, url), \
            ThreadPoolExecutor(8) as clients:
        until(lambda: len(children(supervisor)) == 2)
        time.sleep(10)  # the second worker accepts connections, too
        threads = [one["thread"] for one in clients.map(lambda number: ask(url, f"{number}?"), range(10))]
        assert [one["record"] for one in clients.map(lambda thread: ask(url, "And?", thread), threads)] == [
            f"{thread}-1" for thread in threads]
        cookie = httpx.post(f"{url}/api/session", json={"key": ANN["Authorization"][7:]}).cookies
        assert {httpx.get(f"{url}/api/threads", cookies=cookie).status_code for _ in range(8)} == {200}
        assert {httpx.get(f"{url}/api/threads/{threads[0]}", headers=BOB).status_code for _ in range(8)} == {404}
        left = Counter(getattr(one, "status_code", 200) for one in clients.map(lambda number: ask(url, "?"), range(30)))
        assert left == {200: 20, 429: 10}
        answers = httpx.get(f"{url}/metrics", headers=BOB).text
        assert 'ragbed_answers_total{configuration="direct",outcome="answered"} 40.0' in answers
        first, second = children(supervisor)
        os.kill(first, signal.SIGKILL)
        until(lambda: len(set(children(supervisor)) - {first, second}) == 1)
        assert ask(url, "?", headers=BOB)["text"] == "Norway [1]."
        workers = children(supervisor)
        supervisor.kill()
        until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in workers))
    assert (tmp_path / "log").read_text().count("was killed by SIGKILL; it is started again\n") == 1
    assert "Traceback" not in (tmp_path / "log").read_text()


@pytest.mark.slow
def test_a_killed_workers_question_is_ended_and_its_thread_goes_on(serve, capitals, tmp_path):
    held = threading.Event()
    model = serve(lambda body: {"pieces": [delta(content="It"), held, *ending()]}
                  if "Wait" in body["messages"][-1]["content"] else says(body))
    with server(capitals, model.url, "--traffic", tmp_path / "t", "--workers", 2) as (supervisor, url), \
            ThreadPoolExecutor(1) as client:
        thread = ask(url, "Where is Oslo?")["thread"]
        until(lambda: len(children(supervisor)) == 2)
        during = client.submit(ask, url, "Wait: what then?", thread)
        until(lambda: any("Wait" in str(request[0]) for request in model.requests))
        time.sleep(1)
        for pid in children(supervisor):
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(httpx.TransportError):
            during.result()
        held.set()
        until(lambda: len(children(supervisor)) == 2)
        assert ask(url, "And now?", thread)["record"] == f"{thread}-2"
        turns = httpx.get(f"{url}/api/threads/{thread}").json()["turns"]
        assert [turn["answer"] is None for turn in turns] == [False, True, False]
        supervisor.terminate()
        assert supervisor.wait(SECONDS) == 0


@pytest.mark.slow
def test_workers_that_cannot_start_are_one_line(capitals, tmp_path):
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "traffic.sqlite").write_text("no database, and long enough to be read as one" * 99)
    with pytest.raises(AssertionError), server(capitals, "http://127.0.0.1:9/v1", "--traffic", tmp_path / "t",
                                               "--workers", 2, log=tmp_path / "log"):
        pass
    assert (tmp_path / "log").read_text().count("\n") == 1


async def test_processes_share_the_rate_and_the_places_of_a_queue(tmp_path):
    with (tmp_path / "numbers").open("w+b") as file:
        file.truncate(1 << 20)
        numbers = [SharedNumbers(file.fileno(), process) for process in (0, 1)]
        rates = [Rate("4/hour"), Rate("4/hour")]
        for rate, shared in zip(rates, numbers, strict=True):
            rate.numbers = shared
        assert [rates[turn % 2].wait("ann") == 0 for turn in range(6)] == [True] * 4 + [False] * 2
        assert rates[0].wait("bob") == 0
        logins = [LoginLimit(clock=lambda: 0.0) for _ in numbers]
        for login, shared in zip(logins, numbers, strict=True):
            login.numbers = shared
        for turn in range(10):
            logins[turn % 2].check("192.0.2.1", b"guess", False)
        with pytest.raises(HTTPException, match="too many unknown keys"):
            logins[1].check("192.0.2.1", b"guess", False)
        one, other = (Queue(1, 0, shared) for shared in numbers)

        async def receive():
            raise AssertionError

        async with one.place(receive):
            with pytest.raises(Exception, match="busy"):
                async with other.place(receive):
                    pass
        async with other.place(receive) as connected:
            assert connected


@pytest.mark.slow
def test_guesses_of_keys_are_counted_over_all_workers(serve, capitals, tmp_path):
    (tmp_path / "keys").write_text(KEYS)
    with two_workers(capitals, serve(says).url, "--traffic", tmp_path / "t", "--keys", tmp_path / "keys") as (
            supervisor, url):
        def send(key):
            return httpx.get(f"{url}/v1/models", headers={"Authorization": f"Bearer {key}"}).status_code

        with alone(supervisor, 0):
            assert send(ANN["Authorization"][7:]) == 200
            assert [send(f"guess-of-a-key-{number}") for number in range(10)] == [401] * 10
        with alone(supervisor, 1):
            guesses = [send(f"guess-of-a-key-{number}") for number in range(20)]
            assert guesses.count(401) <= 2  # after a second, and then two, one more may be sent
            assert send(ANN["Authorization"][7:]) == 200  # who was right from this address stays so on all workers


@pytest.mark.slow
@pytest.mark.parametrize("store", ["folder", "postgres"])
def test_a_deleted_answer_is_in_no_workers_cache(serve, capitals, tmp_path, store, ragbed, request):
    answers = []

    def count(body):
        answers.append(1)
        return f"<Answer>Norway {len(answers)} [1].</Answer>"

    place = tmp_path / "t" if store == "folder" else request.getfixturevalue("postgres")
    option = "--traffic" if store == "folder" else "--threads"
    with two_workers(capitals, serve(count).url, option, place, "--cache", 600, "--keep-days", 0) as (supervisor, url):
        def asked(number):
            with alone(supervisor, number):
                return ask(url, "Where is Oslo?")

        def texts(*numbers):
            return [asked(number)["text"][:8] for number in numbers]

        kept = [asked(number) for number in (0, 1, 0, 1)]
        assert [one["text"][:8] for one in kept] == ["Norway 1", "Norway 2", "Norway 1", "Norway 2"]
        with alone(supervisor, 0):
            for one in kept:
                assert httpx.delete(f"{url}/api/threads/{one['thread']}", timeout=SECONDS).status_code == 200
        assert texts(1, 0, 1) == ["Norway 3", "Norway 4", "Norway 3"]
        if store == "postgres":
            assert ragbed("forget", place, "--keep-days", 0)[0] == 0
            assert texts(1, 0, 1) == ["Norway 5", "Norway 6", "Norway 5"]
        last = asked(1)
        first = min(children(supervisor))
        os.kill(first, signal.SIGKILL)  # the first worker deletes old answers, also when it is restarted
        until(lambda: httpx.get(f"{url}/api/threads/{last['thread']}", timeout=SECONDS).status_code == 404)
        assert texts(0) == [f"Norway {len(answers)}"] > [last["text"][:8]]


@pytest.mark.slow
def test_a_question_in_progress_counts_for_the_limit_of_each_worker(serve, capitals, tmp_path):
    held = threading.Event()
    model = serve(lambda body: {"text": "<Answer>Norway [1].</Answer>", "hold": held})
    name = f"{model.url}#m"
    (tmp_path / "q.jsonl").write_text('{"question": "Where is Oslo?", "answer": "Norway"}\n')
    (tmp_path / "s.yaml").write_text(json.dumps({
        "name": "s", "out": str(tmp_path), "models": name, "reasoning": "direct", "conditions": "retrieved",
        "benchmark": {"kind": "jsonl", "path": str(tmp_path / "q.jsonl")},
        "retriever": {"kind": "bm25", "index": str(capitals)},
        "calls": {"prices": {name: {"prompt": 1000, "completion": 1000}}}}))  # about 5 dollars an answer
    with two_workers(tmp_path / "s.yaml", None, "--traffic", tmp_path / "t", "--spend", "1/day") as (
            supervisor, url), ThreadPoolExecutor(1) as client:
        with alone(supervisor, 1):
            first = client.submit(ask, url, "Where is Oslo?")
            until(lambda: model.requests)
            assert ask(url, "And Rome?").status_code == 429
        with alone(supervisor, 0):
            assert ask(url, "And Rome?").status_code == 429
        held.set()
        assert first.result()["text"] == "Norway [1]."


@pytest.mark.slow
def test_a_worker_that_cannot_start_again_stops_no_other(serve, capitals, tmp_path):
    (tmp_path / "keys").write_text(KEYS)
    with two_workers(capitals, serve(says).url, "--traffic", tmp_path / "t", "--keys", tmp_path / "keys",
                     log=tmp_path / "log") as (supervisor, url):
        time.sleep(10)  # a worker that has lived this long is restarted at once, and only the new ones wait
        (tmp_path / "keys").write_text("no key")
        os.kill(min(children(supervisor)), signal.SIGKILL)
        until(lambda: "ended with status 2; it is started again in" in (tmp_path / "log").read_text())
        assert ask(url, "Where is Oslo?")["text"] == "Norway [1]."
        (tmp_path / "keys").write_text(KEYS)
        until(lambda: len(children(supervisor)) == 2)


@pytest.mark.slow
def test_connections_are_those_of_all_workers_together(serve, capitals, tmp_path):
    held = threading.Event()
    model = serve(lambda body: {"text": "<Answer>Norway [1].</Answer>", "hold": held})
    with two_workers(capitals, model.url, "--traffic", tmp_path / "t", "--connections", 6, "--proxy", "127.0.0.1") as (
            supervisor, url), alone(supervisor, 1), ThreadPoolExecutor(6) as clients:
        asked = [clients.submit(ask, url, f"{number}?") for number in range(6)]
        until(lambda: sum(one.done() for one in asked) == 3)
        for one in (one for one in asked if one.done()):  # the connection may end before the client has sent all
            assert isinstance(one.exception(), httpx.TransportError) or one.result().status_code == 503
        held.set()
        assert sum(one.exception() is None and isinstance(one.result(), dict) for one in asked) == 3


def test_connections_are_divided_over_the_workers():
    assert [allowed_connections(None, workers) for workers in (1, 3)] == [1000, 333]
    assert [allowed_connections(7, workers) for workers in (1, 2, 7)] == [7, 3, 1]
    with pytest.raises(SettingsError, match="--connections 7: --workers 8 share them"):
        allowed_connections(7, 8)
