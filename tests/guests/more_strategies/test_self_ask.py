"""self_ask: follow-up questions, each searched, whose finds are shown when the next is asked for."""
from each_case import each
from gathering import QUESTION, Scene, decisions

from ragbed.experiments.guests.more_strategies.reasoning.self_ask import follow_up
from ragbed.strategies.settings.strategy_config import reasoning as chosen

LIBRARY = {QUESTION: "jaws", "Who directed Jaws?": "spielberg jaws", "Where was Steven Spielberg born?": "ohio"}
TURNS = ["Follow-up: Who directed Jaws?", "So far: Steven Spielberg [2].\nFollow-up: Where was Steven Spielberg born?",
         "So far: Cincinnati [3].\nFollow-up: none"]


def asked(*turns, library=None, reasoning="self_ask", **changes):
    """The scene, and the answer."""
    scene = Scene(LIBRARY if library is None else library, {"self_ask": list(turns)})
    return scene, scene.play("once", chosen(reasoning), **changes)


def test_what_each_follow_up_finds_reaches_the_prompt_of_the_next_and_of_the_answer():
    scene, answer = asked(*TURNS)
    first, second, third, last = scene.calls
    assert scene.searched == [QUESTION, "Who directed Jaws?", "Where was Steven Spielberg born?"]
    assert [call.shown for call in scene.calls] == [(1,), (1, 2), (1, 2, 3), (1, 2, 3)]
    assert "[2]\nText of spielberg." in second.messages[-1].content
    assert "Text of jaws." not in second.messages[-1].content
    assert "[3]\nText of ohio." in third.messages[-1].content
    assert [m.content for m in last.messages if m.role == "assistant"] == TURNS
    assert QUESTION in last.messages[-1].content
    assert "<Answer>" in last.messages[-1].content
    assert "<Answer>" not in "".join(m.content for call in (first, second, third) for m in call.messages)
    assert (answer.outcome, answer.cited, answer.invalid_citations) == ("answered", (1,), ())
    assert decisions(answer) == [("goes on", "iteration 1 of 4 brought 1 new passage"),
                                 ("goes on", "iteration 2 of 4 brought 1 new passage"),
                                 ("stops", "no follow-up question is left")]
    for one, other in zip(scene.calls, scene.calls[1:], strict=False):
        assert other.messages[:len(one.messages)] == one.messages
    assert [m.role for m in last.messages] == ["system", *["user", "assistant"] * 3, "user"]


def test_iterations_bound_the_follow_ups_and_what_the_last_one_found_is_shown_with_the_call_for_the_answer():
    scene, answer = asked(TURNS[0], reasoning={"kind": "self_ask", "iterations": 1})
    assert [call.purpose for call in scene.calls] == ["self_ask", "answer"]
    assert "[2]\nText of spielberg." in scene.calls[-1].messages[-1].content
    assert decisions(answer) == [("stops", "iteration 1 of 1 brought 1 new passage")]


def test_over_placed_evidence_it_asks_and_answers_on_and_searches_once():
    scene, answer = asked(*TURNS, library={"": "jaws spielberg"}, placed=True)
    assert scene.searched == [QUESTION]
    assert [call.purpose for call in scene.calls] == ["self_ask"] * 3 + ["answer"]
    assert scene.calls[1].messages[-1].content.startswith(
        "Everything that can be found is shown above.\n\nAnswer your follow-up question from what is shown above, ")
    assert decisions(answer) == [("goes on", "iteration 1 of 4 asks on: all evidence is placed"),
                                 ("goes on", "iteration 2 of 4 asks on: all evidence is placed"),
                                 ("stops", "no follow-up question is left")]


def test_a_search_that_finds_what_was_shown_names_it_and_the_follow_up_is_answered_from_it():
    library = {QUESTION: "jaws spielberg", "a?": "spielberg jaws", "b?": "", "c?": "ohio"}
    scene, answer = asked(*[f"Follow-up: {name}?" for name in "abc"], "Follow-up: none", library=library)
    assert scene.searched == [QUESTION, "a?", "b?"]
    assert scene.prompts("self_ask")[1].startswith(
        "This search found documents that are shown above: [2], [1]. None is new.\n\nAnswer your follow-up question ")
    assert scene.prompts("answer")[0].startswith("This search found no document.\n\nNow answer")
    assert decisions(answer)[-1] == ("stops", "2 iterations in a row brought nothing new")
    scene, _ = asked("Follow-up: a?", "Follow-up: none", library=library, separators=False)
    assert scene.prompts("self_ask")[1].startswith("This search found documents that are shown above. None is new.\n\n")


def test_one_search_without_news_does_not_end_it_where_there_is_more_to_be_found_and_two_do():
    library = {QUESTION: "jaws spielberg", "a?": "jaws", "b?": "ohio", "c?": "jaws", "d?": "ohio"}
    turns = [f"Follow-up: {name}?" for name in "abcde"]
    scene, answer = asked(*turns, library=library, reasoning={"kind": "self_ask", "iterations": 10})
    assert scene.searched == [QUESTION, "a?", "b?", "c?", "d?"]
    assert decisions(answer)[-1] == ("stops", "2 iterations in a row brought nothing new")


def test_a_question_that_was_asked_before_is_not_searched_again_and_ends_it():
    scene, answer = asked(TURNS[0], "Follow-up: who directed JAWS")
    assert decisions(answer)[-1] == ("stops", "it asks for what was asked before")
    assert scene.prompts("answer")[0].startswith("This was asked before; what was found for it is shown above.\n\nNow")
    assert scene.searched == [QUESTION, "Who directed Jaws?"]
    assert [call.purpose for call in scene.calls] == ["self_ask", "self_ask", "answer"]


@each(("text", "query"), [
    ("Follow-up: Who?", "Who?"), ("**Follow up question 2:** Who?", "Who?"), ("- follow-up： Who [1]?", "Who?"),
    ("Let me see.\nFollow-up: Who?\nSo far: Ada.\nFollow-up: When?", "Who?"), ("I need to know: who was it?", None),
    ("<think>Follow-up: Why?</think>\nFollow-up: Who?", "Who?"), ('Follow-up: "Who?"', "Who?"),
    ("Follow-up: none", ""), ("Follow-up: None needed.", ""), ("Follow-up: No.", ""), ("Follow-up:", ""),
    ("Follow-up: no further question", ""), ("The answer is Ohio.", ""), ("", ""),
    ("Follow-up: Nora was born where?", "Nora was born where?"), ("Follow-up: " + "x" * 5_000, "x" * 400)])
def test_the_first_follow_up_of_a_reply_is_read_in_the_forms_that_models_write(text, query):
    assert follow_up(text).query == (text if query is None else query)


def test_what_a_model_makes_up_after_its_follow_up_does_not_stay_in_the_conversation():
    assert follow_up("Follow-up: Who?\nSo far: made up.\nFollow-up: When?").kept == "Follow-up: Who?\n"
