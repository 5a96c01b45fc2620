"""quote_first: quotes are copied out, looked up, and all that the answer is made of."""
import pytest
from disciplined import Told, decided
from each_case import each
from gathering import QUESTION

from ragbed.documents import Chunk
from ragbed.experiments.guests.more_strategies.parts.quotes import (
    OfferedQuote,
    Quote,
    find_quotes,
    read_quotes,
    reduce_to_quotes,
)
from ragbed.strategies import REFUSAL, Passage
from ragbed.strategies.settings.strategy_config import reasoning

TEXTS = {"jaws": "Jaws is a film. It was directed by “Steven Spielberg” in 1975. It made money.",
         "spielberg": "Steven Spielberg was born in Cincinnati, Ohio. He lives elsewhere.", "shark": "Sharks swim."}
REPLY = ('[1] "It was directed by \'steven  spielberg\' in 1975"\n[2] "Steven Spielberg was born in Cincinnati"\n'
         '[3] "Sharks sing."')


def played(reply=REPLY, answer="<Answer>Cincinnati [2]</Answer>", changes=None, library=None, **settings):
    """The scene, and the answer."""
    scene = Told(library or {"": "jaws spielberg shark"}, {"quote": reply, "answer": answer}, texts=TEXTS)
    return scene, scene.play("once", reasoning({"kind": "quote_first", **settings}), **(changes or {}))


def test_the_answer_is_made_of_the_quotes_that_are_there_under_their_documents_numbers():
    scene, answer = played()
    assert scene.purposes == ["quote", "answer"]
    assert [call.shown for call in scene.calls] == [(1, 2, 3), (1, 2)]
    last = scene.prompt(1)
    assert ("[1]\nIt was directed by “Steven Spielberg” in 1975\n\n"
            "[2]\nSteven Spielberg was born in Cincinnati\n") in last
    assert "It made money" not in last
    assert "Sharks" not in last
    assert (answer.text, answer.cited) == ("Cincinnati [2]", (2,))
    assert answer.figures == {"quotes": 3.0, "quotes_found": pytest.approx(2 / 3)}
    assert decided(answer) == [("drops quotes", "1 of 3 are in no document")]


@pytest.mark.parametrize("reply", ["NONE", "", '[1] "Nothing of this is there."', "No relevant quotes were found."])
def test_without_a_quote_grounded_rules_refuse_and_no_answer_is_asked_for(reply):
    scene, answer = played(reply)
    assert scene.purposes == ["quote"]
    assert (answer.outcome, answer.text, answer.notes) == ("refused", REFUSAL, ("no_quotes",))
    assert decided(answer)[-1] == ("refuses", "no quote bears on the question")
    assert ("quotes_found" in answer.figures) == reply.startswith("[1]")


@pytest.mark.parametrize("changes", [{"rules": "open"}, {"rules": "reading"},
                                     {"rules": "choice", "options": (("A", "Cincinnati"), ("B", "Utah"))}])
def test_without_a_quote_rules_that_allow_no_refusal_answer_from_the_whole_documents(changes):
    scene, answer = played("NONE", "<Answer>A</Answer>", changes)
    assert scene.purposes == ["quote", "answer"]
    assert scene.calls[1].shown == (1, 2, 3)
    assert "It made money" in scene.prompt(1)
    assert (answer.outcome, answer.notes) == ("answered", ("no_quotes",))


def test_closed_book_and_empty_evidence_ask_for_the_answer_alone():
    for changes, library in (({"rules": "closed-book"}, None), ({}, {QUESTION: ""})):
        scene, answer = played(changes=changes, library=library)
        assert scene.purposes == ["answer"]
        assert (scene.calls[0].shown, answer.notes) == ((), ("no_quotes",))


def test_without_separators_quotes_have_no_numbers():
    scene, _ = played('"Steven Spielberg was born in Cincinnati"', changes={"separators": False})
    assert "[1]" not in scene.prompt(0)
    assert "<documents>\nSteven Spielberg was born in Cincinnati\n\n</documents>" in scene.prompt(1)


