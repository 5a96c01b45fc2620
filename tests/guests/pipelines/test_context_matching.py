"""Where what a pipeline read stands in the documents of the run."""
import pytest

from ragbed.documents.types import Chunk, Document
from ragbed.experiments.guests.pipelines.context_matching import ContextMatcher
from ragbed.experiments.question import Gold, Question
from ragbed.experiments.running.gold import GoldView, match
from ragbed.strategies import Passage

TEXT = ("The Clifton bridge crosses the river Avon and was opened to the public in the year 1864. "
        "It was designed by Brunel, who did not live to see it finished.")
PAGE = Document("d1", "pages/bridge.html", "Bridge", f"<p>{TEXT}</p>", TEXT)
FIRST, SECOND = Chunk.of(PAGE, "plain", 0, 89), Chunk.of(PAGE, "plain", 89, len(TEXT))
OTHER = Chunk("c9", "d9", "plain", 0, 40, "Cork is a city in the south of Ireland.")


def place(text="", document="", start=0, end=0):
    question = Question("q", "When was the bridge opened?", ("1864",), True, provided=(FIRST, SECOND, OTHER))
    context = Chunk("own", document, "plain", start, end, text)
    found = ContextMatcher(question, {"d1": PAGE, PAGE.source: PAGE}, ()).match((Passage(4, context),))
    (passage,) = found.evidence
    chunk = passage.chunk
    return chunk.id, chunk.document, (chunk.start, chunk.end), chunk.content, found.levels.get(4, "")


def test_a_chunk_that_is_named_by_its_id_has_the_text_that_was_read_or_else_its_own():
    assert place(document="c9") == ("c9", "d9", (0, 40), OTHER.content, "")
    assert place("Cork ...", "c9") == ("c9", "d9", (0, 40), "Cork ...", "")


@pytest.mark.parametrize("name", ["d1", "pages/bridge.html"])
def test_a_text_of_a_named_document_has_its_span_there(name):
    said = "designed by Brunel"
    assert place(said, name) == ("own", "d1", (TEXT.index(said), TEXT.index(said) + 18), said, "")


def test_a_span_that_came_is_taken():
    assert place("built by Brunel", "d1", 89, 110)[:3] == ("own", "d1", (89, 110))


def test_a_text_that_does_not_stand_in_the_document_that_it_names_is_no_gold():
    *_, level = place("built by Brunel", "d1")
    assert level is None
    context = Chunk("own", "d1", "plain", 0, 0, "built by Brunel")
    gold = (Gold("d1", None, "plain", 0, 89),)
    assert match(gold, [Passage(4, context)], str).levels[4] == "document"
    assert match(gold, [Passage(4, context)], str, placed={4: level}) == GoldView({4: None}, {4: frozenset()}, 1)


def test_the_words_of_a_passage_stand_together_and_a_few_that_any_text_holds_place_nothing():
    said = "it was in the city that nobody of them saw who came by the river"
    page = " ".join(f"{word} filler{place} padding{place}" for place, word in enumerate(said.split()))
    question = Question("q", "Which?", (), True, provided=(Chunk("c1", "d1", "plain", 0, 9, page),
                                                        Chunk("c2", "d2", "plain", 0, 9, "Cork")))
    for text in (said, "I was in Cork with all seven of my old friends"):
        (passage,) = ContextMatcher(question, {}, ()).match((Passage(1, Chunk("x", "", "plain", 0, 0, text)),)).evidence
        assert passage.chunk.id == "x"


def test_the_only_chunk_of_a_named_document_is_meant_where_no_text_came():
    assert place(document="d9")[:3] == ("c9", "d9", (0, 40))
    assert place(document="d1")[:2] == ("own", "d1")  # one of two: the document alone is known


def test_without_a_name_a_text_is_found_in_a_chunk_or_around_one_whatever_its_blanks_and_case():
    assert place("the CLIFTON bridge  crosses the river Avon\nand was opened")[:2] == (FIRST.id, "d1")
    assert place(f"Page 3. {OTHER.content} Its people number 224,000.")[:2] == ("c9", "d9")


def test_a_text_that_was_cleaned_in_its_own_way_is_placed_by_most_of_its_words_and_said_so():
    cleaned = "Clifton bridge: crosses river Avon; opened to public in year 1864"
    assert place(cleaned)[0] == FIRST.id
    assert place(cleaned)[-1] == "words"


@pytest.mark.parametrize(("text", "name"), [
    ("Paris is the capital of France and has two million people", ""), ("the bridge", ""), ("", ""),
    ("Paris", "elsewhere.html"), ("was opened to the public when nobody of all these people looked at it", "")])
def test_what_is_nowhere_stays_as_the_pipeline_named_it(text, name):
    assert place(text, name)[:2] == ("own", name)
