"""Each strategy asks for what it claims, and all share the same opening bytes."""
import subprocess
import sys
import time

import pytest

from documents.types import Chunk
from strategies.catalogue import REASONING, RETRIEVAL, reasoning, retrieval
from strategies.prompting import fill, show_documents
from strategies.reading import REFUSAL
from strategies.reasoning.least_to_most import sub_questions
from strategies.types import Draft, Generate, Passage, Reply, Search, Task

EVIDENCE = tuple(Passage(n, Chunk(f"c{n}", "d", "plain", 0, 9, text)) for n, text in
                 ((1, "Paris is in France."), (3, "Rome is in Italy.")))


def play(name, replies, **changes):
    """The actions of a recipe over EVIDENCE, and its draft."""
    task = Task("q", "Where is Paris?", RETRIEVAL["once"], **changes)
    recipe, replies, actions = REASONING[name](task), iter(replies), []
    result = None
    while True:
        try:
            action = recipe.send(result)
        except StopIteration as end:
            return actions, end.value
        actions.append(action)
        result = EVIDENCE if isinstance(action, Search) else Reply(next(replies))


@pytest.mark.parametrize("name", ["direct", "chain_of_thought", "chain_of_draft", "plan_and_solve"])
def test_a_one_call_strategy_searches_once_and_asks_once(name):
    actions, draft = play(name, ["<Answer>France [1]</Answer>"])
    assert [type(action) for action in actions] == [Search, Generate]
    assert actions[0].query == "Where is Paris?"
    assert actions[1].shown == (1, 3)
    assert draft == Draft("France [1]", (1,), False, True, None if name == "direct" else True)


def test_least_to_most_carries_earlier_answers_into_later_prompts():
    actions, draft = play("least_to_most", ["1. What is Paris?\n2) Where is it?\nWhere is Paris?\n- what is paris",
                                            "A city [1].", "In France [1].", "<Answer>France [1]</Answer>"])
    decompose, first, second, final = actions[1:]
    assert [action.purpose for action in actions[1:]] == ["decompose", "solve", "solve", "answer"]
    assert "What is Paris?" in first.messages[-1].content
    assert [message.content for message in second.messages[2:3]] == ["A city [1]."]
    assert "Where is it?" in second.messages[-1].content
    assert [m.content for m in final.messages if m.role == "assistant"] == ["A city [1].", "In France [1]."]
    assert "Where is Paris?" in final.messages[-1].content
    assert "<Answer>" in final.messages[-1].content
    assert "Rules" not in decompose.messages[-1].content
    assert draft.text == "France [1]"


def test_least_to_most_without_sub_questions_answers_the_question_alone_and_says_so():
    actions, draft = play("least_to_most", ["Where is Paris?", "<Answer>France</Answer>"])
    assert [action.purpose for action in actions[1:]] == ["decompose", "answer"]
    assert draft.notes == ("no_sub_questions",)


def test_at_most_six_sub_questions_are_kept_without_numbers_and_repeats():
    text = "\n".join(["Sub-question 1: a?", "(2) b?", "* c?", "Q3: d?", "e?", "**f?**", "g?", "A?"])
    assert sub_questions(text, "x") == ["a?", "b?", "c?", "d?", "e?", "f?"]


@pytest.mark.parametrize(("line", "kept"), [
    ("U.S. GDP in 1990?", "U.S. GDP in 1990?"), ("A. Lincoln was born when?", "A. Lincoln was born when?"),
    ("3.5 million of what?", "3.5 million of what?"), ("-5 degrees where?", "-5 degrees where?"),
    ("20:30 is when?", "20:30 is when?"), ("Q4 2023 revenue?", "Q4 2023 revenue?"),
    ("Question time airs when?", "Question time airs when?"), ("#1 hit of 1990?", "#1 hit of 1990?"),
    ("**1.** What is A?", "What is A?"), ("- 1. What?", "What?"), ("  * (a) **What?**", "What?"),
    ("**Question 2:** What?", "What?"), ("## 3) What?", "What?"), ("•What?", "What?"), ("b) What?", "What?"),
    ("1. 1984 was what?", "1984 was what?"), ("12. Who?", "Who?")])
def test_numbering_is_removed_and_nothing_of_the_question(line, kept):
    assert sub_questions(line, "x") == [kept]


@pytest.mark.parametrize("line", [
    "Here are the sub-questions:", "**Sub-questions:**", "1.", "- ", "**", "Question 1:", "x" * 1_001 + "?"])
def test_headings_bare_marks_and_endless_lines_are_no_sub_questions(line):
    assert sub_questions(line, "x") == []


