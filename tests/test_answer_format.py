"""Answer formats: the same strategies asked for tags, or for a JSON object under a schema."""
import json

import pytest

from ragbed.agents import Scripted
from ragbed.strategies import CRESTS, REFUSAL, RETRIEVAL, Exemplar, Task
from ragbed.strategies.answering import answer_schema


def played(name, replies, **changes):
    """The calls of a strategy whose task asks for JSON, and its answer."""
    model = Scripted([*replies], ["Oslo is in Norway."])
    return model.calls, model.play(name, "Where is Oslo?", answer_format="json", **changes)


def fields(**said):
    return json.dumps(said)


@pytest.mark.parametrize("name", CRESTS)
def test_the_final_call_of_every_strategy_carries_the_schema_and_names_its_fields(name):
    replies = ["Where?", "In Norway."] if name == "least_to_most" else []
    said = fields(reasoning="It says so.", answer="Norway", citations=[1], refused=False)
    calls, answer = played(name, [*replies, said])
    assert [call.schema is None for call in calls] == [True] * len(replies) + [False]
    expected = ["refused", "answer", "citations"]
    assert calls[-1].schema["required"] == expected if name == "direct" else ["reasoning", *expected]
    last = calls[-1].messages[-1].content
    assert "Reply with one JSON object and nothing else." in last
    assert "<Answer>" not in last
    assert ("`reasoning`" in last) == (name != "direct")
    assert (answer.outcome, answer.text, answer.cited, answer.tagged) == ("answered", "Norway", (1,), True)


def test_what_the_schema_asks_for_follows_the_rules():
    def wanted(**changes):
        return answer_schema(Task("q", "?", RETRIEVAL["once"], **changes), thinks=False)["properties"]

    assert list(wanted(rules="open")) == ["answer", "citations"]
    assert list(wanted(rules="reading")) == ["answer"]
    assert list(wanted(rules="grounded", separators=False)) == ["refused", "answer"]
    assert list(wanted(rules="closed-book")) == ["answer"]
    options = (("A", "Norway"), ("B", "Sweden"))
    assert wanted(rules="choice", options=options) == {"answer": {"type": "string", "enum": ["A", "B"]}}


def test_fields_say_that_it_refuses_and_brackets_in_the_answer_count_beside_the_list_of_citations():
    assert played("direct", [fields(answer="", citations=[], refused=True)])[1].text == REFUSAL
    refused = played("direct", [fields(answer="Nothing on it.", citations=[], refused=True)])[1]
    assert (refused.outcome, refused.text) == ("refused", "Nothing on it.")
    cited = played("direct", [fields(answer="Norway [1] [7]", citations=[1, "2", True], refused=False)])[1]
    assert (cited.cited, cited.invalid_citations) == ((1,), (2, 7))


@pytest.mark.parametrize("text", ["Norway [1]", "", '{"answer": 7}', '["Norway"]', '{"answer": "Nor'])
def test_a_reply_that_is_no_such_object_is_malformed(text):
    answer = played("direct", [text])[1]
    assert answer.outcome == "malformed"
    assert not answer.tagged


def test_worked_examples_are_shown_as_such_objects():
    example = Exemplar("Where is Rome?", "Italy [1]", ("Rome is in Italy.",), "The text says so.")
    calls, _ = played("chain_of_thought", [fields(answer="Norway")], exemplars=(example,))
    assert ('{"reasoning": "The text says so.", "refused": false, "answer": "Italy [1]", "citations": [1]}'
            in calls[0].messages[1].content)


def test_both_formats_in_one_run_are_cells_beside_each_other_and_their_form_is_counted(ragbed, serve, town):
    def reply(body):
        return json.dumps({"answer": "111 people", "citations": [1], "refused": False}) if "response_format" in body \
            else "111 people [1]"

    server = serve(reply)
    path = town.config(server.url, reasoning=["direct", "chain_of_thought"], conditions="provided",
                       answer_formats=["tags", "json"])
    rows = {(row["reasoning"], row["answer_format"]): row for row in ragbed.json("run", path)["cells"]}
    assert list(rows) == [("direct", "tags"), ("chain_of_thought", "tags"), ("direct", "json"),
                          ("chain_of_thought", "json")]
    assert {key: row["metrics"]["tagged"]["mean"] for key, row in rows.items()} == {
        ("direct", "tags"): None, ("chain_of_thought", "tags"): 0.0, ("direct", "json"): 1.0,
        ("chain_of_thought", "json"): 1.0}
    formats = [body["response_format"]["json_schema"]["strict"] for body, _ in server.requests
               if "response_format" in body]
    assert formats == [True] * 12
    assert ragbed("run", path, "--journal", "replay")[0] == 0


def test_sub_answers_in_one_reply_and_json_are_refused_together(ragbed, town):
    path = town.config("http://127.0.0.1:9/v1", answer_formats=["tags", "json"], sub_answers="in_prompt")
    ragbed.refuses("run", path, says=["sub_answers: in_prompt", "set sub_answers: asked or answer_formats: tags"])
