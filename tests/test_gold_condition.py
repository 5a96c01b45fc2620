"""The condition `gold` over an index: gold that names only a document or a page is narrowed to passages by words."""
import json

import pytest

from ragbed.documents.types import Chunk
from ragbed.experiments import Gold, Question
from ragbed.experiments.running.gold import Places

FILLER = "The ferry crosses the river at noon, and nobody on the quay minds the rain."


DOCUMENT = (Gold("a.pdf"),)


def shown(texts, *answers, gold=DOCUMENT, question="How long is the warranty of the pump?"):
    """The positions of the passages that are shown, and the notes. Two passages make a page."""
    chunks = [Chunk(str(at), "a", "plain", 0, len(text), text, "", (at // 2 + 1, at // 2 + 1))
              for at, text in enumerate(texts)]
    placed = Places(chunks, {"a": "a.pdf"}.get).best_gold(gold, Question("q", question, answers, True))
    return [int(chunk.id) for chunk in placed.chunks], placed.notes


@pytest.mark.parametrize(("text", "answer"), [
    ("It lasts 24 months.", "24 months"), ("Revenue: 1,577", "$1577.00"), ("Signed on March 3, 2021.", "2021-03-03"),
    ("The pump is covered by the maker for two years after delivery.", "Two years after the delivery, by the maker"),
    ("The vote was lost.", "The warranty of the pump was lost.")])
def test_a_document_is_narrowed_to_the_passages_that_hold_the_answer(text, answer):
    assert shown([FILLER] * 4 + [text] + [FILLER] * 4, answer) == ([4], ())


def test_quotes_come_before_answers_and_any_answer_counts():
    texts = ["Refunds take 24 months.", FILLER, "The warranty lasts two years, or 24 months.", FILLER]
    assert shown(texts, "24 months", gold=[Gold("a.pdf", quotes=("warranty lasts two years",))]) == ([2], ())
    assert shown(texts, "730 days", "24 months") == ([0, 2], ())
    assert shown(texts, "24 months", gold=[Gold("a.pdf", quotes=("it lasts for a decade at most",))]) == ([0, 2], ())


def test_a_page_is_narrowed_too_and_shown_whole_without_the_words():
    texts = [FILLER, "24 months", FILLER, "24 months", "24 months", FILLER]
    assert shown(texts, "24 months", gold=[Gold("a.pdf", page=2)]) == ([3], ())
    assert shown(texts, "30 months", gold=[Gold("a.pdf", page=2)]) == ([2, 3], ())


def test_of_many_passages_five_are_shown_that_share_the_most_words_with_the_question():
    texts = [f"Section {at}: 24 months." for at in range(12)]
    for at in (3, 7, 8, 9, 11):
        texts[at] += " The pump has a warranty."
    assert shown(texts, "24 months") == ([3, 7, 8, 9, 11], ())


def test_a_long_document_without_the_words_is_shown_whole_with_a_note_and_a_short_one_without():
    assert shown([FILLER] * 6, "24 months") == ([0, 1, 2, 3, 4, 5], ("gold_whole:114",))
    assert shown([FILLER] * 5, "24 months") == ([0, 1, 2, 3, 4], ())
    assert shown([FILLER] * 6, "yes") == ([0, 1, 2, 3, 4, 5], ("gold_whole:114",))
    assert shown(["24 months", FILLER], "24 months", gold=[Gold("", chunk="1")]) == ([1], ())


def test_the_dry_run_and_the_run_say_which_questions_show_whole_documents(ragbed, serve, town):
    parts = [f"## Part {part}\n\n" + "Oslo is the capital of Norway. " * 40 for part in range(8)]
    parts[5] = "## Part 5\n\nThe ferry to the island costs 48 kroner.\n\n" + parts[5]
    own = town.own({"id": "a", "question": "What is the fare?", "answer": "48 kroner", "gold_documents": ["oslo.md"]},
                   {"id": "b", "question": "Who sails it?", "answer": "Captain Berg", "gold_documents": ["oslo.md"]},
                   pages={"oslo.md": "# Oslo\n\n" + "\n\n".join(parts)})
    server = serve(lambda _: "<Answer>48 kroner [1]</Answer>")
    warning = "gold: 1 of 2 questions show whole documents, the largest of "
    for scoring, sizes in (("corrected", [1, 16]), ("as-published", [16, 16])):
        path = town.config(server.url, benchmark=own, conditions="gold", scoring=scoring)
        status, out, err = ragbed("run", path, "--json", "--fresh")
        assert status == 0, err
        results = sorted((one["result"] for one in town.records()), key=lambda one: one["question"])
        assert [len(result["evidence"]) for result in results] == sizes
        told = scoring == "corrected"
        assert (warning in err, any(note.startswith(warning) for note in json.loads(out)["notes"])) == (told, told)
        if told:
            assert "48 kroner" in server.requests[0][0]["messages"][1]["content"]
            assert warning in ragbed("run", path, "--dry-run")[2]
