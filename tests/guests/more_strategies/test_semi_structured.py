"""semi_structured: found facts, general knowledge and steps under their labels, and a note where they are missing."""
import pytest
from gathering import Scene
from growth import grows_linearly

from ragbed.experiments.guests.more_strategies.reasoning.semi_structured import labels
from ragbed.strategies import Reply
from ragbed.strategies.settings.strategy_config import reasoning

SAID = ("<Thinking>Found: Jaws is by Spielberg [1]\nFound: nothing more\nStep: so Spielberg\n</Thinking>"
        "<Answer>Cincinnati [1]</Answer>")


def played(said=SAID, **changes):
    scene = Scene({"": "jaws"}, {"answer": [said]})
    answer = scene.play("once", reasoning("semi_structured"), **changes)
    return scene.prompts("answer")[0], answer


def test_one_call_asks_for_three_parts_and_its_answer_is_read_from_the_tags():
    prompt, answer = played()
    assert [prompt.count(f"\n{label}:") for label in ("Found", "Known", "Step")] == [1, 1, 1]
    assert (answer.text, answer.cited, answer.notes) == ("Cincinnati [1]", (1,), ())


@pytest.mark.parametrize(("said", "notes"), [
    ("<Answer>Cincinnati [1]</Answer>", ("unstructured",)), ("Found: x\n<Answer>y</Answer>", ("unstructured",)),
    ("- **Found:** x\n- **Step 1:** y\n<Answer>z</Answer>", ()), ("1\nfound： x\nStep: y\n<Answer>z</Answer>", ())])
def test_a_reply_without_the_parts_is_an_answer_with_a_note(said, notes):
    _, answer = played(said)
    assert (answer.outcome, answer.notes) == ("answered", notes)


def test_parts_are_found_in_a_field_too():
    fields = {"reasoning": "Found: x [1]\nStep: y", "answer": "Ohio", "citations": [1], "refused": False}
    said = Reply('{"reasoning": "Found: x [1]\\nStep: y", "answer": "Ohio", "citations": [1], "refused": false}',
                 parsed=fields)
    _, answer = played(said, answer_format="json")
    assert (answer.text, answer.cited, answer.notes) == ("Ohio", (1,), ())


@pytest.mark.parametrize(("changes", "known", "cites"), [
    ({}, "adds no fact", True), ({"rules": "open"}, "generally known", True),
    ({"rules": "reading"}, "adds no fact", False), ({"separators": False}, "adds no fact", False),
    ({"rules": "choice", "options": (("A", "x"),)}, "generally known", False)])
def test_knowledge_is_asked_for_where_the_rules_allow_it_and_numbers_where_documents_have_them(changes, known, cites):
    prompt, _ = played(**changes)
    assert known in prompt
    assert ("with the number of its document" in prompt) is cites


def test_without_documents_it_begins_with_what_is_known():
    prompt, answer = played("Known: x\nStep: y\n<Answer>Ohio</Answer>", rules="closed-book")
    assert "Found:" not in prompt
    assert "document" not in prompt.partition("Known:")[2]
    assert (answer.text, answer.notes) == ("Ohio", ())


@pytest.mark.parametrize("piece", ["found", "\n**", " - ", "> found ", "'\t"])
def test_labels_of_a_monstrous_reply_take_linear_time(piece):
    grows_linearly(lambda n: labels(piece * n), 50_000)
