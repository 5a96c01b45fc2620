"""Each strategy asks for what it claims, and all share the same opening bytes."""

import pytest
from each_case import each

from ragbed.documents import Chunk
from ragbed.strategies import (
    CRESTS,
    REASONING,
    REFUSAL,
    RETRIEVAL,
    Draft,
    Exemplar,
    Generate,
    Passage,
    Reply,
    Search,
    Task,
    fill,
    show_documents,
    template,
)
from ragbed.strategies.parts.reading import read_list

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


def test_least_to_most_in_the_published_layout_asks_for_no_tags_and_takes_the_whole_last_reply():
    replies = ["What is Paris?", "A city.", "It is a city. So: France [1]"]
    actions, draft = play("least_to_most", replies, layout="as_published")
    assert draft == Draft("It is a city. So: France [1]", (1,), False, True, None)
    last = actions[-1].messages[-1].content
    assert last.endswith("Where is Paris?")
    assert not any("<Answer>" in message.content for message in actions[-1].messages)
    actions, draft = play("least_to_most", replies)
    assert draft.tagged is False
    assert "<Answer>" in actions[-1].messages[-1].content


@pytest.mark.parametrize(("changes", "solution"), [
    ({}, "<Thinking>It says so.</Thinking>\n<Answer>In the sea [1]</Answer>"),
    ({"answer_format": "json"}, '{"reasoning": "It says so.", "refused": false, "answer": "In the sea [1]"'),
    ({"layout": "as_published"}, "\n\nIn the sea [1]\n\n")])
def test_least_to_most_shows_exemplars_in_the_form_that_its_last_turn_asks_for(changes, solution):
    example = Exemplar("Where does the Rhone end?", "In the sea [1]", reasoning="It says so.")
    actions, _ = play("least_to_most", ["What is Paris?", "A city.", "x"], exemplars=(example,), **changes)
    shown = actions[-1].messages[1].content
    assert solution in shown
    assert ("<Answer>" in shown) is (not changes)


def test_least_to_most_without_sub_questions_answers_the_question_alone_and_says_so():
    actions, draft = play("least_to_most", ["Where is Paris?", "<Answer>France</Answer>"])
    assert [action.purpose for action in actions[1:]] == ["decompose", "answer"]
    assert draft.notes == ("no_sub_questions",)


def test_at_most_six_sub_questions_are_kept_without_numbers_and_repeats():
    text = "\n".join(["Sub-question 1: a?", "(2) b?", "* c?", "Q3: d?", "e?", "**f?**", "g?", "A?"])
    assert read_list(text, "x") == ["a?", "b?", "c?", "d?", "e?", "f?"]


@each(("line", "kept"), [
    ("U.S. GDP in 1990?", "U.S. GDP in 1990?"), ("A. Lincoln was born when?", "A. Lincoln was born when?"),
    ("3.5 million of what?", "3.5 million of what?"), ("-5 degrees where?", "-5 degrees where?"),
    ("20:30 is when?", "20:30 is when?"), ("Q4 2023 revenue?", "Q4 2023 revenue?"),
    ("Question time airs when?", "Question time airs when?"), ("#1 hit of 1990?", "#1 hit of 1990?"),
    ("**1.** What is A?", "What is A?"), ("- 1. What?", "What?"), ("  * (a) **What?**", "What?"),
    ("**Question 2:** What?", "What?"), ("## 3) What?", "What?"), ("•What?", "What?"), ("b) What?", "What?"),
    ("1. 1984 was what?", "1984 was what?"), ("12. Who?", "Who?")])
def test_numbering_is_removed_and_nothing_of_the_question(line, kept):
    assert read_list(line, "x") == [kept]


def test_least_to_most_neither_solves_nor_carries_on_what_a_model_thinks_aloud():
    actions, _ = play("least_to_most", ["<think>First the city?\nThen more?</think>\nWhat is Paris?",
                                        "<think>Hm, a city.</think>A city [1].", "<Answer>France [1]</Answer>"])
    assert [action.purpose for action in actions[1:]] == ["decompose", "solve", "answer"]
    assert "What is Paris?" in actions[2].messages[-1].content
    assert [m.content for m in actions[3].messages if m.role == "assistant"] == ["A city [1]."]


def test_the_prompts_of_all_strategies_begin_with_the_same_bytes_up_to_the_end_of_the_documents():
    documents = show_documents(Task("q", "", RETRIEVAL["once"]), EVIDENCE)
    assert documents == (f"{template('framed_documents')}\n\n<documents>\n[1]\nParis is in France.\n\n[3]\nRome is in "
                         "Italy.\n\n</documents>\n\n")
    openings = set()
    for name in CRESTS:
        actions, _ = play(name, ["What is Paris?", "a", "b"])
        for action in actions[1:]:
            system, first = action.messages[:2]
            assert first.content.startswith(documents)
            openings.add((system.content, first.content[:len(documents)]))
    assert len(openings) == 1


