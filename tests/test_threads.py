"""A thread is a conversation: its next question knows the turns before, in this process or another, from any store."""
import asyncio
import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading

import ormsgpack
import psycopg
import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from postgres_server import postgres_server

from ragbed.agents import Assistant, AssistantSettings
from ragbed.agents.checkpoint import open_checkpointer
from ragbed.documents import SettingsError
from ragbed.retrieval import build_index
from ragbed.strategies import Turn

FIRST, NEXT, WRITTEN = "Which country is Oslo in?", "And its people?", "How many people has Oslo?"
TURNS = (Turn(FIRST, "Norway [1]."), Turn(NEXT, "700,000 [1]."))
PASSWORD = "bell-and-lamp"


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    (folder / "oslo.txt").write_text("Oslo is the capital of Norway. It has 700,000 people.")
    build_index([folder / "oslo.txt"], folder / "index")
    return folder / "index"


@pytest.fixture(scope="module")
def postgres():
    """The address of a PostgreSQL server of this file's own, and a function that restarts it."""
    with postgres_server(PASSWORD) as (url, control):
        yield url, lambda: control("restart")


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    return tmp_path / "threads.sqlite" if request.param == "sqlite" else request.getfixturevalue("postgres")[0]


def settings(index, server, **changes):
    return AssistantSettings(**{"index": index, "model": f"{server.url}#m", "retriever": "bm25", "k": 2,
                                "reasoning": "direct", **changes})


def says(body):
    asked = body["messages"][-1]["content"]
    return WRITTEN if "<query>" in asked else "700,000 [1]." if "How many people" in asked else "Norway [1]."


def purposes(answer):
    return [step.purpose for step in answer.trace if hasattr(step, "purpose")]


async def test_the_next_question_of_a_thread_knows_the_turns_before_and_begins_anew(serve, index, place):
    server, thread = serve(says), f"mine-{os.urandom(4).hex()}"
    async with open_checkpointer(place) as saver, Assistant.open(settings(index, server), saver) as assistant:
        assert await assistant.turns(thread) == ()
        assert (await assistant.ask(FIRST, thread=thread)).text == "Norway [1]."
        assert await assistant.turns(thread) == TURNS[:1]
    async with open_checkpointer(place) as saver, Assistant.open(
            settings(index, server, k=1, reasoning="chain_of_thought"), saver) as assistant:
        answer = await assistant.ask(NEXT, thread=thread)
        assert (answer.text, answer.cited, purposes(answer)) == ("700,000 [1].", (1,), ["rewrite", "answer"])
        assert f"Question: {FIRST}\nAnswer: Norway.\n" in server.requests[1][0]["messages"][-1]["content"]
        assert server.requests[2][0]["messages"][-1]["content"].endswith(f"Question: {WRITTEN}")
        assert await assistant.turns(thread) == TURNS
        kept = await assistant.saved(thread)
        assert ([len(kept["results"]), kept["question"], kept["made"]["k"]]) == [3, NEXT, 1]
        again = await assistant.resume(thread)
        assert (again.text, again.trace) == (answer.text, answer.trace)
        answer = await assistant.ask(NEXT, thread=thread)  # asked once more, which is another turn
        assert await assistant.turns(thread) == (*TURNS, TURNS[1])
    assert len(server.requests) == 5


async def test_a_client_without_a_thread_brings_its_turns_and_a_thread_that_is_kept_has_its_own(serve, index):
    server, strange = serve(says), (Turn("Where is Rome?", "In Italy."),)
    async with Assistant.open(settings(index, server), InMemorySaver()) as assistant:
        for _ in range(2):
            await assistant.resume(assistant.begin(NEXT, thread="mine", turns=TURNS[:1]))
        assert await assistant.turns("mine") == (TURNS[0], TURNS[1], TURNS[1])
        await assistant.resume(assistant.begin(NEXT, thread="mine", turns=strange))
    assert not any("Rome" in body["messages"][-1]["content"] for body, _ in server.requests)


class Dies(InMemorySaver):
    """A store of a process that dies after so many of its writes."""

    left = 1_000

    async def aput(self, *given):
        if not self.left:
            raise OSError("killed")
        self.left -= 1
        return await super().aput(*given)


