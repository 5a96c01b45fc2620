"""Who watches a question sees it as it happens: in Python as events, and on the command line."""
import json
import threading

import pytest
from streamed import as_asked, delta, ending, streamed

from ragbed.agents import Assistant, AssistantSettings
from ragbed.experiments.terminal.answer_display import EventPrinter
from ragbed.retrieval import build_index

QUESTION = "Which country is Oslo the capital of?"
ANSWER = "<Answer>Norway [1]</Answer>"


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    (folder / "oslo.txt").write_text("Oslo is the capital of Norway.")
    build_index([folder / "oslo.txt"], folder / "index")
    return folder / "index"


def settings(index, server, **changes):
    return AssistantSettings(**{"index": index, "model": f"{server.url}#m", "retriever": "bm25",
                                "reasoning": "direct", **changes})


async def events_of(index, server, **changes):
    async with Assistant.open(settings(index, server, **changes)) as assistant:
        return [event async for event in assistant.stream(QUESTION)]


async def test_a_question_is_told_of_from_its_first_search_to_its_answer(serve, index):
    events = await events_of(index, serve([streamed(ANSWER, 9)]))
    call = {"call": 1, "purpose": "answer"}
    assert events[:-1] == [
        {"event": "searching", "query": QUESTION},
        {"event": "search", "query": QUESTION, "found": [1], "failure": None},
        {"event": "asking", **call, "shown": [1], "answers": "plain"},
        *({"event": "token", **call, "text": ANSWER[at:at + 9]} for at in range(0, len(ANSWER), 9)),
        {"event": "reply", **call, "shown": [1], "text": ANSWER, "completion_tokens": 12, "failure": None}]
    assert (events[-1]["event"], events[-1]["text"]) == ("answer", "Norway [1]")
    assert json.loads(json.dumps(events)) == events


async def test_calls_that_are_made_together_are_told_of_in_turns_and_told_apart(serve, index):
    gates = [threading.Event() for _ in range(3)]
    seen, lock = [], threading.Lock()

    def script(body):
        with lock:
            seen.append(body)
            place = len(seen) - 1
        return {"pieces": [delta(content=f"<Answer>{place}"), gates[place], delta(content="</Answer>"), *ending()]}

    begun, told = set(), []
    async with Assistant.open(settings(index, serve(script), reasoning={"kind": "self_consistency",
                                                                        "samples": 3})) as assistant:
        async for event in assistant.stream(QUESTION):
            told.append(event)
            if event["event"] == "token" and event["call"] not in begun:
                begun.add(event["call"])
                if len(begun) == 3:  # all have begun, and none has ended
                    assert not any(one["event"] == "reply" for one in told)
                    for gate in gates:
                        gate.set()
    replies = {event["call"]: event["text"] for event in told if event["event"] == "reply"}
    assert set(replies) == {1, 2, 3}
    for call, text in replies.items():
        assert text == "".join(one["text"] for one in told if one["event"] == "token" and one["call"] == call)
    kinds = [event["event"] for event in told]
    assert kinds.index("decision") > max(place for place, kind in enumerate(kinds) if kind == "reply")
    assert kinds[-1] == "answer"


async def test_a_retry_voids_what_was_told_and_a_failed_call_says_why(serve, index, monkeypatch):
    monkeypatch.setattr("ragbed.documents.http._FIRST_DELAY", 0.01)
    events = await events_of(index, serve([{"pieces": [delta(content="Nor")], "cut": True}, streamed(ANSWER, 99)]))
    kinds = [event["event"] for event in events]
    assert kinds == ["searching", "search", "asking", "token", "retry", "token", "reply", "answer"]
    assert "no complete reply" in events[4]["why"]
    failed = await events_of(index, serve([{"status": 400, "error": {"message": "no"}}]))
    assert [event["event"] for event in failed] == ["searching", "search", "asking", "reply", "answer"]
    assert failed[3]["failure"] == failed[4]["failure"]
    assert "HTTP 400" in failed[3]["failure"]


async def test_a_reply_that_came_in_one_is_told_in_one_piece(serve, index):
    message = {"role": "assistant", "content": ANSWER, "reasoning_content": "Hm."}
    events = await events_of(index, serve([{"message": message}]))
    assert [(event["event"], event["text"]) for event in events[3:5]] == [("reasoning", "Hm."), ("token", ANSWER)]


async def test_nobody_is_streamed_to_who_only_asks(serve, index):
    server = serve([ANSWER])
    async with Assistant.open(settings(index, server)) as assistant:
        assert (await assistant.ask(QUESTION)).text == "Norway [1]"
    assert "stream" not in server.requests[0][0]


def asked(index, server, *more):
    return ["ask", QUESTION, "--index", index, "--model", f"{server.url}#m", "--retriever", "bm25", "--reasoning",
            "direct", *more]


def test_the_command_line_shows_replies_on_stdout_as_they_come_and_steps_on_stderr(ragbed, serve, index):
    server = serve(as_asked(lambda body: "<Answer>Nor\x1b[31mway [1]</Answer>\u202e"))
    status, out, err = ragbed(*asked(index, server, "--stream"))
    assert status == 0
    assert out == ("<Answer>Nor\\x1b[31mway [1]</Answer>\\x202e\n== answer\nNor\\x1b[31mway [1]\n  [1] oslo.txt\n")
    assert err.splitlines()[:3] == [f"-- searches for {QUESTION!r}", "-- found [1]",
                                    "-- call 1: answer, documents shown [1]"]


def test_with_json_each_event_is_a_line_and_the_answer_is_the_last(ragbed, serve, index):
    server = serve(as_asked(lambda body: "<Answer>Nor\x1bway [1]\u2028</Answer>"))
    status, out, err = ragbed(*asked(index, server, "--stream", "--json", "--trace"))
    lines = [json.loads(line) for line in out.splitlines()]
    assert (status, err, "\x1b" in out) == (0, "", False)
    assert [line["event"] for line in lines if line["event"] != "token"] == ["searching", "search", "asking", "reply",
                                                                            "answer"]
    tokens = "".join(line["text"] for line in lines if line["event"] == "token")
    assert tokens == "<Answer>Nor\x1bway [1]\u2028</Answer>"
    whole = json.loads(ragbed(*asked(index, server, "--json", "--trace"))[1])
    assert {**lines[-1], "seconds": 0} == {"event": "answer", **whole, "seconds": 0}


def test_calls_made_together_are_shown_one_after_the_other(capsys):
    watched = EventPrinter()

    def of(call, event, **more):
        watched({"event": event, "call": call, "purpose": "solve", "shown": [], "failure": None, **more})

    for call in (1, 2, 3):
        of(call, "asking")
    for call, text in ((2, "b1 "), (1, "a1 "), (3, "c1 "), (2, "b2\n"), (1, "a2"), (3, "c2")):
        of(call, "token", text=text)
    of(2, "reply")
    of(3, "retry", why="gone")
    of(1, "reply")
    of(3, "token", text="c3")
    of(3, "reply")
    watched({"event": "decision", "what": "votes", "why": "2 of 3"})
    out, err = capsys.readouterr()
    assert out == "a1 a2\nb1 b2\nc1 c2\nc3\n"
    assert err.splitlines() == [
        "-- call 1: solve, documents shown []", "-- call 2: solve, documents shown []",
        "-- call 3: solve, documents shown []", "-- call 3 is made again; ignore its output so far (gone)",
        "-- decides: votes (2 of 3)"]
