"""Figures of trajectories: each equals the one that is counted by hand."""
from dataclasses import replace

from acted import TWO_HOPS, acted, begins, passage, search, stops, tool, turn
from each_case import each
from rich.cells import cell_len

from ragbed.experiments.guests.trajectories.drawing import draw, trajectory_lines
from ragbed.experiments.metrics import aggregate
from ragbed.strategies import Failure

GOLD = (passage(1), passage(2, 0), passage(3, 1))


def figures(result, *names):
    return [result.scores[name] for name in names]


def test_gold_is_seen_opened_and_cited_in_shares_of_its_items():
    one = acted(begins("search"), turn(100, 10), search("who", 1, 2), turn(200, 20), search("where", 3),
                evidence=(passage(1), passage(2, 0), passage(3, 1, aside=True)), cited=(1,))
    assert figures(one, "gold_seen", "gold_opened", "gold_cited") == [1.0, 0.5, 0.0]
    other = acted(begins("search"), turn(100, 10), search("who", 2), evidence=GOLD[1:2], cited=(2,))
    assert figures(other, "gold_seen", "gold_opened", "gold_cited") == [0.5, 0.5, 0.5]


def test_a_document_is_opened_by_a_search_only_if_the_agent_cannot_open_documents():
    found = (passage(1, 0, level="document"), passage(2, 1, level="page"))
    steps = turn(100, 10), search("who", 1, 2)
    assert figures(acted(begins("search"), *steps, evidence=found), "gold_seen", "gold_opened") == [1.0, 1.0]
    assert figures(acted(begins("search", "open"), *steps, evidence=found), "gold_seen", "gold_opened") == [1.0, 0.0]
    opened = acted(begins("search", "open"), *steps, turn(200, 20), tool("open", 2, document="d2"), evidence=found)
    assert figures(opened, "gold_seen", "gold_opened") == [1.0, 0.5]
    spans = acted(begins("search", "open"), *steps, evidence=GOLD)
    assert figures(spans, "gold_seen", "gold_opened") == [0.5, 1.0]  # a chunk with the span was read


def test_calls_are_counted_by_tool_with_those_that_repeat_find_nothing_or_fail():
    made = acted(
        begins("search_words", "grep", "lookup", "other_tool", "repeated"), turn(100, 10), search("Who was it?", 1),
        tool("search_words", query="who"), turn(100, 10), search("who was it", 1), tool("grep", pattern="Who"),
        tool("grep", pattern="who"),
        tool("grep", pattern="Who"), tool("open", failure="there is no document x", document="x"),
        tool("sql", text="3", query="select 3"), tool("lookup", text="", word="y"), tool("list", text="a.txt"),
        evidence=GOLD[:1])
    assert figures(made, "tool_calls", "tool_calls_search", "tool_calls_grep", "tool_calls_open", "tool_calls_sql",
                   "tool_calls_list", "tool_calls_calculate", "tool_calls_other") == [10, 3, 3, 1, 1, 1, 0, 1]
    assert figures(made, "tool_calls_search_words", "tool_calls_lookup", "tool_calls_other_tool") == [1, 1, 0]
    assert figures(made, "tool_calls_repeated", "tool_calls_empty", "tool_calls_failed") == [2, 5, 1]


def test_steps_and_tokens_are_counted_until_gold_and_after_all_of_it():
    made = acted(begins("search"), turn(100, 10), search("a", 1), turn(150, 20), search("b", 2, 1), search("c", 3),
                 turn(300, 30), search("d", 1), turn(400, 40), search("e"), turn(500, 50, "answer"), evidence=GOLD)
    assert figures(made, "steps_to_gold", "tokens_to_gold") == [2, 110 + 170]
    assert figures(made, "steps_after_gold", "tokens_after_gold") == [2, 330 + 440]
    assert made.scores["trajectory_tokens"] == 110 + 170 + 330 + 440 + 550
    at_once = acted(turn(100, 10), search("b", 2, 3), turn(200, 20, "answer"), evidence=GOLD)
    assert figures(at_once, "steps_to_gold", "tokens_to_gold") == [1, 110]
    assert figures(at_once, "steps_after_gold", "tokens_after_gold") == [0, 0]
    half = acted(turn(100, 10), search("b", 2), turn(200, 20, "answer"), evidence=GOLD[:2])
    assert figures(half, "steps_to_gold", "steps_after_gold", "tokens_after_gold") == [1, None, None]
    none = acted(turn(100, 10), turn(200, 20, "answer"))
    assert figures(none, "tool_calls", "gold_seen", "steps_to_gold", "tokens_to_gold") == [0, 0.0, None, None]


