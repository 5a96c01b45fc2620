"""Responses by OpenAI's own client: items, the events of a stream, and conversations that go on."""
import json
import threading

import httpx2 as httpx
import openai
import pytest
from openai.types.responses import ResponseOutputMessage, ResponseReasoningItem
from serving import openai_clients
from streamed import streamed

QUESTION = "Which country is Oslo the capital of?"
REPLY = "It is Norway [1]."
THOUGHT = "<Thinking>\nOslo, says 1.\n</Thinking>\n<Answer>\nNorway [1]\n</Answer>"


@pytest.fixture
def client(answering):
    """Serves over a scripted model; returns OpenAI's client of it, which refuses events that lack a field."""
    with openai_clients(answering, _strict_response_validation=True) as start:
        yield start


def ask(client, given=QUESTION, **options):
    return client.responses.create(model="direct", input=given, **options)


def test_a_response_is_one_message_with_its_sources(client):
    answer = ask(client(REPLY), instructions="Be brief.", temperature=0.5)
    (message,) = answer.output
    assert isinstance(message, ResponseOutputMessage)
    assert answer.output_text == REPLY
    (cited,) = message.content[0].annotations
    assert (cited.type, cited.start_index, cited.end_index, cited.title) == ("url_citation", 13, 16, "oslo.txt")
    assert "/documents/" in cited.url
    assert (answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.total_tokens) == (700, 12, 712)
    assert answer.model_extra["ragbed"]["outcome"] == "answered"
    assert answer.model_extra["ragbed"]["ignored"] == ["instructions", "temperature"]


def test_a_stream_tells_every_event_in_order(client):
    line, received = streamed(REPLY, 9), threading.Event()
    line["pieces"].insert(2, received)  # the second half of the text waits until the first has arrived
    events = []
    for event in ask(client(line), stream=True):
        events.append(event)
        if event.type == "response.output_text.delta":
            received.set()
    assert [event.type for event in events] == [
        "response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
        "response.output_text.delta", "response.output_text.delta", "response.output_text.annotation.added",
        "response.output_text.done", "response.content_part.done", "response.output_item.done", "response.completed"]
    assert [event.sequence_number for event in events] == list(range(11))
    assert len({event.item_id for event in events if hasattr(event, "item_id")}) == 1
    assert events[4].delta + events[5].delta == events[7].text == REPLY
    assert events[6].annotation.start_index == 13
    last = events[-1].response
    assert (last.status, last.output_text, last.usage.total_tokens) == ("completed", REPLY, 712)
    assert last.output == [events[-2].item]
    assert last.id == events[0].response.id


def test_openai_puts_the_events_of_a_stream_together(client):
    with client(streamed(REPLY)).responses.stream(model="direct", input=QUESTION) as stream:
        answer = stream.get_final_response()
    assert answer.output_text == REPLY
    assert answer.output[0].content[0].annotations[0].title == "oslo.txt"


def test_reasoning_comes_as_a_summary_where_that_is_asked_for(client):
    started = client(THOUGHT, streamed(THOUGHT, 5), streamed(THOUGHT, 5), reasoning="chain_of_thought")
    whole = ask(started, reasoning={"summary": "auto"})
    assert [type(item) for item in whole.output] == [ResponseReasoningItem, ResponseOutputMessage]
    assert whole.output[0].summary[0].text == "Oslo, says 1."
    events = list(ask(started, reasoning={"summary": "auto"}, stream=True))
    assert "".join(event.delta for event in events if event.type.endswith("summary_text.delta")) == "Oslo, says 1."
    assert [(event.output_index, event.item.type) for event in events if event.type.endswith("item.done")] == [
        (0, "reasoning"), (1, "message")]
    assert [item.type for item in events[-1].response.output] == ["reasoning", "message"]
    plain = list(ask(started, stream=True))
    assert [item.type for item in plain[-1].response.output] == ["message"]


def test_a_response_goes_on_from_any_earlier_one(client):
    started = client("It is a city [1].", "Which country is Oslo the capital of?", REPLY,
                     "Which country is Oslo the capital of?", REPLY, history="rewrite")
    first = ask(started, "Tell me of Oslo.")
    second = ask(started, "And of which country is it the capital?", previous_response_id=first.id)
    assert second.previous_response_id == first.id
    rewriting = started.model_server.requests[1][0]["messages"][-1]["content"]
    assert "Tell me of Oslo." in rewriting
    assert "It is a city" in rewriting
    message = first.output[0]  # a client that names what was said, in the place of saying it again
    third = ask(started, [{"role": "user", "content": "Tell me of Oslo."},
                          {"type": "item_reference", "id": message.id},
                          {"role": "user", "content": "And of which country is it the capital?"}])
    assert third.output_text == REPLY
    assert started.model_server.requests[3][0] == started.model_server.requests[1][0]


def test_a_conversation_that_is_not_kept_is_refused(client):
    started = client({"status": 400, "error": {"message": "no such model"}})
    with pytest.raises(openai.NotFoundError, match="no answer has the id 'resp_x'"):
        ask(started, previous_response_id="resp_x")
    failed = list(ask(started, stream=True))
    with pytest.raises(openai.NotFoundError, match="no answer has the id"):
        ask(started, previous_response_id=failed[-1].response.id)
    with pytest.raises(openai.UnprocessableEntityError, match="conversation"):
        ask(started, conversation="conv_1")


def test_messages_are_items_and_what_is_none_is_named(client):
    answer = ask(client(REPLY), [
        {"role": "developer", "content": "Be brief."}, {"type": "reasoning", "id": "rs_1", "summary": []},
        {"role": "user", "content": [{"type": "input_text", "text": "Hello."}]},
        {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
         "content": [{"type": "output_text", "text": "Hi.", "annotations": []}]},
        {"role": "user", "content": QUESTION}])
    assert answer.output_text == REPLY
    assert answer.model_extra["ragbed"]["ignored"] == ["developer message", "reasoning item"]


@pytest.mark.parametrize("item", [{"type": "\ud800"},
                                  {"type": "item_reference", "id": "msg_\ud800"}, {"type": "x" * 51},
                                  {"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}])
def test_items_that_nobody_can_read_are_refused(client, item):
    body = json.dumps({"model": "direct", "input": [item, {"role": "user", "content": QUESTION}]})
    refused = httpx.post(f"{client().base_url}responses", content=body, headers={"Content-Type": "application/json"})
    assert refused.status_code in (400, 422)
    assert refused.json()["error"]["type"] == "invalid_request_error"


def test_a_list_of_sources_is_a_part_of_the_text(client):
    events = list(ask(client(streamed(REPLY)), extra_body={"citations": "both"}, stream=True))
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text.startswith(f"{REPLY}\n\nSources:\n- [1] [oslo.txt](<http://127.0.0.1:")
    assert events[-1].response.output_text == text


def test_a_failed_model_ends_the_stream_as_failed(client):
    started = client(*[{"status": 400, "error": {"message": "no such model"}}] * 2)
    failed = list(ask(started, stream=True))
    assert failed[-1].type == "response.failed"
    assert (failed[-1].response.status, failed[-1].response.error.code) == ("failed", "server_error")
    assert "failed (http_400)" in failed[-1].response.error.message
    with pytest.raises(openai.InternalServerError, match="the model or the search failed"):
        ask(started)
