"""The graph as LangGraph's server opens it: what the environment says, and what a form for questions is made of."""
import json
from pathlib import Path

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from ragbed.agents import AssistantSettings
from ragbed.documents import SettingsError
from ragbed.experiments.guests.chat_graph.studio import open_graph, settings_of_environment
from ragbed.retrieval import build_index

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    """Only what a test says; the variables that are set."""
    for name in AssistantSettings.model_fields:
        monkeypatch.delenv(f"RAGBED_{name.upper()}", raising=False)

    def having(**given):
        for name, value in given.items():
            monkeypatch.setenv(f"RAGBED_{name.upper()}", str(value))

    return having


def test_every_setting_has_a_variable(environment):
    environment(index="idx", model="openai:gpt-4o-mini", reasoning="{kind: self_consistency, samples: 3}", k=7,
                retriever="{kind: fused, of: [bm25, dense]}", rules="open", framing="none", answer_format="json",
                where="[page >= 3]", limits="{calls: 9}", calls="{temperature: null}")
    settings = settings_of_environment()
    assert (settings.index, settings.model, settings.k) == (Path("idx"), "openai:gpt-4o-mini", 7)
    assert settings.reasoning == {"kind": "self_consistency", "samples": 3}
    assert (settings.rules, settings.framing, settings.answer_format) == ("open", "none", "json")
    assert (settings.retriever.kind, settings.where) == ("fused", ("page >= 3",))
    assert (settings.limits.calls, settings.calls.temperature) == (9, None)


@pytest.mark.parametrize(("given", "says"), [
    ({}, "set RAGBED_INDEX"), ({"rules": "strict"}, "RAGBED_RULES: Input should be"),
    ({"k": "many"}, "RAGBED_K: "), ({"retriever": "{kind: [}"}, "RAGBED_RETRIEVER: is not YAML"),
    ({"retriever": "nearest"}, "RAGBED_RETRIEVER: ")])
def test_a_variable_that_does_not_fit_is_named_in_one_line(environment, given, says):
    if given:
        environment(index="idx", **given)
    with pytest.raises(SettingsError, match=says) as caught:
        settings_of_environment()
    assert "\n" not in str(caught.value)


async def test_the_graph_that_the_server_opens_answers_and_can_be_looked_at(environment, serve, tmp_path):
    (tmp_path / "oslo.txt").write_text("Oslo is the capital of Norway.")
    build_index([tmp_path / "oslo.txt"], tmp_path / "index")
    environment(index=tmp_path / "index", model=f"{serve(['<Answer>Norway [1]</Answer>']).url}#m", retriever="bm25")
    async with open_graph() as graph:
        graph.checkpointer = InMemorySaver()  # as the server sets one
        config = {"configurable": {"thread_id": "t"}}
        events = [event async for event in graph.astream({"question": "Where is Oslo?"}, config, stream_mode="custom")]
        state = (await graph.aget_state(config)).values
    assert [event["event"] for event in events] == ["searching", "search", "asking", "token", "reply"]
    assert state["answer"]["text"] == "Norway [1]"
    assert state["made"]["retriever"]["kind"] == "bm25"
    assert [message.text for message in state.pop("messages")] == ["Where is Oslo?", "Norway [1]"]
    assert json.loads(json.dumps(state)) == state
    assert graph.get_input_jsonschema()["properties"]["question"] == {"title": "Question", "type": "string"}


def test_the_servers_settings_name_a_function_that_is_there():
    path, name = json.loads((ROOT / "langgraph.json").read_text())["graphs"]["assistant"].split(":")
    assert (ROOT / path).is_file()
    assert name == open_graph.__name__
