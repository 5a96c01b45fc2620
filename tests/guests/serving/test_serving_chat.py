"""Chat completions by OpenAI's own client: the answer, its citations, its stream, and what is ignored or refused."""
import json
import threading

import httpx2 as httpx
import openai
import pytest
from serving import direct, openai_clients, served
from streamed import streamed

from ragbed.experiments.guests.serving.size_limits import SizeLimits

QUESTION = "Which country is Oslo the capital of?"
REPLY = "It is Norway [1]."
TASK = "### Task:\nWrite a title for this chat."


@pytest.fixture
def chat(answering):
    """Serves over a scripted model; returns OpenAI's client of it."""
    with openai_clients(answering) as start:
        yield start


def ask(client, *talk, **options):
    messages = [{"role": "user" if place % 2 == 0 else "assistant", "content": text}
                for place, text in enumerate(talk or [QUESTION])]
    return client.chat.completions.create(model="direct", messages=messages, **options)


def test_an_answer_names_its_sources_where_its_marks_stand(chat):
    answer = ask(chat(REPLY), temperature=0.7)
    message = answer.choices[0].message
    assert message.content == REPLY
    (cited,) = message.annotations
    assert cited.type == "url_citation"
    said = cited.url_citation
    assert (said.start_index, said.end_index, REPLY[13:16]) == (13, 16, "[1]")
    assert said.title == "oslo.txt"
    assert said.url.startswith(str(answer.model_extra["ragbed"] and "http://127.0.0.1:"))
    assert "/documents/" in said.url
    extra = answer.model_extra["ragbed"]
    assert (extra["outcome"], extra["ignored"], extra["strategy"]) == ("answered", ["temperature"], "direct")
    assert [source["name"] for source in extra["evidence"] if source["cited"]] == ["oslo.txt"]
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (700, 12, 712)


def test_a_stream_brings_the_text_as_it_comes_then_citations_and_usage(chat):
    line, received = streamed(REPLY, 5), threading.Event()
    line["pieces"].insert(2, received)  # the rest of the text waits until its first piece has arrived
    chunks = []
    for chunk in ask(chat(line), stream=True, stream_options={"include_usage": True}):
        chunks.append(chunk)
        if chunk.choices and chunk.choices[0].delta.content:
            received.set()
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    first, *rest = [delta.content for delta in deltas if delta.content]
    assert (first, "".join(rest)) == (REPLY[:5], REPLY[5:])
    annotated = [delta.model_extra["annotations"] for delta in deltas if "annotations" in (delta.model_extra or {})]
    assert [one["url_citation"]["start_index"] for one in annotated[0]] == [13]
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].choices == []
    assert chunks[-1].usage.total_tokens == 712


def test_tags_and_thinking_never_reach_the_client(chat):
    said = "<Thinking>\nOslo, says 1.\n</Thinking>\n<Answer>\nNorway [1]\n</Answer>"
    client = chat(streamed(said, 3), streamed(said, 3), reasoning="chain_of_thought")
    texts = [chunk.choices[0].delta.content or "" for chunk in ask(client, stream=True)]
    assert "".join(texts) == "Norway [1]"
    thought = [(chunk.choices[0].delta.model_extra or {}).get("reasoning_content", "")
               for chunk in ask(client, stream=True, extra_body={"include_reasoning": True})]
    assert "".join(thought).strip() == "Oslo, says 1."


