"""Matching shown chunks to gold, at the finest level that both sides know."""
from each_case import each

from ragbed.documents import Chunk, Document, Page
from ragbed.experiments import Gold
from ragbed.experiments.running.gold import gold_by_source, match, missing_documents
from ragbed.strategies import Passage

PAGED = Document("d1", "reports/a.pdf", "A", "<p>0123456789</p>", "0123456789", (Page(1, 0, 0), Page(2, 8, 5)))
OTHER = Document("d2", "b.html", "B", "<p>0123456789</p>", "0123456789")
FIRST, LAST = Chunk.of(PAGED, "plain", 0, 5), Chunk.of(PAGED, "plain", 5, 10)
WHOLE = Chunk.of(OTHER, "html", 0, 17)
SOURCES = {"d1": "reports/a.pdf", "d2": "b.html"}


def view(gold, *chunks):
    return match(gold, [Passage(number, chunk) for number, chunk in enumerate(chunks, start=1)], SOURCES.__getitem__)


@each(("gold", "levels"), [
    (Gold("d1", chunk=FIRST.id), {1: "chunk", 2: None, 3: None}),
    (Gold("", chunk=LAST.id), {1: None, 2: "chunk", 3: None}),
    (Gold("d1", format="plain", start=4, end=5), {1: "span", 2: None, 3: None}),
    (Gold("d1", format="plain", start=4, end=6), {1: "span", 2: "span", 3: None}),
    (Gold("d1", format="html", start=0, end=3), {1: "document", 2: "document", 3: None}),
    (Gold("d1", format="html", start=0, end=3, page=1), {1: "page", 2: None, 3: None}),
    (Gold("reports/a.pdf", page=2), {1: None, 2: "page", 3: None}),
    (Gold("b.html", page=2), {1: None, 2: None, 3: "document"}),
    (Gold("reports/a.pdf"), {1: "document", 2: "document", 3: None}),
    (Gold("a.pdf"), {1: None, 2: None, 3: None}),
])
def test_the_level_is_the_finest_that_both_sides_know(gold, levels):
    assert view([gold], FIRST, LAST, WHOLE).levels == levels


def test_a_gold_chunk_of_another_chunking_matches_by_its_span():
    gold = Gold("d1", chunk="of another index", format="plain", start=6, end=9)
    assert view([gold], FIRST, LAST).levels == {1: None, 2: "span"}
    assert view([Gold("d1", chunk="of another index")], FIRST).levels == {1: None}


def test_repeats_are_one_item_and_each_number_says_what_it_holds():
    page, document = Gold("d1", page=1), Gold("d2")
    seen = view([page, document, page], FIRST, LAST, WHOLE)
    assert seen.total == 2
    assert seen.hits == {1: frozenset({0}), 2: frozenset(), 3: frozenset({1})}
    assert seen.in_view == {0, 1}


def test_whether_gold_is_among_what_was_shown_is_unknown_without_gold():
    assert view([], FIRST).gold_among([1]) is None
    assert view([Gold("d2")], FIRST).gold_among([1]) is False
    assert view([Gold("d2")]).gold_among([]) is False
    assert view([Gold("d2")], FIRST, WHOLE).gold_among([1, 2]) is True
    assert view([Gold("d2")], FIRST, WHOLE).gold_among([1]) is False


def test_gold_documents_that_nothing_knows_are_named():
    gold = [Gold("d1"), Gold("a.pdf"), Gold("", chunk="c"), Gold("a.pdf", page=2)]
    assert missing_documents(gold, {"d1", "reports/a.pdf"}) == ("a.pdf",)


def test_an_index_holds_gold_by_its_source_with_its_grade():
    own = {"d1": Document("d1", "pages/a.html", "", "", "")}
    gold = (Gold("d1", "c1", relevance=2), Gold("pages/b.html", page=3))
    assert gold_by_source(gold, own) == (Gold("pages/a.html", relevance=2), Gold("pages/b.html", page=3))
