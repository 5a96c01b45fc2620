"""The guard's recall: answers planted in every way that texts write them, found and counted without a model."""
import pytest

from ragbed.documents import Chunk, Document
from ragbed.experiments.guests.construct.guard_recall import answer_variants, guard_recall
from ragbed.experiments.guests.construct.stages import Library
from ragbed.experiments.guests.review.items import Item

TEXTS = [f"Page {number} of the Lund yearbook lists {number} ships of oak." for number in range(30)]


def library_of(texts, format="plain"):
    documents = {f"d{at}": Document(f"d{at}", f"{at}.txt", "", text, text) for at, text in enumerate(texts)}
    return Library(documents, [Chunk.of(one, format, 0, len(one.plain)) for one in documents.values()], 1, 0, 7, None,
                   lambda: None)


@pytest.mark.parametrize(("answer", "written"), [
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
    items = [Item("a", "Who built it?", ("Ada Holm",)), Item("b", "When?", ("March 20, 1911",)),
             Item("c", "Was it oak?", ("yes",))]  # stands anywhere, and is not planted
    found = guard_recall(items, library_of(TEXTS))
    assert (found.share["mean"], found.share["n"]) == (1.0, 7)
    assert found.share["low"] < 0.7
    assert found.ways == {"as it is": (2, 2), "by a date without its year": (1, 1), "in other notation": (1, 1),
                          "by the last word of a name": (1, 1), "in other case": (2, 2)}
    assert guard_recall(items, library_of(TEXTS)) == found


def test_what_the_guard_does_not_see_counts_against_it():
    common = [f"{text} Per Holm lived here." for text in TEXTS[:25]]  # a last word that stands everywhere is no sign
    found = guard_recall([Item("a", "Who built it?", ("Ada Holm",))], library_of([*common, *TEXTS]))
    assert found.ways == {"as it is": (1, 1), "by the last word of a name": (0, 1), "in other case": (1, 1)}
    assert found.share["mean"] == pytest.approx(2 / 3)


def test_an_answer_is_planted_between_the_tags_of_html_too():
    cells = library_of([f"<table><tr><td>Page {at}</td><td>{at} ships</td></tr></table>" for at in range(9)], "html")
    assert guard_recall([Item("a", "Who?", ("Ada Holm",))], cells).share["mean"] == 1.0


def test_without_answers_there_is_no_recall():
    assert guard_recall([], library_of(TEXTS)).share == {"mean": None, "low": None, "high": None, "n": 0}
