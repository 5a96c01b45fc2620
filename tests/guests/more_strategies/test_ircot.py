"""ircot: a thought, a search with it, and the next thought over what that found."""
from each_case import each
from gathering import QUESTION, Scene, decisions

from ragbed.experiments.guests.more_strategies.reasoning.ircot import thought
from ragbed.strategies.settings.strategy_config import reasoning as chosen

LIBRARY = {QUESTION: "jaws", "Jaws was directed by Steven Spielberg.": "spielberg jaws",
           "Steven Spielberg was born in Ohio.": "ohio spielberg"}
THOUGHTS = ["Jaws was directed by Steven Spielberg [1].", "Steven Spielberg was born in Ohio [2].",
            "So the answer is Cincinnati, Ohio."]


def played(*thoughts, library=None, reasoning="ircot", retrieval="once", **changes):
    """The scene, and the answer."""
    scene = Scene(LIBRARY if library is None else library, {"ircot": list(thoughts)})
    return scene, scene.play(retrieval, chosen(reasoning), **changes)


def test_what_each_thought_finds_reaches_the_prompt_of_the_next_and_of_the_answer():
    scene, answer = played(*THOUGHTS)
    assert scene.searched == list(LIBRARY)
    assert [call.shown for call in scene.calls] == [(1,), (1, 2), (1, 2, 3), (1, 2, 3)]
    _, second, third, last = scene.calls
    assert "[2]\nText of spielberg." in second.messages[-1].content
    assert "[3]\nText of ohio." in third.messages[-1].content
    assert "Text of spielberg." not in third.messages[-1].content
    assert [m.content for m in last.messages if m.role == "assistant"] == THOUGHTS
    assert decisions(answer)[-1] == ("stops", "the thought holds the answer")
    for one, other in zip(scene.calls, scene.calls[1:], strict=False):
        assert other.messages[:len(one.messages)] == one.messages


def test_iterations_bound_it_and_the_answer_is_asked_for_over_all_that_was_found():
    scene, _ = played(*THOUGHTS[:2], reasoning={"kind": "ircot", "iterations": 2})
    assert [call.purpose for call in scene.calls] == ["ircot", "ircot", "answer"]
    assert "[3]\nText of ohio." in scene.calls[-1].messages[-1].content


@each(("text", "query"), [
    ("Ada wrote it. More words.", "Ada wrote it. More words."), ("Step 1: Ada wrote it [1][2].", "Ada wrote it."),
    ("\n- **Thought:** Ada wrote it.\nStep 2: no.", "Ada wrote it."), ("1. Ada wrote it.", "Ada wrote it."),
    ("<think>Hm.\nLong.</think>\n\nAda wrote it.", "Ada wrote it."), ("Here is the next step:\nAda.", "Ada."),
    ("The answer is not known yet: who wrote it", "The answer is not known yet: who wrote it"),
    ("So the answer is: Ada", ""), ("The answer to the question is Ada.", ""), ("따라서 정답은 서울이다.", ""),
    ("We need to know whose answer is wanted.", None), ("To find the answer is to know who directed Jaws.", None),
    ("So the answer to the first part is Spielberg, and next his birthplace is needed.", None),
    ("The answer is still to be found.", None), ("Which of the two is the answer?", None),
    ("Therefore, Ohio is the answer.", ""), ("Ohio is the answer [1].", ""), ("The answer: Ohio", ""),
    ("Final answer: Ohio", ""), ("Since he was born there, the answer is Ohio.", ""), ("Thus, the answer is Ohio", ""),
    ("The answer is United Artists.", ""), ("It follows that the final answer is Ohio.", ""),
    ("因此答案是北京。", ""), ("<Answer>Ada</Answer>", ""), ("", ""), ("...\n--", "")])
def test_the_first_line_is_the_thought_and_one_that_holds_the_answer_ends_it(text, query):
    query = text if query is None else query
    assert thought(text).query == query
    assert bool(thought(text).why) is (query == "")