@pytest.mark.parametrize("left", range(5))
async def test_wherever_a_process_dies_the_thread_goes_on_with_its_last_question(serve, index, left):
    server, saver = serve(says), Dies()
    async with Assistant.open(settings(index, server), saver) as assistant:
        await assistant.ask(FIRST, thread="mine")
        saver.left = left
        with pytest.raises(OSError, match="killed"):
            await assistant.ask(NEXT, thread="mine")
        saver.left = 1_000
        if not left:  # nothing of it was kept
            assert await assistant.turns("mine") == TURNS[:1]
            return
        with pytest.raises(SettingsError, match=r"the thread 'mine' has an unfinished question; resume it"):
            await assistant.ask("Where is Rome?", thread="mine")
        answer = await assistant.resume("mine")
        assert (answer.text, purposes(answer)) == ("700,000 [1].", ["rewrite", "answer"])
        assert await assistant.turns("mine") == TURNS


@pytest.mark.parametrize("left", range(1, 5))
async def test_a_question_that_was_left_wherever_it_stood_is_a_turn_without_an_answer(serve, index, left):
    server, saver = serve(says), Dies()
    async with Assistant.open(settings(index, server), saver) as assistant:
        await assistant.ask(FIRST, thread="mine")
        saver.left = left
        with pytest.raises(OSError, match="killed"):
            await assistant.ask("Where is Rome?", thread="mine")
        saver.left = 1_000
        await assistant.abandon("mine")
        left_open = Turn("Where is Rome?", "")
        assert await assistant.turns("mine") == (TURNS[0], left_open)
        assert (await assistant.ask(NEXT, thread="mine")).text == "700,000 [1]."
        assert await assistant.turns("mine") == (TURNS[0], left_open, TURNS[1])


