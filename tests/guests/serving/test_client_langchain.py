"""LangChain's ChatOpenAI: its answers keep their sources through both of OpenAI's APIs, whole and streamed."""
import pytest
from langchain_core.messages import AIMessageChunk
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

QUESTION = "Which country is Oslo the capital of?"
REPLY = "It is Norway [1]."


class Capital(BaseModel):
    """What a program wants to know."""

    country: str


@pytest.fixture
def chat(answering):
    """Serves over a model that answers; returns a ChatOpenAI with these options."""
    url, _ = answering(lambda body: '{"country": "Norway"}' if "<schema>" in body["messages"][-1]["content"] else REPLY)
    return lambda **options: ChatOpenAI(base_url=f"{url}/v1", api_key="none", model="direct", **options)


def streamed(model):
    return sum(model.stream(QUESTION), AIMessageChunk(""))


def test_through_responses_the_sources_are_annotations(chat):
    model = chat(use_responses_api=True)
    for message in (model.invoke(QUESTION), streamed(model)):
        assert message.text == REPLY
        (block,) = (one for one in message.content_blocks if one["type"] == "text")
        (cited,) = block["annotations"]
        assert (cited["type"], cited["title"], block["text"][cited["start_index"]:cited["end_index"]]) == (
            "citation", "oslo.txt", "[1]")
        assert "/documents/" in cited["url"]


def test_through_chat_completions_the_sources_are_a_list_in_the_text(chat):
    model = chat(extra_body={"citations": "markdown"})
    for message in (model.invoke(QUESTION), streamed(model)):
        assert message.text.startswith(f"{REPLY}\n\nSources:\n- [1] [oslo.txt](<http://127.0.0.1:")


@pytest.mark.parametrize("responses", [False, True])
def test_structured_output_is_an_object_of_the_class(chat, responses):
    model = chat(use_responses_api=responses).with_structured_output(Capital)
    assert model.invoke(QUESTION) == Capital(country="Norway")


def test_tools_are_refused_with_the_reason(chat):
    with pytest.raises(Exception, match="calls no tools of clients"):
        chat().bind_tools([Capital]).invoke(QUESTION)
