"""Parameters that cannot be served are refused, and answers take the form of a schema, by real clients."""
import json

import openai
import pytest
from pydantic import BaseModel
from serving import openai_clients

from ragbed.experiments.guests.serving.client_parameters import AnswerSchema, read_format
from ragbed.strategies import REFUSAL

QUESTION = "Which country is Oslo the capital of?"
MESSAGES = [{"role": "user", "content": QUESTION}]
REPLY = "It is Norway [1]."
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
OBJECT = {"type": "object", "properties": {"country": {"type": "string"}}, "required": ["country"]}


class Capital(BaseModel):
    """What a client wants to know."""

    country: str
    marks: list[int]


@pytest.fixture
def chat(answering):
    with openai_clients(answering) as start:
        yield start


def asked(client, **options):
    return client.chat.completions.create(model="direct", messages=MESSAGES, **options)


@pytest.mark.parametrize(("param", "given", "said"), [
    ("tools", {"tools": [TOOL]}, "calls no tools of clients"),
    ("tool_choice", {"tool_choice": "required"}, "calls no tools of clients"),
    ("functions", {"functions": [TOOL["function"]]}, "calls no tools of clients"),
    ("n", {"n": 2}, "one answer"), ("logprobs", {"logprobs": True}, "no probabilities"),
    ("audio", {"audio": {"voice": "alloy", "format": "mp3"}}, "one text"),
    ("web_search_options", {"web_search_options": {}}, "its documents only"),
    ("response_format", {"response_format": {"type": "json_object"}}, "without a schema")])
def test_what_cannot_be_served_is_refused_with_its_name_and_a_reason(chat, param, given, said):
    with pytest.raises(openai.BadRequestError, match=said) as refused:
        asked(chat([]), **given)
    assert refused.value.param == param
    assert refused.value.code in ("unsupported_parameter", "unsupported_value")


@pytest.mark.parametrize(("param", "given"), [
    ("tools", {"tools": [{"type": "web_search"}]}), ("background", {"background": True}),
    ("text.format", {"text": {"format": {"type": "json_object"}}})])
def test_the_same_holds_for_responses(chat, param, given):
    with pytest.raises(openai.BadRequestError) as refused:
        chat([]).responses.create(model="direct", input=QUESTION, **given)
    assert refused.value.param == param


def test_what_changes_nothing_is_taken(chat):
    client = chat(lambda body: REPLY)
    for given in ({"tools": []}, {"tool_choice": "auto"}, {"n": 1}, {"tools": [TOOL], "tool_choice": "none"},
                  {"response_format": {"type": "text"}}, {"logprobs": False}):
        assert asked(client, **given).choices[0].message.content == REPLY
    listed = asked(client, response_format={"type": "text"}, extra_body={"citations": "both"})
    assert "Sources:" in listed.choices[0].message.content


@pytest.mark.parametrize(("schema", "said"), [
    ({"type": "array"}, '"type": "object"'), (OBJECT | {"required": "country"}, "not valid"),
    (OBJECT | {"$ref": "https://example.org/schema"}, "refer to the schema itself"),
    (OBJECT | {"properties": {"a": {"type": "string", "pattern": "(a+)+$"}}}, "the keyword pattern"),
    (OBJECT | {"description": "x" * 20_000}, "at most 20,000"),
    ({"type": "object", "properties": json.loads('{"a":{"properties":' * 40 + "{}" + "}}" * 40)}, "nested")])
def test_a_schema_that_cannot_be_checked_is_refused(chat, schema, said):
    with pytest.raises(openai.BadRequestError, match=said):
        asked(chat([]), response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}})


def test_a_field_may_have_the_name_of_a_keyword():
    schema = {"type": "object", "properties": {"pattern": {"enum": [{"$ref": "x"}, "y"]}}}
    wanted = read_format({"type": "json_schema", "json_schema": {"schema": schema}}, "response_format")
    assert (wanted.complaint({"pattern": "y"}), wanted.complaint({"pattern": "z"})[:16]) == ("", "pattern: 'z' is ")


