"""Threads of the page: turns that continue one another, those that were left, and who may see them."""
import json
import threading

import httpx2 as httpx
import pytest
from patience import SECONDS
from serving import direct, index_of, served
from streamed import delta, streamed

QUESTION = "Which country is Oslo the capital of?"


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return index_of(tmp_path_factory.mktemp("pages"))


def events(response):
    return [json.loads(line.removeprefix("data: ")) for line in response.iter_lines() if line.startswith("data: ")]


def ask(client, question, thread=None, **fields):
    with client.stream("POST", "/api/ask", json={"question": question, "thread": thread, **fields}) as response:
        assert response.status_code == 200, response.read()
        return events(response)


def test_a_thread_goes_on_where_it_was_left_and_is_told_in_full(serve, index, tmp_path):
    model = serve([streamed("Norway [1]."), "Which country is Rome the capital of?", streamed("Italy [1].")])
    described = [direct(index, f"{model.url}#m", history="rewrite")]
    with served(described, tmp_path / "t") as url, httpx.Client(base_url=url, timeout=SECONDS) as client:
        first = ask(client, QUESTION)
        assert [one["event"] for one in first][:4] == ["begun", "searching", "search", "asking"]
        assert first[2]["passages"][0]["text"] == "Oslo is the capital of Norway."
        assert "".join(one["text"] for one in first if one["event"] == "text") == "Norway [1]."
        thread = first[0]["thread"]
        last = ask(client, "And Rome?", thread)[-1]
        assert (last["event"], last["text"], last["record"]) == ("answer", "Italy [1].", f"{thread}-1")
        assert last["standalone"] == "Which country is Rome the capital of?"
    with served(described, tmp_path / "t") as url, httpx.Client(base_url=url) as client:
        (told,) = client.get("/api/threads").json()["threads"]
        assert (told["id"], told["title"]) == (thread, QUESTION)
        turns = client.get(f"/api/threads/{thread}").json()["turns"]
        assert [turn["question"] for turn in turns] == [QUESTION, "And Rome?"]
        assert turns[1]["answer"]["citations"] == [{"start": 6, "end": 9, "n": 1}]


def test_an_ab_test_names_the_configuration_of_an_answer_once_it_is_rated(serve, index, tmp_path):
    model = serve(lambda body: streamed("Norway [1]."))
    described = [direct(index, f"{model.url}#m", name) for name in ("direct", "chain")]
    with served(described, tmp_path / "t", explore=0.5) as url, httpx.Client(base_url=url, timeout=SECONDS) as client:
        begun, *_, answer = ask(client, QUESTION)
        thread, told = f"/api/threads/{begun['thread']}", {"record": answer["record"], "thumb": None}
        assert "configuration" not in begun.keys() | answer.keys()
        assert client.post("/api/feedback", json=told).json() == {"kept": True, "configuration": None}
        assert "configuration" not in client.get(thread).json()["turns"][0]["answer"]
        name = client.post("/api/feedback", json={**told, "thumb": "up"}).json()["configuration"]
        assert name in ("direct", "chain")
        assert client.get(thread).json()["turns"][0]["answer"]["configuration"] == name
        assert "configuration" not in client.get("/api/threads").json()["threads"][0]


def test_a_question_that_was_left_is_a_record_and_the_thread_goes_on(serve, index, tmp_path):
    held = threading.Event()
    model = serve([{"pieces": [delta(content="Nor"), held]}, streamed("Norway [1].")])
    with served([direct(index, f"{model.url}#m")], tmp_path / "t") as url, \
            httpx.Client(base_url=url, timeout=SECONDS) as client:
        with client.stream("POST", "/api/ask", json={"question": QUESTION}) as response:
            seen = []
            for line in response.iter_lines():
                seen += [json.loads(line.removeprefix("data: "))] if line.startswith("data: ") else []
                if seen and seen[-1]["event"] == "text":
                    break
        thread = seen[0]["thread"]
        for _ in range(100):
            turns = client.get(f"/api/threads/{thread}").json()["turns"]
            if turns[0]["answer"]:
                break
            threading.Event().wait(0.05)
        assert turns[0]["answer"]["failure"]["kind"] == "stopped"
        assert ask(client, "Once more: which country?", thread)[-1]["text"] == "Norway [1]."
        held.set()


def test_feedback_is_kept_with_its_answer(serve, index, tmp_path):
    model = serve([streamed("Norway [1].")])
    with served([direct(index, f"{model.url}#m")], tmp_path / "t") as url, \
            httpx.Client(base_url=url, timeout=SECONDS) as client:
        answer = ask(client, QUESTION)[-1]
        sent = {"record": answer["record"], "thumb": "down", "comment": "It is Sweden."}
        assert client.post("/api/feedback", json=sent).json() == {"kept": True, "configuration": "direct"}
        (turn,) = client.get(f"/api/threads/{answer['thread']}").json()["turns"]
        assert turn["feedback"] == {"thumb": "down", "comment": "It is Sweden."}
        assert client.post("/api/feedback", json={**sent, "record": "none"}).status_code == 404
        assert client.get("/api/threads/none").status_code == 404
        assert client.post("/api/ask", json={"question": "?", "thread": "0" * 32}).status_code == 404


def test_a_question_of_a_thread_may_have_a_filter(serve, index, tmp_path):
    model = serve([streamed("Norway [1]."), streamed("Italy [1].")])
    with served([direct(index, f"{model.url}#m")], tmp_path / "t") as url, \
            httpx.Client(base_url=url, timeout=SECONDS) as client:
        first = ask(client, QUESTION)[-1]
        second = ask(client, "And Rome?", first["thread"], where={"source": ["rome*", "!= oslo*"]})[-1]
        assert {source["name"] for source in second["sources"]} == {"rome.txt"}
        turns = client.get(f"/api/threads/{first['thread']}").json()["turns"]
        assert [turn["where"] for turn in turns] == ["", "source != oslo* and source = rome*"]
        refused = client.post("/api/ask", json={"question": "?", "where": "sorce = rome*"})
        assert refused.status_code == 400
        assert "did you mean 'source'?" in refused.json()["error"]["message"]
        assert client.post("/api/ask", json={"question": "?", "where": "page >"}).status_code == 422
