"""Answers, citations and refusals are read from what models really write."""
from dataclasses import replace

import pytest
from each_case import each

from ragbed.strategies import REFUSAL, Draft, Reply, is_refusal, read_answer, read_citations
from ragbed.strategies.reading import is_only_citations, strip_citations, strip_last_citations


@each(("text", "expected"), [
    ("Paris [1]", ("Paris [1]", False)),
    ("<Thinking>a</Thinking><Answer>Paris</Answer>", ("Paris", True)),
    ("<Answer>no</Answer> wait <Answer>Paris</Answer> tail", ("Paris", True)),
    ("<Answer>Paris</Answer> [1] [2]\n", ("Paris [1] [2]", True)),
    ("<Answer></Answer> [1]", ("", True)),
    ("<Answer>cut off", ("cut off", True)),
    ("<answer>\nParis\n</ANSWER>", ("Paris", True)),
    ("<Thinking>never closed, no answer", ("", False)),
    ("<think>I write <Answer>it</Answer>.</think>\nParis", ("Paris", False)),
    ("It goes between <Answer> and </Answer>.</think>Paris", ("Paris", False)),
    ("<think>It goes between <Answer> and </Answer>, so", ("", False)),
    ("<think>a</think><Answer>Paris</Answer>", ("Paris", True)),
    ("<Answer>Paris</Answer><think>sure?</think>", ("Paris", True)),
    ("Paris</think>", ("Paris", False)),
    ("<think>hm</think>Paris", ("Paris", False)),
    ("<Thinking>a</Thinking> Paris", ("Paris", False)),
    ("", ("", False)),
])
def test_the_answer_stands_in_the_last_tags_or_is_the_reply_without_its_thinking(text, expected):
    assert read_answer(text) == expected


@each(("text", "expected"), [
    ("a [1] b [2][1]", (1, 2)), ("[1, 2] and [4;5]", (1, 2, 4, 5)), ("[1-3]", (1, 2, 3)), ("[2–4]", (2, 3, 4)),
    ("[3-1]", (3, 1)), ("[1-9999]", (1, 9999)), ("in [2019] it was", ()), ("[a] [] [1.5] [12345]", ())])
def test_citations_are_read_in_every_form(text, expected):
    assert read_citations(text) == expected


def test_citations_are_stripped_wherever_they_stand():
    assert strip_citations("Paris [1], in France [2, 3].") == "Paris, in France."


@each(("text", "left"), [
    ("Paris [1]", "Paris"), ("Paris [1], [2] [3]\n", "Paris"), ("Paris [1].", "Paris [1]."), ("[1] Paris", "[1] Paris"),
    ("Paris [1, 2]", "Paris [1, 2]"), ("It is [1] Paris[2],", "It is [1] Paris"), ("[1][2]", ""), ("Paris ", "Paris "),
    ("Paris [1] ,[2]", "Paris [1] ,"), ("", "")])
def test_as_published_only_the_citations_that_end_a_text_go(text, left):
    assert strip_last_citations(text) == left


@each(("text", "refuses"), [
    (REFUSAL, True), (REFUSAL.lower() + " No year is given.", True),
    ("I cannot answer, because the question is **unanswerable** with the documents [1]", True),
    ("  i CANNOT answer because the question is unanswerable with the documents", True),
    ("Cannot answer because the question is unanswerable with the documents.", True),
    ("The riddle is unanswerable.", False), ("", False), (f"{REFUSAL} Cite [1].", True),
    (f"{REFUSAL} However, [2] suggests 1984.", False)])
def test_a_refusal_begins_with_the_sentence_however_it_is_written(text, refuses):
    assert is_refusal(text) is refuses


def test_an_empty_reply_is_not_well_formed_and_a_cut_one_says_so():
    assert not Draft.from_reply(Reply("")).well_formed
    cut = Draft.from_reply(Reply("<Thinking>so", finish_reason="length"))
    assert not cut.well_formed
    assert cut.notes == ("cut",)


def test_a_cut_reply_is_an_answer_only_where_no_tags_were_asked_for_or_one_was_opened():
    reply = Reply("Paris is the capital, and since", finish_reason="length")
    assert not Draft.from_reply(reply).well_formed
    assert Draft.from_reply(reply, form="plain").well_formed
    assert Draft.from_reply(replace(reply, text="<Answer>Paris")).well_formed
    assert Draft.from_reply(replace(reply, finish_reason="stop")).well_formed


def test_tagged_is_unknown_where_no_tags_were_asked_for():
    assert Draft.from_reply(Reply("<Answer>Paris</Answer>"), form="plain") == Draft("Paris", (), False, True, None)
    assert Draft.from_reply(Reply("Paris")).tagged is False


def test_fields_that_were_asked_for_and_did_not_come_are_no_answer():
    assert not Draft.from_reply(Reply("Paris"), form="fields").well_formed
    assert Draft.from_reply(Reply("<Answer>Paris</Answer>", parsed={"answer": "Rome"}), form="fields").text == "Rome"


def test_brackets_that_are_the_whole_text_are_kept():
    assert strip_citations(" [3, 7] ") == "[3, 7]"
    assert is_only_citations("[1] [2]")
    assert not is_only_citations("")
    assert not is_only_citations("Paris [1]")


def test_a_structured_reply_is_read_from_its_fields():
    draft = Draft.from_reply(Reply("{}", parsed={"answer": "Paris", "citations": [2, 2, "x", True], "refused": False}))
    assert draft == Draft("Paris", (2,), False, True, True, ("unread_citations",))
    assert Draft.from_reply(Reply("{}", parsed={"answer": "", "refused": True})).text == REFUSAL
    assert not Draft.from_reply(Reply("{}", parsed={"other": 1})).well_formed


@each(("citations", "cited", "notes"), [
    ([1], (1,), ()), (["1"], (1,), ()), (1, (1,), ()), ([1.0], (1,), ()), ("[1]", (1,), ()), ("1", (1,), ()),
    ("1, 2", (1, 2), ()), (["[1]", "[2]"], (1, 2), ()), (["Document 2"], (2,), ()), (["【3†source】"], (3,), ()),
    ([{"document": 1, "quote": "x"}], (1,), ()), ([None, 1], (1,), ()), (None, (), ()), ([], (), ()), ("", (), ()),
    ([[1]], (), ("unread_citations",)), (["the first"], (), ("unread_citations",)),
    ([1.5], (), ("unread_citations",)), ([1, True], (1,), ("unread_citations",))])
def test_the_field_of_citations_is_read_however_it_is_typed_and_a_note_says_what_was_not(citations, cited, notes):
    draft = Draft.from_reply(Reply("{}", parsed={"answer": "Paris", "refused": False, "citations": citations}))
    assert (draft.cited, draft.notes) == (cited, notes)


@pytest.mark.parametrize(("fields", "text", "refused"), [
    ({"answer": "24"}, "24", False), ({"answer": 24}, "", False),
    ({"answer": "", "refused": "true"}, REFUSAL, True), ({"answer": "a", "refused": "false"}, "a", False),
    ({"answer": None, "refused": True}, REFUSAL, True), ({"answer": True}, "", False)])
def test_the_fields_of_an_answer_are_read_however_they_are_typed(fields, text, refused):
    draft = Draft.from_reply(Reply("{}", parsed=fields))
    assert (draft.text, draft.refused, draft.well_formed) == (text, refused, bool(text))