def test_fields_are_streamed_as_the_text_of_the_answer_and_their_citations_are_marked(chat):
    said = json.dumps({"reasoning": "by 1", "refused": False, "answer": "Norway", "citations": [1]})
    client = chat(streamed(said, 4), reasoning="chain_of_thought", answer_format="json")
    chunks = list(ask(client, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Norway [1]"


@pytest.mark.parametrize(("where", "names"), [
    ("source = rome*", ["rome.txt"]), ({"source": {"in": ["rome.txt", "paris.txt"]}}, ["rome.txt"]),
    ("source = oslo.txt or source = rome.txt", ["oslo.txt", "rome.txt"]), ("source = paris*", []),
    ([], ["oslo.txt", "rome.txt"])])
def test_a_request_can_restrict_what_is_searched(chat, where, names):
    answer = ask(chat(REPLY), "Which country is Oslo the capital of?", extra_body={"where": where})
    extra = answer.model_extra["ragbed"]
    assert [source["name"] for source in extra["evidence"]] == names
    assert extra["ignored"] == []


@pytest.mark.parametrize(("where", "status", "complaint"), [
    ("sorce = x", 400, "unknown field 'sorce'; did you mean 'source'?"), ("source", 422, "expected a condition"),
    ({"source": {"in": [f"{one}.txt" for one in range(201)]}}, 422, "more than 200 conditions"),
    ("(" * 5_000, 422, "more than 16 levels"), ("a" * 200_000, 422, "more than 6,000 characters")])
def test_a_filter_that_cannot_be_used_is_refused_in_one_line(chat, where, status, complaint):
    with pytest.raises(openai.APIStatusError, match=complaint) as refused:
        ask(chat(), extra_body={"where": where})
    assert refused.value.status_code == status
    assert "\n" not in refused.value.body["message"]


def test_a_refusal_is_text_and_an_outcome(chat):
    from ragbed.strategies import REFUSAL

    answer = ask(chat(REFUSAL))
    assert answer.choices[0].message.content == REFUSAL
    assert answer.choices[0].message.refusal is None
    assert answer.model_extra["ragbed"]["outcome"] == "refused"


def test_earlier_turns_are_the_history_of_the_question(chat):
    client = chat("Which country is Oslo the capital of?", REPLY, history="rewrite")
    ask(client, "Tell me of Oslo.", "It is a city [1].", "And of which country is it the capital?")
    first, second = (body["messages"][-1]["content"] for body, _ in client.model_server.requests)
    assert "Tell me of Oslo." in first
    assert "Which country is Oslo the capital of?" in second


def test_a_list_of_sources_stands_below_the_text_where_it_is_asked_for(chat):
    answer = ask(chat(REPLY), extra_body={"citations": "markdown"})
    text = answer.choices[0].message.content
    assert text.startswith(f"{REPLY}\n\nSources:\n- [1] [oslo.txt](<http://127.0.0.1:")
    assert not answer.choices[0].message.annotations


def test_a_list_of_sources_that_comes_back_is_no_part_of_the_conversation(chat):
    client = chat(REPLY, QUESTION, REPLY, history="rewrite", options={"citations": "both"})
    said = ask(client).choices[0].message.content
    assert "Sources:" in said
    ask(client, QUESTION, said, "And of which is Rome?")
    rewriting = client.model_server.requests[1][0]["messages"][-1]["content"]
    assert "Answer: It is Norway.\n</conversation>" in rewriting


def test_what_a_client_asks_for_itself_costs_no_search_and_has_usage_figures_and_a_record_of_its_own(chat, tmp_path):
    client = chat("Capitals", "Capitals")
    answer = ask(client, TASK)
    assert (answer.choices[0].message.content, answer.model, answer.usage.total_tokens) == ("Capitals", "direct", 712)
    *_, last = ask(client, TASK, stream=True, stream_options={"include_usage": True})
    assert last.usage.total_tokens == 712
    body = client.model_server.requests[0][0]
    assert (body["messages"], body["max_tokens"]) == ([{"role": "user", "content": TASK}], 256)
    (run,) = (tmp_path / "traffic").glob("*-direct-*")
    assert run.name.startswith("task-direct-")
    assert not [*(tmp_path / "traffic").glob("direct-*")]
    figures = httpx.get(f"{str(client.base_url).removesuffix('/v1/')}/metrics").text
    assert 'ragbed_answers_total{configuration="task:direct",outcome="answered"} 2.0' in figures
    assert 'ragbed_tokens_total{configuration="task:direct",kind="completion"} 24.0' in figures


@pytest.mark.parametrize(("most", "status", "said"), [
    (20, 400, "the prompt has 38 characters; at most 20 are allowed"), (0, 403, "does not answer prompts of client")])
def test_what_a_client_asks_for_itself_has_a_length_and_can_be_refused(chat, most, status, said):
    with pytest.raises(openai.APIStatusError, match=said) as refused:
        ask(chat([], options={"sizes": SizeLimits(task=most)}), TASK)
    assert refused.value.status_code == status


def test_what_a_client_asks_for_itself_and_fails_is_an_error(chat):
    client = chat({"status": 400, "error": {"message": "no such model"}})
    with pytest.raises(openai.InternalServerError, match="the model or the search failed"):
        ask(client, TASK)


def test_models_are_configurations(chat):
    client = chat()
    (model,) = client.models.list().data
    assert model.id == "direct"
    assert "Not measured" in model.model_extra["description"]
    with pytest.raises(openai.NotFoundError, match="no configuration 'gpt-5'"):
        client.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": "?"}])


@pytest.mark.parametrize(("messages", "said"), [
    ([{"role": "assistant", "content": "x"}], "the last message must be the user's"),
    ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}], "send text only"),
    ([{"role": "user", "content": "  "}], "the question is empty"),
    ([], "messages"),
])
def test_what_cannot_be_asked_is_refused_in_a_line(chat, messages, said):
    with pytest.raises(openai.APIStatusError, match=said) as refused:
        chat().chat.completions.create(model="direct", messages=messages)
    assert refused.value.status_code in (400, 422)


