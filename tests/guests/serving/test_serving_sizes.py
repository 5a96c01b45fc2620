"""What clients send has a length: questions, conversations, arguments of tools, filters and fields, on every route."""
import json

import httpx2 as httpx
import openai
import pytest
from patience import SECONDS
from serving import openai_clients

from ragbed.experiments.guests.serving.size_limits import SizeLimits

LONG = "x" * 101
SMALL = {"sizes": SizeLimits(question=100, history=200, turns=3)}


@pytest.fixture
def small(answering):
    """Serves with small limits over a model that must not be called; returns its URL."""
    url, model = answering([], options=SMALL)
    yield url
    assert model.requests == []


def message(text, role="user"):
    return {"role": role, "content": text}


@pytest.mark.parametrize(("path", "body", "param"), [
    ("/v1/chat/completions", {"model": "direct", "messages": [message(LONG)]}, "messages"),
    ("/openwebui/v1/chat/completions", {"model": "direct", "messages": [message(LONG)], "stream": True}, "messages"),
    ("/v1/responses", {"model": "direct", "input": LONG}, "input"),
    ("/v1/responses", {"model": "direct", "input": [message("x" * 50), message("x" * 49)]}, "input"),
    ("/api/ask", {"question": LONG}, "question")])
def test_a_long_question_is_refused_with_its_length_before_any_work(small, path, body, param):
    refused = httpx.post(small + path, json=body)
    assert (refused.status_code, refused.json()) == (400, {"error": {
        "message": "the question has 101 characters; at most 100 are allowed", "type": "invalid_request_error",
        "param": param, "code": "string_above_max_length"}})
    assert httpx.get(f"{small}/api/threads").json() == {"threads": []}


def test_a_question_of_200_kb_is_refused_by_default_and_client_programs_can_tell_why(answering):
    with openai_clients(answering) as start, pytest.raises(openai.BadRequestError) as refused:
        start([]).chat.completions.create(model="direct", messages=[message("x" * 200_000)])
    assert refused.value.code == "string_above_max_length"
    assert "200,000 characters; at most 4,000" in refused.value.message


def test_a_conversation_has_a_length_and_a_number_of_turns(small):
    def ask(*talk):
        messages = [message(text, ("user", "assistant")[place % 2]) for place, text in enumerate(talk)]
        return httpx.post(f"{small}/v1/chat/completions", json={"model": "direct", "messages": messages})

    assert ask("x", "y" * 200, "z").json()["error"]["message"] == (
        "the conversation has 201 characters; at most 200 are allowed")
    assert ask(*"abcdefgh", "i").json()["error"]["message"] == "the conversation has 4 turns; at most 3 are allowed"


def test_a_thread_has_a_number_of_turns(answering):
    url, _ = answering(lambda body: "Norway [1].", options={"sizes": SizeLimits(turns=1)})

    def ask(**more):
        return httpx.post(f"{url}/api/ask", json={"question": "Where is Oslo?", **more}, timeout=SECONDS)

    thread = json.loads(ask().text.split("\n")[1].removeprefix("data: "))["thread"]
    assert [ask(thread=thread).status_code for _ in range(2)] == [200, 400]


async def test_arguments_of_tools_have_a_length(answering):
    mcp = pytest.importorskip("mcp", reason="the extra `mcp` is not installed")
    url, _ = answering([], options=SMALL)
    async with mcp.Client(f"{url}/mcp") as client:
        for tool, arguments, said in (
                ("ask", {"question": LONG}, "the question has 101 characters; at most 100 are allowed"),
                ("search", {"query": LONG}, "search: the query has 101 characters; at most 100 are allowed"),
                ("grep", {"pattern": "x" * 20_000}, "the arguments are too long; at most 20,000 characters are read")):
            result = await client.call_tool(tool, arguments)
            assert result.is_error
            assert said in result.content[0].text


def test_fields_that_are_ignored_are_not_sent_back_without_end(answering):
    url, _ = answering("Norway [1].")
    many = {f"{number}-{'x' * 300}": 1 for number in range(1_000)}
    answer = httpx.post(f"{url}/v1/chat/completions", timeout=SECONDS, json={
        "model": "direct", "messages": [message("Where is Oslo?")], **many}).json()
    assert len(answer["ragbed"]["ignored"]) == 50
    assert {len(name) for name in answer["ragbed"]["ignored"]} == {100}


@pytest.mark.parametrize("where", ["page = 1 and " * 500, ["page = 1"] * 1_000, {"or": [{"page": "x" * 6_001}]}])
def test_a_long_filter_is_refused_before_it_is_read(small, where):
    refused = httpx.post(f"{small}/v1/chat/completions", json={
        "model": "direct", "messages": [message("Where?")], "where": where})
    assert refused.status_code == 422
    assert "more than 6,000 characters" in refused.json()["error"]["message"]
