"""native: a reasoning model without a scaffold; what it thinks is kept, and is no part of the answer."""
import pytest
from gathering import Scene

from ragbed.documents import SettingsError
from ragbed.strategies import Reply, parse_strategy
from ragbed.strategies.settings.strategy_config import reasoning


def played(said, **changes):
    scene = Scene({"": "jaws"}, {"answer": [said]})
    return scene, scene.play("once", reasoning({"kind": "native", **changes.pop("settings", {})}), **changes)


def test_one_call_with_the_effort_and_room_to_think_and_the_reply_is_the_answer():
    scene, answer = played("Cincinnati [1]", settings={"effort": "high", "max_tokens": 9_000})
    call, = scene.calls
    assert (call.effort, call.max_tokens, call.purpose, call.shown) == ("high", 9_000, "answer", (1,))
    assert "<Thinking>" not in call.messages[-1].content
    assert "step by step" not in call.messages[-1].content
    assert (answer.text, answer.cited, answer.tagged) == ("Cincinnati [1]", (1,), None)
    scene, _ = played("x")
    assert (scene.calls[0].effort, scene.calls[0].max_tokens) == (None, None)


def test_thinking_is_kept_in_the_trace_and_no_part_of_the_answer():
    _, answer = played(Reply("Cincinnati [1]", reasoning="Jaws is by Spielberg."))
    assert (answer.text, answer.trace[-1].reasoning) == ("Cincinnati [1]", "Jaws is by Spielberg.")
    assert played("<think>Perhaps <Answer>Utah</Answer></think>\nCincinnati [1]")[1].text == "Cincinnati [1]"
    cut = played(Reply("<think>Perhaps Utah", finish_reason="length"))[1]
    assert (cut.outcome, cut.text, cut.notes) == ("malformed", "", ("cut",))


def test_fields_are_asked_for_without_one_for_reasoning():
    scene, answer = played(Reply("{}", parsed={"answer": "Ohio", "citations": [1], "refused": False}),
                           answer_format="json")
    assert list(scene.calls[0].schema["properties"]) == ["refused", "answer", "citations"]
    assert answer.text == "Ohio"


def test_samples_of_it_keep_their_effort():
    scene = Scene({"": "jaws"}, {"answer": "Cincinnati [1]"})
    settings = {"kind": "self_consistency", "of": {"kind": "native", "effort": "high"}, "samples": 2}
    answer = scene.play("once", reasoning(settings))
    assert [(call.effort, call.sample) for call in scene.calls] == [("high", 0), ("high", 1)]
    assert answer.figures == {"agreement": 1.0}


@pytest.mark.parametrize(("settings", "says"), [
    ({"effort": "hihg"}, "strategy native: effort: Input should be 'none', 'minimal', 'low'"),
    ({"max_tokens": 10**30}, "max_tokens: Input should be less than or equal to 1000000")])
def test_an_effort_that_no_server_knows_and_tokens_beyond_reason_are_refused(settings, says):
    with pytest.raises(SettingsError, match=says):
        parse_strategy("reasoning", {"kind": "native", **settings})