def test_a_failed_model_is_an_error_and_a_record(chat):
    client = chat({"status": 400, "error": {"message": "no such model"}}, {"status": 400, "error": {"message": "no"}})
    with pytest.raises(openai.InternalServerError, match="the model or the search failed"):
        ask(client)
    told = []
    with pytest.raises(openai.APIError, match="No answer"):
        told.extend(chunk.choices[0].delta.content for chunk in ask(client, stream=True))
    assert not any(told)


def test_every_chunk_has_choices(chat):
    client = chat(streamed(REPLY))
    with httpx.Client() as plain:
        body = {"model": "direct", "messages": [{"role": "user", "content": QUESTION}], "stream": True}
        text = plain.post(f"{client.base_url}chat/completions", json=body).text
    frames = [line.removeprefix("data: ") for line in text.splitlines() if line]
    assert frames[-1] == "[DONE]"
    assert all("choices" in json.loads(frame) for frame in frames[:-1])


def test_a_share_of_threads_is_answered_by_another_configuration_and_stays_with_it(serve, capitals, tmp_path):
    model = serve(lambda body: "Norway [1].")
    described = [direct(capitals, f"{model.url}#m"), direct(capitals, f"{model.url}#m", "chain", rules="open")]
    with served(described, tmp_path / "traffic", explore=0.5) as url, httpx.Client(base_url=f"{url}/v1/") as client:
        assert [one["id"] for one in client.get("models").json()["data"]] == ["direct", "chain", "live"]

        def given(*talk):
            messages = [{"role": "user" if place % 2 == 0 else "assistant", "content": text}
                        for place, text in enumerate(talk)]
            return client.post("chat/completions", json={"model": "live", "messages": messages}).json()["model"]

        first = {question: given(question) for question in (f"What of Oslo in {year}?" for year in range(1990, 2010))}
        assert set(first.values()) == {"direct", "chain"}
        assert {question: given(question, "It grew.", "And then?") for question in first} == first


def test_what_has_no_form_in_utf8_is_replaced_in_whole_answers_and_streams_alike(chat):
    said = "Norway \ud83d [1]."
    client = chat({"message": {"role": "assistant", "content": said}}, streamed(said, 4))
    shown = "Norway � [1]."
    body = '{"model": "direct", "messages": [{"role": "user", "content": "Oslo \\udc00?"}]}'
    answer = httpx.post(f"{client.base_url}chat/completions", content=body,
                        headers={"content-type": "application/json"})
    assert answer.json()["choices"][0]["message"]["content"] == shown
    assert "".join(chunk.choices[0].delta.content or "" for chunk in ask(client, stream=True)) == shown