@pytest.mark.parametrize("text", [
    "question" + " " * 50_000, "sub-" * 20_000, "*" * 1_000_000, "1. " * 300_000, "- " * 900 + "\n" * 900_000,
    "question 1 " * 90, (" " * 999 + "\n") * 10_000])
def test_sub_questions_of_a_monstrous_reply_take_no_time(text):
    begun = time.perf_counter()
    sub_questions(text, "x")
    assert time.perf_counter() - begun < 0.5


def test_least_to_most_neither_solves_nor_carries_on_what_a_model_thinks_aloud():
    actions, _ = play("least_to_most", ["<think>First the city?\nThen more?</think>\nWhat is Paris?",
                                        "<think>Hm, a city.</think>A city [1].", "<Answer>France [1]</Answer>"])
    assert [action.purpose for action in actions[1:]] == ["decompose", "solve", "answer"]
    assert "What is Paris?" in actions[2].messages[-1].content
    assert [m.content for m in actions[3].messages if m.role == "assistant"] == ["A city [1]."]


def test_the_prompts_of_all_strategies_begin_with_the_same_bytes_up_to_the_end_of_the_documents():
    documents = show_documents(Task("q", "", RETRIEVAL["once"]), EVIDENCE)
    assert documents == "Documents:\n\n[1]\nParis is in France.\n\n[3]\nRome is in Italy.\n\n"
    openings = set()
    for name in REASONING:
        actions, _ = play(name, ["What is Paris?", "a", "b"])
        for action in actions[1:]:
            system, first = action.messages[:2]
            assert first.content.startswith(documents)
            openings.add((system.content, first.content[:len(documents)]))
    assert len(openings) == 1


def test_the_published_layout_puts_the_documents_last():
    actions, _ = play("direct", ["x"], layout="as_published")
    first = actions[1].messages[1].content
    assert first.startswith("Rules:")
    assert first.endswith("Rome is in Italy.")


def test_the_published_layout_names_no_place_of_the_documents_and_solves_after_them():
    first = play("least_to_most", ["What is Paris?", "a", "b"], layout="as_published")[0][2].messages[1]
    assert first.content.endswith("Rome is in Italy.\n\n" + fill("least_to_most_solve", sub_question="What is Paris?"))
    assert first.parts[1] == play("direct", ["x"], layout="as_published")[0][1].messages[1].parts[1]
    for rules in ("grounded", "open", "choice"):
        for separators in (True, False):
            content = play("direct", ["x"], rules=rules, separators=separators)[0][1].messages[1].content
            assert "above" not in content


def test_without_separators_no_number_and_no_citation_rule_is_shown():
    first = play("direct", ["x"], separators=False)[0][1].messages[1].content
    assert first.startswith("Documents:\n\nParis is in France.\n\nRome is in Italy.\n\n")
    assert "[1]" not in first
    assert REFUSAL in first


def test_closed_book_shows_no_documents_and_no_refusal():
    first = play("direct", ["x"], rules="closed-book")[0][1].messages[1].content
    assert "Paris is in France" not in first
    assert REFUSAL not in first
    for name in REASONING:
        actions, _ = play(name, ["What is Paris?", "a", "b"], rules="closed-book")
        assert [action.shown for action in actions[1:]] == [()] * (len(actions) - 1)


def test_options_are_lettered_lines():
    first = play("direct", ["x"], rules="choice", options=(("A", "France"), ("B", "Italy")))[0][1].messages[1].content
    assert "Question: Where is Paris?\nA. France\nB. Italy" in first


def test_a_prompt_refuses_missing_and_extra_fields():
    with pytest.raises(KeyError, match="sub_question"):
        fill("least_to_most_solve")
    with pytest.raises(KeyError, match="other"):
        fill("direct", other="x")


def test_an_unknown_strategy_lists_the_known_ones():
    with pytest.raises(Exception, match="unknown reasoning strategy 'drect'; there are: direct, chain_of_thought"):
        reasoning("drect")
    with pytest.raises(Exception, match="there are: none, once"):
        retrieval("twice")


def test_recipes_do_not_depend_on_the_hash_seed():
    script = """
import hashlib
from test_recipes import play
from strategies.catalogue import REASONING
print(hashlib.sha256(repr([play(name, ["What?\\nWhy?", "a", "b", "c"]) for name in REASONING]).encode()).hexdigest())
"""
    seen = {subprocess.run([sys.executable, "-c", script], cwd="tests", capture_output=True, text=True, check=True,
                           env={"PYTHONHASHSEED": seed, "PYTHONPATH": ".:.."}).stdout for seed in ("1", "2")}
    assert len(seen) == 1
