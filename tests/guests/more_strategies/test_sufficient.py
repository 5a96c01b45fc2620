"""sufficient: the documents are judged before the answer, searched again for what is missing, or the answer refused."""
import pytest
from disciplined import Told, decided
from each_case import each
from gathering import QUESTION

from ragbed.experiments.guests.answer_support.statements import read_share
from ragbed.experiments.guests.more_strategies.parts.evidence_checks import Sufficiency, read_sufficiency
from ragbed.strategies import REFUSAL

LIBRARY = {QUESTION: "jaws shark", "birthplace of Steven Spielberg": "spielberg jaws"}
SHORT = "Missing: birthplace of Steven Spielberg\nSufficiency: 3"
ENOUGH = "Missing: nothing\nSufficiency: 9"
ONCE = {"kind": "sufficient", "of": "direct"}


def scene(*judged, library=LIBRARY, **replies):
    return Told(library, {"sufficiency": list(judged), "answer": "Cincinnati [1]", **replies})


def test_enough_evidence_is_judged_once_searched_once_and_answered_over_the_same_documents():
    told = scene(ENOUGH)
    answer = told.play("once", ONCE)
    assert (answer.outcome, answer.text, answer.figures) == ("answered", "Cincinnati [1]", {"sufficiency": 0.9})
    assert told.rounds == [[QUESTION]]
    assert told.purposes == ["sufficiency", "answer"]
    judge, final = told.calls
    assert judge.shown == final.shown == (1, 2)
    assert judge.messages[1].parts[0] == final.messages[1].parts[0]
    assert "Rules:" not in told.prompt(0)
    assert decided(answer) == []


def test_what_the_second_search_finds_reaches_the_second_judgement_and_the_answer():
    told = scene(SHORT, ENOUGH)
    answer = told.play("once", ONCE)
    assert told.rounds == [[QUESTION], ["birthplace of Steven Spielberg"]]
    assert told.purposes == ["sufficiency", "sufficiency", "answer"]
    assert "born on December 18" not in told.prompt(0)
    assert [call.shown for call in told.calls] == [(1, 2), (1, 2, 3), (1, 2, 3)]
    assert all("[3]\nSteven Spielberg was born on December 18" in told.prompt(place) for place in (1, 2))
    assert (answer.outcome, answer.figures) == ("answered", {"sufficiency": 0.9})
    assert decided(answer) == [("searches again", "birthplace of Steven Spielberg")]


def test_two_iterations_search_twice_and_then_refuse_with_what_is_missing():
    told = scene(SHORT, "Missing: the year\nSufficiency: 4", "Missing: a [7] map\nSufficiency: 2",
                 library=LIBRARY | {"the year": "spielberg shark jaws", QUESTION: "jaws"})
    answer = told.play("once", {**ONCE, "iterations": 2})
    assert told.purposes == ["sufficiency"] * 3
    assert [call.shown for call in told.calls] == [(1,), (1, 2), (1, 2, 3)]
    assert (answer.outcome, answer.text, answer.notes) == ("refused", f"{REFUSAL} Missing: a map.", ("insufficient",))
    assert (answer.figures, answer.cited) == ({"sufficiency": 0.2}, ())
    assert [what for what, _ in decided(answer)] == ["searches again", "searches again", "refuses"]


def test_a_search_without_news_ends_the_iterations_without_another_judgement():
    told = scene(SHORT, library={"": "jaws shark"})
    answer = told.play("once", {**ONCE, "iterations": 5})
    assert told.purposes == ["sufficiency"]
    assert answer.outcome == "refused"
    assert [what for what, _ in decided(answer)] == ["searches again", "stops searching", "refuses"]


def test_without_iterations_or_without_a_thing_to_search_for_it_refuses_at_once():
    for settings, said in (({"iterations": 0}, SHORT), ({}, "Sufficiency: no")):
        told = scene(said)
        assert told.play("once", {**ONCE, **settings}).outcome == "refused"
        assert told.rounds == [[QUESTION]]


