"""Spending limits over the workers of a server, and over servers that share a database."""
import contextlib
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx2 as httpx
import psycopg
import pytest
from patience import SECONDS
from postgres_server import postgres_server
from serving import direct, index_of, served

from ragbed.agents.model_settings import ModelSettings, Price
from ragbed.experiments.guests.access.access import Access
from ragbed.experiments.guests.serving.api_keys import Keys
from ragbed.experiments.guests.serving.app import create_app, note_access
from ragbed.experiments.guests.serving.middleware import GateSettings, Rate
from ragbed.experiments.guests.serving.supervisor import SharedNumbers, Worker

ANN, BOB = "ann-key-0123456789", "bob-key-0123456789"
ANSWER = {"text": "Norway [1].", "delay": 0.2, "usage": {  # costs 10 dollars, at 1,000 dollars a million tokens
    "prompt_tokens": 10_000, "completion_tokens": 0, "total_tokens": 10_000}}


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return index_of(tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="module")
def postgres():
    with postgres_server() as (url, control):
        yield url, control


@pytest.fixture(params=["folder", "postgres"])
def two(request, serve, index, tmp_path):
    """Starts two servers over one store; returns their clients."""
    with contextlib.ExitStack() as stack:
        def start(script, spend):
            model = f"{serve(script).url}#m"
            if request.param == "postgres":
                url = request.getfixturevalue("postgres")[0]
                name = f"d{abs(hash(tmp_path))}"
                with psycopg.connect(url, autocommit=True) as connection:
                    connection.execute(f"CREATE DATABASE {name}")
                options = [{"threads": url.replace("/postgres", f"/{name}")}] * 2
            else:
                with socket.socket() as unused:
                    options = [{"worker": Worker(number, 2, False, unused, SharedNumbers(), -1)} for number in (0, 1)]

            keys = Keys([f"ann {ANN}", f"bob {BOB} spend=25/day"])

            def make(serving):
                note_access(serving, keys)
                return create_app(serving, GateSettings(keys, rate=Rate("10000/second"), queue=200))

            settings = ModelSettings(prices={model: Price(prompt=1_000, completion=1_000)})
            return [stack.enter_context(httpx.Client(timeout=SECONDS, base_url=stack.enter_context(served(
                [direct(index, model, calls=settings)], tmp_path / "t", make, spend=spend,
                access=Access((), keys.claims), **one)))) for one in options]

        yield start


def ask(client, key=ANN):
    asked = {"model": "direct", "messages": [{"role": "user", "content": "Which country is Oslo the capital of?"}]}
    return client.post("/v1/chat/completions", headers={"Authorization": f"Bearer {key}"}, json=asked).status_code


@pytest.mark.slow
def test_two_servers_let_no_key_exceed_its_limit_by_more_than_an_answer(two):
    clients = two(lambda body: ANSWER, "35/day")
    assert [ask(client) for client in clients] == [200, 200]
    with ThreadPoolExecutor(40) as pool:
        found = list(pool.map(lambda number: ask(clients[number % 2]), range(80)))
    assert (found.count(200), found.count(429)) == (2, 78)  # 20 + 2 * 10 is more than 35, and 20 + 10 is not
    assert [ask(client) for client in clients] == [429, 429]
    assert [ask(clients[turn % 2], BOB) for turn in range(4)] == [200, 200, 200, 429]


@pytest.mark.slow
def test_a_question_in_progress_counts_on_all_servers_and_a_failed_one_no_longer(two):
    held, began = threading.Event(), threading.Event()

    def script(body):
        began.set()
        return {"status": 400, "error": {"message": "no"}, "hold": held}

    clients = two(script, "0.7/day")
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(ask, clients[0])
        assert began.wait(SECONDS)
        limited = [ask(client) for client in reversed(clients)]
        held.set()
        first.result()
    assert limited == [429, 429]
    assert ask(clients[1]) == 502
