"""An index that was swapped under a server: new questions are put to the new one, and none is lost."""
import gc
import threading
import time
import weakref

import httpx2 as httpx
import pytest
from patience import SECONDS, until
from serving import direct, index_of, served

from ragbed.experiments.guests.serving import configurations
from ragbed.experiments.guests.serving.app import create_app
from ragbed.experiments.guests.traffic.traffic_runs import runs_of
from ragbed.experiments.runs.store import RunFolder
from ragbed.retrieval import build_index


@pytest.fixture
def swapped(serve, tmp_path, monkeypatch):
    """A server over an index, and a function that swaps that for one of other pages."""
    monkeypatch.setattr(configurations, "RELOAD_SECONDS", 0.1)
    hold = threading.Event()
    held = []

    def script(body):
        prompt = body["messages"][-1]["content"]
        if "Hold" not in prompt:
            return "Bergen [1]." if "Bergen" in prompt else "Oslo [1]."
        held.append(prompt)
        return {"text": "Held [1].", "hold": hold}

    index = index_of(tmp_path)
    opened = []

    def make(serving):
        opened.append(serving)
        return create_app(serving)

    with (served([direct(index, f"{serve(script).url}#m")], tmp_path / "traffic", make) as url,
          httpx.Client(base_url=url, timeout=SECONDS) as client):
        client.opened, client.folder, client.hold, client.held = opened[0], tmp_path, hold, held
        yield client


def ask(client, question):
    body = {"model": "direct", "messages": [{"role": "user", "content": question}]}
    return client.post("/v1/chat/completions", json=body).json()


def swap(client, text):
    (client.folder / "oslo.txt").write_text(text)
    build_index([client.folder / "oslo.txt"], client.folder / "index")


@pytest.mark.slow
def test_new_questions_find_what_is_new_and_those_under_way_end_on_the_old(swapped):
    old = weakref.ref(swapped.opened.configurations["direct"].assistant.index)
    late = []
    asking = threading.Thread(target=lambda: late.append(ask(swapped, "Hold: which capital has Norway?")))
    asking.start()
    until(lambda: swapped.held)
    swap(swapped, "Bergen is a town of Norway.")
    until(lambda: swapped.opened.configurations["direct"].assistant.index is not old())
    assert ask(swapped, "Which town of Norway?")["choices"][0]["message"]["content"] == "Bergen [1]."
    swapped.hold.set()
    asking.join()
    assert late[0]["choices"][0]["message"]["content"] == "Held [1]."
    assert late[0]["ragbed"]["evidence"][0]["name"] == "oslo.txt"

    def gone():
        time.sleep(0.2)  # a collection takes longer
        gc.collect()
        return old() is None

    swapped.close()  # whose open connection holds its last request
    until(gone)
    runs = [RunFolder.existing(run) for run in runs_of(swapped.folder / "traffic")]
    assert [len(run.questions()) for run in runs] == [1, 1]  # each index has a run of its own
    for run in runs:
        run.close()


@pytest.mark.slow
def test_no_request_is_lost_while_an_index_is_swapped_again_and_again(swapped):
    answers = []

    def many():
        for number in range(25):
            answers.append(ask(swapped, f"{number}: which town of Norway?")["ragbed"]["outcome"])

    asking = [threading.Thread(target=many) for _ in range(2)]
    for thread in asking:
        thread.start()
    for number in range(4):
        swap(swapped, f"Bergen is town {number} of Norway.")
        time.sleep(0.3)
    for thread in asking:
        thread.join()
    assert answers == ["answered"] * 50


def test_a_damaged_index_does_not_end_what_is_served(swapped, caplog):
    manifest = swapped.folder / "index" / "manifest.json"
    fresh = manifest.with_suffix(".new")
    fresh.write_text("{}")
    fresh.rename(manifest)
    until(lambda: "the old one is still used" in caplog.text)
    assert ask(swapped, "Where is Oslo?")["ragbed"]["outcome"] == "answered"
    assert len([one for one in caplog.records if one.name == "ragbed"]) == 1