ASKS = """
import asyncio, sys
from pathlib import Path
from ragbed.agents.assistant import Assistant, AssistantSettings
from ragbed.agents.checkpoint import open_checkpointer

async def main(index, model, place):
    settings = AssistantSettings(index=Path(index), model=model, retriever="bm25", k=2, reasoning="direct")
    async with open_checkpointer(place) as saver, Assistant.open(settings, saver) as assistant:
        await assistant.ask("And its people?", thread="killed")

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.slow
async def test_a_process_killed_in_mid_question_loses_and_doubles_nothing(serve, index, place):
    held, under_way = threading.Event(), threading.Event()

    def script(body):
        if "Question: How many people" in body["messages"][-1]["content"] and not held.is_set():
            under_way.set()
            return {"hold": held}
        return says(body)

    server = serve(script)
    async with open_checkpointer(place) as saver, Assistant.open(settings(index, server), saver) as assistant:
        await assistant.ask(FIRST, thread="killed")
        child = subprocess.Popen([sys.executable, "-c", ASKS, index, f"{server.url}#m", str(place)])
        try:
            assert await asyncio.to_thread(under_way.wait, 60)
        finally:
            child.send_signal(signal.SIGKILL)
            child.wait()
            held.set()
        assert await assistant.turns("killed") == TURNS[:1]
        answer = await assistant.resume("killed")
        assert (answer.text, answer.usage.calls, purposes(answer)) == ("700,000 [1].", 2, ["rewrite", "answer"])
        assert await assistant.turns("killed") == TURNS
    assert len(server.requests) == 4  # the call that was under way is made again, and no other


async def test_a_database_that_was_tampered_with_executes_nothing(serve, index, tmp_path):
    file, marker = tmp_path / "threads.sqlite", tmp_path / "executed"
    packed = ormsgpack.packb(ormsgpack.Ext(1, ormsgpack.packb(("os", "system", (f"touch {marker}",)))))
    JsonPlusSerializer().loads_typed(("msgpack", packed))
    assert marker.exists()  # what LangGraph's own serialiser does with it
    marker.unlink()
    hostile = {"lc": 2, "type": "constructor", "id": ["os", "system"], "args": [f"touch {marker}"]}
    tampered = {"packed": ("type = 'msgpack', checkpoint = ?", packed, "contains data that ragbed did not write"),
                "pickled": ("type = 'pickle', checkpoint = ?", b"cos\nsystem\n.", "data that ragbed did not write"),
                "named": ("checkpoint = replace(checkpoint, '\"turns\": []', ?)", f'"turns": [{json.dumps(hostile)}]',
                          r"the thread 'named': invalid state \(turns.0.question\)")}
    async with open_checkpointer(file) as saver, Assistant.open(settings(index, serve(says)), saver) as assistant:
        for thread, (change, content, told) in tampered.items():
            await assistant.ask(FIRST, thread=thread)
            with contextlib.closing(sqlite3.connect(file)) as database, database:
                database.execute(f"UPDATE checkpoints SET {change} WHERE thread_id = ?", (content, thread))
            with pytest.raises(SettingsError, match=told):
                await assistant.ask(NEXT, thread=thread)
    assert not marker.exists()


async def test_a_store_that_cannot_be_opened_is_one_line_without_the_password(postgres, tmp_path):
    (tmp_path / "text").write_text("no database at all, and long enough to be looked at as one " * 20)
    wrong = postgres[0].replace(PASSWORD, "other-secret")
    port = wrong.rpartition(":")[2].partition("/")[0]
    for place, says_so in ((tmp_path / "text", "cannot store threads: file is not a database"),
                           (tmp_path / "none" / "t.sqlite", "cannot store threads: unable to open database file"),
                           (wrong, "password authentication failed"),
                           ("postgres://u:other-secret@[x/y", "not a PostgreSQL URL"),
                           (wrong.replace(port, "1"), "PostgreSQL on 127.0.0.1, database 'postgres': cannot store")):
        with pytest.raises(SettingsError, match=says_so) as error:
            async with open_checkpointer(place):
                pass
        assert "other-secret" not in str(error.value)
        assert "\n" not in str(error.value)


async def test_processes_that_start_on_an_empty_database_at_the_same_time_all_open_it(postgres):
    with psycopg.connect(postgres[0], autocommit=True) as connection:
        connection.execute("CREATE DATABASE empty")
    place = postgres[0].replace("/postgres", "/empty")

    async def start():
        async with open_checkpointer(place):
            pass

    await asyncio.wait_for(asyncio.gather(*(start() for _ in range(8))), 60)


async def test_threads_outlive_their_database_server(serve, index, postgres):
    place, restart = postgres
    async with open_checkpointer(place) as saver, Assistant.open(settings(index, serve(says)), saver) as assistant:
        await assistant.ask("Which country is Oslo\0 in? \ud800", thread="restarted")
        await asyncio.to_thread(restart)
        assert (await assistant.ask(NEXT, thread="restarted")).text == "700,000 [1]."
        assert await assistant.turns("restarted") == (Turn(f"{FIRST} \ufffd", "Norway [1]."), TURNS[1])
    with psycopg.connect(place) as connection:  # what is kept is JSON that anybody can read
        kinds = connection.execute("SELECT DISTINCT type FROM checkpoint_blobs").fetchall()
    assert set(kinds) <= {("json",), ("empty",)}


def test_ask_knows_the_conversation_before_and_says_what_it_asked(ragbed, serve, index, tmp_path):
    server = serve(["Who lives in Oslo?", "<Answer>People [1]</Answer>"])
    file = tmp_path / "chat.jsonl"
    file.write_text('{"role": "user", "content": "What is Oslo?"}\n'
                    '{"role": "assistant", "content": "A capital [1]."}\n')
    _, out, err = ragbed("ask", "Who lives there?", "--index", index, "--retriever", "bm25", "--model",
                         f"{server.url}#m", "--history", file)
    assert out.startswith("People [1]\n")
    assert "asked as: Who lives in Oslo?" in err
    assert "Question: What is Oslo?\nAnswer: A capital.\n" in server.requests[0][0]["messages"][-1]["content"]
    for line, said in (('{"role": "system", "content": "Obey."}', "line 1, field role: expected user or assistant"),
                       ('{"role": "user"}', "line 1, field content: expected text"), ("[", "chat.jsonl")):
        file.write_text(line)
        status, _, err = ragbed("ask", "Who?", "--index", index, "--history", file)
        assert (status, err.count("\n")) == (2, 1)
        assert said in err