def passage(number, text, format="plain"):
    return Passage(number, Chunk(f"c{number}", "d", format, 0, len(text), text))


@each(("source", "said", "span"), [
    ("It is 5 km long.", "it IS  5\tkm long", "It is 5 km long"), ("Say “go” now.", 'Say "go" now', "Say “go” now"),
    ("It's late.", "It’s late", "It's late"), ("in 1990–1995", "1990-1995", "1990–1995"),
    ("A party began.", "art", None), ("12,500 people", "2,500 people", None), ("It was 3.5 km", "3.5 km.", "3.5 km"),
    ("They did not go.", "They did go", None), ("a b c d e", "a b ... d e", "a b\nd e"), ("b then a", "a ... b", None),
    ("Ｆｕｌｌ width", "full width", "Ｆｕｌｌ width"), ("서울은 수도이다", "서울", "서울"),
    ("東京は首都です", "は首都", "は首都"),
    ("12,500 people", "500 people", None), ("5km away", "5 km away", "5km away"),
    ("x < 5 and y > 3", "x < 5 and y > 3", "x < 5 and y > 3"), ("x < 5 and y > 3", "x 3", None), ("abc", "…", None),
    ("a b", "a", None), ("straße", "STRASSE", "straße")])
def test_a_quote_is_found_where_its_words_and_marks_stand_in_order(source, said, span):
    evidence = (passage(1, source),)
    found = [quote for quote in find_quotes([OfferedQuote(said)], evidence) if quote]
    assert [one.chunk.content for one in reduce_to_quotes(evidence, found)] == ([span] if span else [])


@pytest.mark.parametrize("said", [
    "Town 4 1,444 people & dogs", "<td>Town&nbsp;4</td> <td>1,444 people &amp; dogs</td>"])
def test_in_html_tags_and_entities_make_no_difference(said):
    evidence = (passage(1, "<tr><td>Town&nbsp;4</td><td>1,444 people &amp; dogs</td></tr>", "html"),)
    assert find_quotes([OfferedQuote(said)], evidence) == [Quote(1, ((8, 51),))]


def test_a_quote_goes_to_the_document_it_names_or_to_the_first_that_has_it():
    evidence = (passage(2, "same words"), passage(5, "same words"))
    offered = [OfferedQuote("same words", n) for n in (5, 2, 9, None)]
    numbers = [quote.number for quote in find_quotes(offered, evidence)]
    assert numbers == [5, 2, 2, 2]


def test_quotes_that_overlap_are_shown_once_and_in_the_order_of_the_document():
    evidence = (passage(1, "one two three four five six"),)
    found = find_quotes([OfferedQuote("five six"), OfferedQuote("one two"), OfferedQuote("two three")], evidence)
    assert reduce_to_quotes(evidence, found)[0].chunk.content == "one two three\nfive six"


@each(("reply", "offered"), [
    ('[2] "a fine day"', [("a fine day", 2)]), ("- [2]: a fine day", [("a fine day", 2)]),
    ('1. "a fine day" [2]', [("a fine day", 2)]), ("**Document [2]**: “a fine day”", [("a fine day", 2)]),
    ("Here they are:\n[2] a fine day\nThat is all.", [("a fine day", 2)]), ("a fine day", [("a fine day", None)]),
    ("[1] a day\n[1] A DAY\n[2] b day", [("a day", 1), ("b day", 2)]), ("[1] NONE", []), ('"NONE"', []), ("없음", []),
    ("<think>[1] no</think>[1] yes it is", [("yes it is", 1)]), ('[1] ""', []), ("None of them.", []),
    ("No man is an island.", [("No man is an island.", None)])])
def test_quotes_are_read_in_the_forms_that_models_write(reply, offered):
    assert read_quotes(reply, 8) == [OfferedQuote(*one) for one in offered]


def test_no_more_quotes_are_taken_than_were_asked_for():
    assert len(read_quotes("\n".join(f"[1] quote {n}" for n in range(50)), 8)) == 8
