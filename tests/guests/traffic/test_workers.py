"""One server in several processes: threads, limits and cookies are right in all, and none outlives the supervisor."""
import os
import signal
import subprocess
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from replicas import events, server
from streamed import delta, ending

from ragbed.experiments.guests.serving.middleware import Queue, Rate
from ragbed.experiments.guests.serving.supervisor import SharedNumbers

KEYS = "ann ann-has-a-long-key-1\nbob bob-has-a-long-key-2\n"
ANN, BOB = ({"Authorization": f"Bearer {line.split()[1]}"} for line in KEYS.splitlines())


def ask(url, question, thread=None, headers=ANN):
    given = {"question": question, **({"thread": thread} if thread else {})}
    with httpx.Client(timeout=60, headers=headers) as client:  # a connection each, so that any process answers
        sent = client.post(f"{url}/api/ask", json=given)
    return events(sent)[-1] if sent.status_code == 200 else sent


def children(process):
    listed = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=False)
    return [int(pid) for pid in listed.stdout.split()]


def until(done):
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end
        time.sleep(0.1)


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
        assert supervisor.wait(60) == 0


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
        one, other = (Queue(1, 0, shared) for shared in numbers)

        async def receive():
            raise AssertionError

        async with one.place(receive):
            with pytest.raises(Exception, match="busy"):
                async with other.place(receive):
                    pass
        async with other.place(receive) as connected:
            assert connected