def test_a_schema_that_refers_to_itself_without_end_is_checked_in_a_moment():
    doubled = {f"d{place}": {"allOf": [{"$ref": f"#/$defs/d{place + 1}"}] * 2} for place in range(40)}
    for schema in ({"$defs": {**doubled, "d40": {}}, "$ref": "#/$defs/d0"}, {"allOf": [{"$ref": "#"}]}):
        assert AnswerSchema(schema).complaint({}) == "the schema refers to itself too often"


def test_the_answer_is_an_object_of_the_clients_class_and_keeps_its_sources(chat, tmp_path):
    client = chat(REPLY, '{"country": "Norway [1]", "marks": [1]}')
    answer = client.chat.completions.parse(model="direct", messages=MESSAGES, response_format=Capital)
    assert answer.choices[0].message.parsed == Capital(country="Norway [1]", marks=[1])
    assert answer.usage.total_tokens == 2 * 712
    ragbed = answer.model_extra["ragbed"]
    assert (ragbed["plain"], [one["name"] for one in ragbed["evidence"] if one["cited"]]) == (REPLY, ["oslo.txt"])
    body = client.model_server.requests[1][0]
    assert body["response_format"]["json_schema"]["schema"]["required"] == ["country", "marks"]
    assert f"<answer>\n{REPLY}\n</answer>" in body["messages"][0]["content"]
    assert [*(tmp_path / "traffic").glob("task-direct-*")]


def test_a_stream_and_a_response_have_the_same_object(chat):
    client = chat(*[REPLY, '{"country": "Norway", "marks": []}'] * 3)
    with client.chat.completions.stream(model="direct", messages=MESSAGES, response_format=Capital) as stream:
        streamed = stream.get_final_completion().choices[0].message.parsed
    response = client.responses.parse(model="direct", input=QUESTION, text_format=Capital)
    with client.responses.stream(model="direct", input=QUESTION, text_format=Capital) as stream:
        of_stream = stream.get_final_response().output_parsed
    assert streamed == response.output_parsed == of_stream == Capital(country="Norway", marks=[])


def test_an_object_that_does_not_fit_is_repaired_once_and_then_an_error(chat):
    client = chat(REPLY, "Norway", '{"country": "Norway", "marks": []}', REPLY, "no", '{"country": 7}')
    answer = client.chat.completions.parse(model="direct", messages=MESSAGES, response_format=Capital)
    assert answer.choices[0].message.parsed.country == "Norway"
    assert "An earlier reply did not fit: the object" in client.model_server.requests[2][0]["messages"][0]["content"]
    with pytest.raises(openai.InternalServerError, match="could not write it as JSON that fits the schema"):
        client.chat.completions.parse(model="direct", messages=MESSAGES, response_format=Capital)


def test_a_server_that_refuses_schemas_is_asked_in_words(chat):
    client = chat(lambda body: REPLY if "<schema>" not in body["messages"][-1]["content"] else (
        {"status": 400, "error": {"message": "invalid schema"}} if "response_format" in body
        else '{"country": "Norway", "marks": []}'))
    answer = client.chat.completions.parse(model="direct", messages=MESSAGES, response_format=Capital)
    assert answer.choices[0].message.parsed.country == "Norway"


def test_a_refusal_has_no_object_and_says_so_in_every_form(chat):
    client = chat(lambda body: REFUSAL)
    answer = client.chat.completions.parse(model="direct", messages=MESSAGES, response_format=Capital)
    message = answer.choices[0].message
    assert (message.refusal, message.parsed, message.content) == (REFUSAL, None, None)
    with client.chat.completions.stream(model="direct", messages=MESSAGES, response_format=Capital) as stream:
        assert stream.get_final_completion().choices[0].message.refusal == REFUSAL
    response = client.responses.parse(model="direct", input=QUESTION, text_format=Capital)
    assert response.output[-1].content[0].refusal == REFUSAL
    with client.responses.stream(model="direct", input=QUESTION, text_format=Capital) as stream:
        events = [event.type for event in stream]
    assert [kind for kind in events if "refusal" in kind] == ["response.refusal.delta", "response.refusal.done"]