@each(("why", "outcome", "failure", "end"), [
    ("the reply calls no tool", "answered", None, "answer"), ("turn 12 of 12 called search", "answered", None, "turns"),
    ("turn 2 of 12 called search", "answered", None, "answer"), ("the context is full", "answered", None, "context"),
    ("", "budget", "limit of 900 tokens per question reached", "tokens"),
    ("", "budget", "limit of 40 calls per question reached", "turns"), ("", "too_long", "5,000 tokens", "context"),
    ("", "error", "HTTP 500", None)])
def test_an_answer_is_ended_by_the_model_or_a_limit(why, outcome, failure, end):
    made = acted(turn(100, 10), *([stops(why)] if why else []), outcome=outcome,
                 failure=failure and Failure(outcome, failure))
    ends = {name: made.scores[f"ended_by_{name}"] for name in ("answer", "turns", "tokens", "context")}
    assert ends == {name: float(name == end) for name in ends}


def test_tokens_for_each_right_answer_count_the_wrong_answers_too():
    answers = [acted(turn(100, 20), search("a", 2, 3), evidence=GOLD, grade=grade)
               for grade in ("Correct", "Wrong", "Correct", "Partially Correct")]
    assert [one.scores["solved"] for one in answers] == [1, 0, 1, 0]
    assert aggregate(answers)["tokens_per_right"]["mean"] == 4 * 120 / 2
    assert aggregate(answers[1:2])["tokens_per_right"]["mean"] is None


def test_a_strategy_with_fixed_searches_has_no_figures_of_a_trajectory():
    assert "tool_calls" not in acted(search("a", 2), turn(100, 20, "answer"), evidence=GOLD).scores


def test_arguments_are_drawn_in_one_line_without_what_could_steer_a_terminal():
    made = acted(turn(1, 1), tool("grep", pattern="a\n\x1b[31mb\u202e", context=2), search("c" * 5_000),
                 evidence=GOLD)
    first, second, last = trajectory_lines(made)
    assert (first.tool, first.text) == ("grep", "a ⟨U+001B⟩[31mb⟨U+202E⟩, context: 2")
    assert (len(second.text), second.brought, last.text) == (301, "nothing", "answered")
    assert max(map(cell_len, draw(acted(turn(1, 1), search("検索" * 90, 1), search("b"), evidence=GOLD), 60))) <= 60


def test_the_line_of_a_failed_answer_names_its_failure_and_no_other_limit():
    made = acted(turn(100, 10), search("a", 1), outcome="budget",
                 failure=Failure("budget", "limit of 1 tool calls per question reached"))
    assert trajectory_lines(made)[-1].text == "budget"
    last = acted(turn(100, 10), search("a", 1), stops("turn 12 of 12 called search"), turn(50, 5, "answer"))
    assert trajectory_lines(last)[-1].text == "answered, out of turns"


def test_a_right_refusal_counts_as_a_right_answer_and_a_prompt_in_each_call_that_sends_it():
    nobody = replace(TWO_HOPS, answers=(), gold=(), answerable=False)
    refused = acted(turn(100, 20), search("a"), turn(150, 30), question=nobody, answerable=False, outcome="refused",
                    refused=True, grade="Correct")
    wrong = acted(turn(100, 20), search("a", 2), evidence=GOLD)
    assert aggregate([refused, wrong])["tokens_per_right"]["mean"] == (100 + 20 + 150 + 30) + (100 + 20)