@pytest.mark.parametrize("rules", ["open", "reading", "choice"])
def test_rules_without_a_refusal_are_answered_all_the_same_and_noted(rules):
    told = scene("Sufficiency: 0", answer="A")
    answer = told.play("once", ONCE, rules=rules, options=(("A", "x"), ("B", "y")))
    assert (answer.outcome, answer.notes, answer.figures) == ("answered", ("insufficient",), {"sufficiency": 0.0})
    assert decided(answer) == [("answers all the same", "insufficient")]


def test_closed_book_asks_for_no_judgement():
    told = scene()
    answer = told.play("none", ONCE, rules="closed-book")
    assert (told.purposes, answer.notes, answer.figures) == (["answer"], ("sufficiency_skipped",), {})


def test_no_documents_suffice_for_nothing_and_no_call_is_made():
    told = scene(library={"": ""})
    answer = told.play("once", ONCE)
    assert (answer.outcome, told.calls, answer.figures) == ("refused", [], {"sufficiency": 0.0})


@pytest.mark.parametrize("said", [
    "", "I would say that it depends.", "Sufficiency: a number from 0 to 10", "x" * 90_000, "<Answer></Answer>",
    "Sufficiency: 0 to 10", "Sufficiency: yes, partly or no"])
def test_a_judgement_that_cannot_be_read_decides_nothing_and_is_noted(said):
    told = scene(said)
    answer = told.play("once", ONCE)
    assert (answer.outcome, answer.notes, answer.figures) == ("answered", ("sufficiency_unread",), {})
    assert decided(answer) == [("answers all the same", "sufficiency unread")]


def test_by_default_half_of_the_needed_facts_do_not_suffice():
    for grade, outcome in ((5, "refused"), (7, "refused"), (8, "answered")):
        assert scene(f"Missing: nothing\nSufficiency: {grade}").play("once", ONCE).outcome == outcome


def test_the_strategy_inside_really_searches_for_all_but_what_was_gathered():
    told = Told(LIBRARY | {"Who directed Jaws?": "shark"}, {
        "sufficiency": [ENOUGH], "self_ask": ["Follow up: Who directed Jaws?", "So the final answer is: Cincinnati"]})
    told.play("once", {"kind": "sufficient", "of": {"kind": "self_ask", "iterations": 2}})
    assert told.rounds[:2] == [[QUESTION], ["Who directed Jaws?"]]


@each(("text", "share"), [
    ("7", 0.7), (" **8/10** good", 0.8), ("3 of 4", 0.75), ("70%", 0.7), ("0.7", 0.7), ("1.0", 1.0), ("7.5", 0.75),
    ("10", 1.0), ("0", 0.0), ("1", 0.1), ("11", None), ("7/0", None), ("150%", None), ("20230503", None), ("-", None),
    ("Yes, they do", 1.0), ("partly.", 0.5), ("no", 0.0), ("not at all", 0.0), ("insufficient", 0.0), ("예", 1.0),
    ("부분적으로", 0.5), ("아니요", 0.0), ("0-10", None), ("yes/no", None), ("perhaps", None), ("7 or 8", None)])
def test_a_share_is_read_from_what_models_write(text, share):
    assert read_share(text) == share


@each(("text", "judged"), [
    ("**Missing:** the year\n**Sufficiency:** 4/10", Sufficiency(0.4, "the year")),
    ("Missing: None.\nSufficiency: 10", Sufficiency(1.0)),
    ("<think>Sufficiency: 1\nMissing: x</think>Missing: y\nSufficiency: 6", Sufficiency(0.6, "y")),
    ("Sufficiency: 2\nSufficiency: 8", Sufficiency(0.8)), ("Yes.", Sufficiency(1.0)), ("3", Sufficiency(0.3)),
    ("부족한 것: 연도\n충분성: 3", Sufficiency(0.3, "연도")), ("Missing: " + "x" * 900, Sufficiency(None, "x" * 300)),
    ("Sufficiency - 5", Sufficiency(0.5)), ("# Missing: a `b`\nScore: partly", Sufficiency(0.5, "a `b"))])
def test_a_judgement_is_read_from_its_lines(text, judged):
    assert read_sufficiency(text) == judged
