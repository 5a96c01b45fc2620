"""The guard's recall: answers planted in every form that texts use, found and counted without a model."""
import random

import pytest
from each_case import each

from ragbed.documents import Chunk, Document
from ragbed.experiments.guests.hard_negatives.guard import GuardedIndex
from ragbed.experiments.guests.hard_negatives.guard_recall import answer_variants, guard_recall
from ragbed.experiments.question import Question

TEXTS = [f"Page {number} of the Lund yearbook lists {number} ships of oak." for number in range(30)]


def recall(questions, texts, format="plain"):
    documents = [Document(f"d{at}", f"{at}.txt", "", text, text) for at, text in enumerate(texts)]
    index = GuardedIndex([Chunk.of(one, format, 0, len(one.plain)) for one in documents])
    return guard_recall([Question(*one, True) for one in questions], index, random.Random("7:recall"))


@each(("answer", "written"), [
    ("Ada Holm", {"Ada Holm", "ADA HOLM", "Holm"}),
    ("1,577 tonnes", {"1,577 tonnes", "1,577 TONNES", "1577 tonnes"}), ("1911", {"1911"}),
    ("54%", {"54%", "54 percent"}), ("$1.5 billion", {"$1.5 billion", "$1.5 BILLION", "1,500,000,000"}),
    ("March 20, 1911", {"March 20, 1911", "MARCH 20, 1911", "March 20", "20 March 1911"}),
    ("2019년 3월 20일", {"2019년 3월 20일", "2019년 3월 20일에서", "3월 20일", "2019-03-20"}),
    ("a fire that nobody ever explained", {"a fire that nobody ever explained", "A FIRE THAT NOBODY EVER EXPLAINED",
                        "fire that nobody ever explained"})])
def test_an_answer_is_planted_in_the_ways_that_texts_write_it(answer, written):
    assert {text for _, text in answer_variants(answer)} == written


def test_what_the_guard_finds_of_planted_answers_is_its_recall_with_an_interval():
    items = [("a", "Who built it?", ("Ada Holm",)), ("b", "When?", ("March 20, 1911",)),
             ("c", "Was it oak?", ("yes",))]  # too common to be planted
    found = recall(items, TEXTS)
    assert (found.share["mean"], found.share["n"]) == (1.0, 7)
    assert found.share["low"] < 0.7
    assert found.ways == {"as it is": (2, 2), "by a date without its year": (1, 1), "in other notation": (1, 1),
                          "by the last word of a name": (1, 1), "in other case": (2, 2)}
    assert recall(items, TEXTS) == found


def test_what_the_guard_does_not_see_counts_against_it():
    common = [f"{text} Per Holm lived here." for text in TEXTS[:25]]  # a common last word does not count
    found = recall([("a", "Who built it?", ("Ada Holm",))], [*common, *TEXTS])
    assert found.ways == {"as it is": (1, 1), "by the last word of a name": (0, 1), "in other case": (1, 1)}
    assert found.share["mean"] == pytest.approx(2 / 3)


def test_an_answer_is_planted_between_the_tags_of_html_too():
    cells = [f"<table><tr><td>Page {at}</td><td>{at} ships</td></tr></table>" for at in range(9)]
    assert recall([("a", "Who?", ("Ada Holm",))], cells, "html").share["mean"] == 1.0


def test_without_answers_there_is_no_recall():
    assert recall([], TEXTS).share == {"mean": None, "low": None, "high": None, "n": 0}