def test_the_published_layout_puts_the_documents_last_names_no_place_of_them_and_solves_after_them():
    direct = first_prompt(layout="as_published")
    assert direct.startswith("Rules:")
    assert direct.endswith("Rome is in Italy.\n\n</documents>")
    first = play("least_to_most", ["What is Paris?", "a", "b"], layout="as_published")[0][2].messages[1]
    assert first.content.endswith("Rome is in Italy.\n\n</documents>\n\n" + fill(
        "least_to_most_solve", sub_question="What is Paris?"))
    assert first.parts[1] == play("direct", ["x"], layout="as_published")[0][1].messages[1].parts[1]
    for rules in ("grounded", "open", "reading", "choice"):
        for separators in (True, False):
            assert "above" not in first_prompt(rules=rules, separators=separators)


def test_without_separators_no_number_and_no_citation_rule_is_shown():
    first = play("direct", ["x"], separators=False)[0][1].messages[1].content
    shown = first.partition("<documents>\n")[2]
    assert shown.startswith("Paris is in France.\n\nRome is in Italy.\n\n</documents>\n\n")
    assert "[1]" not in first
    assert REFUSAL in first


def test_closed_book_shows_no_documents_and_no_refusal():
    first = play("direct", ["x"], rules="closed-book")[0][1].messages[1].content
    assert "Paris is in France" not in first
    assert REFUSAL not in first
    for name in CRESTS:
        actions, _ = play(name, ["What is Paris?", "a", "b"], rules="closed-book")
        assert [action.shown for action in actions[1:]] == [()] * (len(actions) - 1)


def test_reading_rules_keep_to_the_documents_and_ask_for_neither_citations_nor_a_refusal():
    for separators in (True, False):
        shown = first_prompt(rules="reading", separators=separators, brief=True)
        assert "Paris is in France." in shown
        assert "from the documents alone" in shown
        assert REFUSAL not in shown
        assert "bracket" not in shown
        assert "citation" not in shown


def first_prompt(**changes):
    return play("direct", ["x"], **changes)[0][1].messages[1].content


def test_closed_book_with_options_asks_for_one_letter_and_no_best_guess_in_words():
    options = (("A", "France"), ("B", "Italy"))
    shown = first_prompt(rules="closed-book", options=options)
    assert "Your final answer is its letter and nothing else." in shown
    assert "Always give your best answer" not in shown
    assert "letter" not in first_prompt(rules="closed-book")
    assert "letter" not in first_prompt(rules="grounded", options=options)


def test_what_the_documents_are_is_said_before_the_question_and_only_where_they_are_not_shown():
    line = "The question is about Emma, by Jane Austen.\nQuestion: Where is Paris?"
    assert line in first_prompt(rules="closed-book", about="Emma, by Jane Austen")
    for rules in ("grounded", "open", "reading", "choice"):
        assert "Emma" not in first_prompt(rules=rules, about="Emma, by Jane Austen")


def test_a_brief_answer_is_asked_for_with_its_citations_where_there_are_any():
    brief = "Keep the final answer to one to five words"
    for rules in ("grounded", "open"):
        assert f" {brief}, like this: ... [2]\n\nQuestion: Where is Paris?" in first_prompt(rules=rules, brief=True)
        assert f" {brief}.\n\n" in first_prompt(rules=rules, brief=True, separators=False)
        assert f" {brief}.\n\n" in first_prompt(rules=rules, brief=True, answer_format="json")
    assert f" {brief}.\n\n" in first_prompt(rules="closed-book", brief=True)
    thinking = play("chain_of_thought", ["x"], brief=True)[0][1].messages[1].content
    assert " like this: <Answer>... [2]</Answer>\n\nQuestion: " in thinking
    for rules in ("choice", "closed-book"):
        assert brief not in first_prompt(rules=rules, brief=True, options=(("A", "x"), ("B", "y")))


def test_sub_questions_are_numbered_and_their_references_explained():
    shown = first_prompt(sub_questions=("Who wrote Emma?", "Where was #1 born?"))
    assert ("Question: Where is Paris?\nSub-questions:\n1. Who wrote Emma?\n2. Where was #1 born?\n"
            "In them, #1 stands for the answer to sub-question 1, and so on.") in shown
    assert "stands for" not in first_prompt(sub_questions=("Who wrote Emma?",))


def test_every_strategy_asks_for_sub_answers_in_the_prompt_of_its_final_answer_alone():
    for name in CRESTS:
        actions, _ = play(name, ["What is Paris?", "a", "b"], sub_questions=("Who?", "Where?"), with_sub_answers=True)
        *before, last = actions[1:]
        assert fill("sub_answers", count="2") in last.messages[-1].content
        assert not any("Sub-answer 1" in message.content for action in before for message in action.messages)


def test_fields_of_a_task_are_shown_as_they_are():
    field = "{refusal} {question} {about} #1"
    exemplar = Exemplar(field, field, (field,), field)
    shown = "".join(message.content for name in CRESTS for rules in ("grounded", "closed-book")
                    for action in play(name, [field, "a", "b"], rules=rules, about=field, exemplars=(exemplar,),
                                       sub_questions=(field,), options=(("A", field),))[0][1:]
                    for message in action.messages)
    assert shown.count("{refusal}") == shown.count(field) > 40
