"""A served agent: its calls of tools through chat completions, responses, Open WebUI's route and the page's events."""
import json

import httpx2 as httpx
import pytest
from openai.types.responses import ResponseOutputMessage
from openai.types.responses.response_output_item import McpCall
from patience import SECONDS
from serving import answering, index_of, openai_clients
from streamed import as_asked, delta, ending, streamed

from ragbed.experiments.guests.serving.answer_json import call_json

QUESTION = "Which country is Oslo the capital of?"
FOUND = "1 matching line in oslo.txt (1).\noslo.txt, line 1:\n[1]"
LISTED = "2 documents.\n- oslo.txt: 49 characters\n- rome.txt: 29 characters"
AGENT = {"kind": "agent", "tools": ["list", "grep"], "protocol": "text"}
PAGES = {"oslo.txt": "Oslo is the capital of Norway.\nIt lies on a fjord", "rome.txt": "Rome is the capital of Italy."}


def says(*turns):
    """A model that says these lines in order, whatever it is asked."""
    left = list(turns)
    return as_asked(lambda body: left.pop(0))


def plays():
    return says('Thought: look\ngrep: {"pattern": "Oslo is"}\nlist', "grep: (", "Thought: enough\nfinish",
                "<Answer>Norway [1]</Answer>")


@pytest.fixture
def agent(serve, tmp_path):
    """Serves an agent over two pages."""
    with answering(serve, index_of(tmp_path, PAGES), tmp_path) as start:
        yield lambda script, **changes: start(script, **{"reasoning": AGENT, **changes})


def page_events(url):
    reply = httpx.post(f"{url}/api/ask", json={"question": QUESTION}, timeout=SECONDS)
    return [json.loads(line[6:]) for line in reply.text.split("\n") if line.startswith("data: ")]


def test_the_page_is_sent_each_call_with_what_it_found(agent):
    url, _ = agent(plays())
    events = page_events(url)
    steps = [one for one in events if one["event"] in ("calling", "tool")]
    assert [(one["event"], one["tool"]) for one in steps] == [
        ("calling", "grep"), ("calling", "list"), ("tool", "grep"), ("tool", "list"), ("calling", "grep"),
        ("tool", "grep")]
    assert [json.loads(one["arguments"]) for one in steps[:2]] == [{"pattern": "Oslo is"}, {}]
    found, listed, failed = steps[2], steps[3], steps[5]
    assert (found["text"], found["found"], found["failure"]) == (FOUND, [1], None)
    (passage,) = found["passages"]
    assert (passage["title"], passage["text"]) == ("oslo.txt", "Oslo is the capital of Norway.")
    assert (listed["text"], listed["found"], listed["passages"]) == (LISTED, [], [])
    assert failed["failure"].startswith("grep: argument pattern: ")
    assert [one["kind"] for one in events[-1]["steps"] if one["kind"] == "tool"] == ["tool"] * 3
    shown = httpx.get(f"{url}{passage['url']}")
    assert "Oslo is the capital of Norway.</mark>" in shown.text
    for place in ("plain:40-9000", "html:900-20", "plain:0-0"):
        assert httpx.get(f"{url}/documents/{passage['document']}?chunk={place}").status_code == 200


def test_chat_completions_tell_of_calls_in_the_field_ragbed(serve, tmp_path):
    with answering(serve, index_of(tmp_path, PAGES), tmp_path) as start, openai_clients(start) as client:
        chat = client(plays(), reasoning=AGENT).chat.completions
        chunks = list(chat.create(model="direct", messages=[{"role": "user", "content": QUESTION}], stream=True))
    told = [chunk.model_extra["ragbed"] for chunk in chunks if "ragbed" in chunk.model_extra]
    steps = [one["step"] for one in told[:-1]]
    assert [(one["event"], one["tool"]) for one in steps][:3] == [
        ("calling", "grep"), ("calling", "list"), ("tool", "grep")]
    assert [one["name"] for one in steps[2]["passages"]] == ["oslo.txt"]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Norway [1]"
    assert [(one["tool"], one["found"]) for one in told[-1]["tools"]] == [("grep", [1]), ("list", []), ("grep", [])]


