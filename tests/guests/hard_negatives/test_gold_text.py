"""The guard without answers: what it recognises of the gold's text, and what it says it cannot see."""
import json

import pytest
from each_case import each

from ragbed.documents import Chunk
from ragbed.experiments import Question
from ragbed.experiments.guests.hard_negatives.guard import Guard, RareWords, Thresholds

ASKED = "How many parcels did the Esk depot handle?"
GOLD = ("Esk lies by the sea. The depot at Esk handled 1,577 parcels in 2021, as Ada Holm reported. "
        "Most of its workers live near the old harbour of the town.")
OTHERS = ["The Esk ferry carries mail.", "Lund has a bell.", "Oslo froze in 1871."] * 9


def decide(text, asked=ASKED, gold=GOLD, others=OTHERS, answers=()):
    chunk = Chunk("gold", "d", "plain", 0, len(gold), gold)
    guard = Guard(Question("q", asked, answers, True), [chunk], Thresholds(), RareWords([gold, *others]))
    found = guard.check(Chunk("c", "e", "plain", 0, len(text), text))
    return found and found.reason


@each(("text", "found"), [
    ("News of the day. " * 9 + "Most of its workers live near the old harbour of the town. " + "Rain fell. " * 9,
     "gold_sentence"),
    ("A report of 2021 by Ada Holm says that 1,577 parcels were handled at the Esk depot. " + "Rain fell. " * 20,
     "gold_words"),
    ("The depot of Esk took in parcels, of which 1577 were handled. " + "Rain fell. " * 20, "gold_detail"),
    ("The Esk depot handles parcels. There were 1,577. " + "Rain fell. " * 20, "gold_detail"),  # over two sentences
    ("The depot at Esk handled 1,204 parcels in 2020, as Ada Holm reported.", "gold_detail"),
    ("The depot at Esk handled 1,204 parcels in 2020, as others reported.", None),  # other figures
    ("Ada Holm reported from Lund.", None),  # a name alone
    ("The depot at Esk handled many parcels.", None),
    ("In 1577 the sea froze.", None)])
def test_a_candidate_that_states_what_the_gold_states_is_left_out(text, found):
    assert decide(text) == found


def test_a_detail_that_many_passages_have_identifies_nothing():
    text = "The depot of Esk took in parcels, of which 1577 were handled. " + "Rain fell. " * 20
    assert decide(text, others=[*OTHERS, *["In 1577 and 2021 Ada Holm wrote."] * 30]) is None


def test_answers_that_can_be_searched_for_are_searched_for_alone():
    text = "The depot of Esk took in parcels, of which 1577 were handled. " + "Rain fell. " * 20
    assert decide(text, answers=("Ada Holm",)) is None
    assert decide(text, answers=("yes",)) == "gold_detail"


PLANTED = {
    "same": "Esk news. The warranty of an Esk pump lasts 24 months from the day of delivery. Read on.",
    "turned": "From the day of delivery, an Esk pump has a warranty that lasts for 24 months.",
    "short": "Warranty for Esk pumps: 24 months.",
    "long": "Customers often ask about pumps. An Esk pump comes with a warranty. It runs for 24 months, the shop says.",
    "name": "The warranty on every pump by Esk is good for 24 months, says the maker.",
    "words": "An Esk pump is under warranty for two years after it has been delivered."}
HARD = {"other": "The warranty of a Lund pump lasts 36 months from the day of sale.",
        "shop": "The Esk shop sells pumps.", "river": "The Esk is a river in Lund.",
        "care": "Clean the filter of a pump every year."}


@pytest.fixture
def collection(tmp_path):
    gold = "The warranty of an Esk pump lasts 24 months from the day of delivery. Keep the bill."
    folder = tmp_path / "pumps"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text("".join(
        json.dumps({"_id": id, "title": "", "text": text}) + "\n"
        for id, text in {"gold": gold, **PLANTED, **HARD}.items()))
    (folder / "queries.jsonl").write_text(
        json.dumps({"_id": "1", "text": "How long is the warranty of an Esk pump?"}) + "\n")
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\tgold\t1\n")
    return folder


def negatives(ragbed, folder, out, *more):
    """Mine four negatives; return their texts and what was said and counted."""
    status, said, err = ragbed("negatives", "beir", folder, "--fill", "0", "--per-question", "4", "--out", out, *more)
    assert status == 0, err
    (question,) = [json.loads(line) for line in (out / "questions.jsonl").read_text().splitlines()]
    chunks = [json.loads(line)["chunk"] for line in (out / "chunks.jsonl").read_text().splitlines()]
    return ({one["content"].strip() for one in chunks if one["id"] in question["negatives"]}, " ".join(said.split()),
            json.loads((out / "manifest.json").read_text())["counts"]["guard"]["checked"])


@pytest.mark.parametrize(("more", "reranked", "asked"), [
    ((), 1, "and a reranker for 1 of 1."),
    (("--reranker", "none"), 0, "and a reranker for 0 of 1 (--reranker late_interaction).")])
def test_planted_passages_that_tell_the_answer_are_left_out_without_answers(
        more, reranked, asked, collection, ragbed, tmp_path):
    found, said, checked = negatives(ragbed, collection, tmp_path / "m", *more)
    assert found & set(PLANTED.values()) <= {PLANTED["words"]}  # in entirely other words: `two years`
    assert len(found & set(HARD.values())) >= 3
    assert checked == {"answers": 0, "gold": 1, "neither": 0, "reranker": reranked}
    assert ("The guard compared candidates with the gold texts for 1 without answers to search for, "
            f"{asked} It does not see an answer in entirely other words.") in said