def test_open_webui_is_told_of_calls_as_statuses(agent):
    url, _ = agent(plays())
    asked = {"model": "direct", "stream": True, "messages": [{"role": "user", "content": QUESTION}]}
    lines = httpx.post(f"{url}/openwebui/v1/chat/completions", json=asked, timeout=SECONDS).text.split("\n")
    events = [json.loads(line[6:]).get("event") for line in lines if line.startswith("data: {")]
    said = [(one["data"]["description"], one["data"]["done"]) for one in events if one and one["type"] == "status"]
    assert said[:4] == [('grep {"pattern": "Oslo is"}', False), ("list {}", False),
                        ('grep {"pattern": "Oslo is"}: 79 characters', True), ("list {}: 64 characters", True)]


def test_responses_have_calls_as_items_of_an_mcp_server(serve, tmp_path):
    with answering(serve, index_of(tmp_path, PAGES), tmp_path) as start, \
            openai_clients(start, _strict_response_validation=True) as client:
        turns = ('grep: {"pattern": "Oslo is"}\nlist', "grep: (", "finish", "<Answer>Norway [1]</Answer>")
        one = client(says(*turns, *turns), reasoning=AGENT)
        whole = one.responses.create(model="direct", input=QUESTION)
        events = list(one.responses.create(model="direct", input=QUESTION, stream=True))
    assert [type(item) for item in whole.output] == [McpCall, McpCall, McpCall, ResponseOutputMessage]
    first, listed, failed, _ = whole.output
    assert (first.name, first.arguments, first.output) == ("grep", '{"pattern": "Oslo is"}', FOUND)
    assert (listed.output, failed.status, failed.output) == (LISTED, "failed", None)
    assert "argument pattern" in failed.error.content[0]["text"]
    told = [(event.type.removeprefix("response."), event.output_index) for event in events
            if "mcp" in event.type or "output_item" in event.type]
    begun = [("output_item.added", 0), ("mcp_call.in_progress", 0), ("mcp_call_arguments.done", 0)]
    assert told[:3] == begun
    assert told[6:10] == [("mcp_call.completed", 0), ("output_item.done", 0), ("mcp_call.completed", 1),
                          ("output_item.done", 1)]
    assert told[-4:] == [("mcp_call.failed", 2), ("output_item.done", 2), ("output_item.added", 3),
                         ("output_item.done", 3)]
    assert [item.type for item in events[-1].response.output] == ["mcp_call"] * 3 + ["message"]
    assert [item.output for item in events[-1].response.output[:2]] == [FOUND, LISTED]


def test_a_call_is_sent_as_json_of_bounded_length():
    assert call_json("grep\ud800" * 99, {"pattern": "Осло \ud800"}) == {
        "tool": ("grep\ufffd" * 20), "arguments": '{"pattern": "Осло \ufffd"}'}
    cut = call_json("grep", {"pattern": "x" * 1_000_000})["arguments"]
    assert json.loads(cut) == {"cut": f'{{"pattern": "{"x" * 7_987}'}


def test_what_a_model_writes_cannot_break_the_stream(agent):
    written = {"pattern": f"\u0000<b>\u202e{'x' * 2_000}"}
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "grep", "arguments": json.dumps(written)}}
    turns = iter([{"pieces": [delta(role="assistant", tool_calls=[call]), *ending("tool_calls")]}, streamed("finish"),
                  streamed("<Answer>Norway</Answer>")])
    url, _ = agent(lambda body: next(turns), reasoning={**AGENT, "protocol": "native"})
    events = page_events(url)
    (called,) = (one for one in events if one["event"] == "calling")
    (ended,) = (one for one in events if one["event"] == "tool")
    assert json.loads(called["arguments"]) == written
    assert called["arguments"] == ended["arguments"]
    assert ended["failure"].startswith("grep: argument pattern: String should have at most 1000 characters")
    assert events[-1]["event"] == "answer"
