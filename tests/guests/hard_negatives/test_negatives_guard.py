"""The guard against false negatives: what it leaves out, why, and how choosing goes on past it."""
from dataclasses import replace

import pytest
from each_case import each

from ragbed.documents import Chunk
from ragbed.experiments import Question
from ragbed.experiments.guests.datasets.hotpotqa import HotpotQa
from ragbed.experiments.guests.hard_negatives.guard import Guard, GuardedIndex, RareWords, Thresholds
from ragbed.experiments.guests.hard_negatives.miners import MiningQuery
from ragbed.experiments.guests.hard_negatives.mining import count_outcomes
from ragbed.experiments.guests.hard_negatives.selection import MiningTask, RerankerScores, rate_hardness, select
from ragbed.retrieval import Hit

GOLD = "The Esk depot by the old harbour handled 1,577 parcels in the year 2021, more than any other."


def chunk(id, text):
    return Chunk(id, f"d-{id}", "plain", 0, len(text), text)


def wanted(answers=("1,577 parcels",), fill=0, further=9, gold=(GOLD,), **fields):
    question = Question("q", "How many parcels did Esk handle in 2021?", answers, answerable=bool(gold), **fields)
    gold = tuple(chunk(f"gold{at}", text) for at, text in enumerate(gold))
    return MiningTask(question, MiningQuery("q", question.text), gold, False, gold, fill, further)


def decided(text, one=None, common=()):
    one = one or wanted()
    found = Guard(one.question, one.gold, Thresholds(), RareWords(common)).check(chunk("c", text))
    return found and (found.reason, dict(found.figures))


CHOICE = {"answers": ("B",), "options": (("A", "in Oslo"), ("B", "in Lund"))}
KOREAN = {"answers": ("카카오뱅크",), "gold": ("카카오뱅크가 상장했다.",)}
NAME, DEPOT = {"answers": ("Johnny Manziel",)}, {"answers": ("Esk Depot",)}
LONG = {"answers": ("the depot by the harbour closed after fire damage",)}


@each(("text", "asked", "common", "found"), [
    ("It took 1577 Parcels then.", {}, (), ("answer", {"answer": "1,577 parcels"})),  # also in other figures
    ("It took 157 parcels then.", {}, (), None),
    ("Seven.", {"answers": ("7",)}, (), None),  # stands anywhere and tells nothing
    ("The bell B hangs in Lund today.", CHOICE, (), ("answer", {"answer": "in Lund"})),  # the option, not its letter
    ("The bell B hangs in Oslo today.", CHOICE, (), None),
    ("올해는 카카오뱅크에서 발표했다.", KOREAN, (), ("answer", {"answer": "카카오뱅크"})),  # before a particle
    ("올해는 케이뱅크에서 발표했다.", KOREAN, (), None),
    ("Manziel is the first to win it.", NAME, (), ("answer_name", {"word": "manziel"})),  # a rare word of a name
    ("Manziel is the first to win it.", NAME, ["Manziel won."] * 21, None),  # but no common one
    ("The Esk depot in Lund.", DEPOT, (), ("answer", {"answer": "Esk Depot"})),
    ("The Esk harbour.", DEPOT, (), None),  # a word of the question
    ("The first of all.", {"answers": ("the first man",)}, (), None),
    ("After fire damage, the harbour depot was closed.", LONG, (),
     ("answer_words", {"answer": LONG["answers"][0], "share": 0.857})),
    ("The depot closed in winter.", LONG, (), None)])
def test_a_candidate_that_tells_an_answer_is_left_out_with_the_reason(text, asked, common, found):
    assert decided(text, wanted(**asked), common) == found


def test_almost_the_gold_or_a_part_of_it_is_left_out_but_not_with_other_figures():
    reason, figures = decided(GOLD.replace("more than any other", "more than all others").replace("1,577", ""))
    assert (reason, figures["gold"]) == ("near_duplicate", "gold0")
    assert figures["same"] > 0.5
    assert decided("the Esk depot by the old harbour handled")[0] == "near_duplicate"
    assert decided(GOLD.replace("2021", "2020").replace("1,577", "1,204")) is None


def test_an_unanswerable_question_has_no_gold_to_be_like_and_its_stated_answer_still_tells():
    assert decided(GOLD, wanted(answers=(), gold=())) is None
    assert decided(GOLD, wanted(gold=())) == ("answer", {"answer": "1,577 parcels"})


# Choosing.

A, B, C, D, E = (chunk(id, text) for id, text in (
    ("a", "Lund has a bell."), ("b", "1577 parcels."), ("c", "Oslo froze."), ("d", "Rome is old."),
    ("e", "Lund has a bell.")))


def hits(name, *chunks):
    return [Hit(one, 1.0 / rank, rank, name) for rank, one in enumerate(chunks, 1)]


def chosen(one, found, scorer=None):
    scores = RerankerScores(scorer)
    made = select(one, found, Guard(one.question, one.gold, Thresholds(), RareWords(())), scores)
    while scores.score():
        made = select(one, found, Guard(one.question, one.gold, Thresholds(), RareWords(())), scores)
    return made


def ids(chunks):
    return [one.id for one in chunks]


def test_the_first_miner_fills_up_and_then_they_take_turns_past_what_is_rejected():
    made = chosen(wanted(fill=1, further=2), {"dense": hits("dense", B, A, C), "bm25": hits("bm25", B, D, A)})
    assert ids(made.chunks) == ["a", "c", "d"]
    assert made.fill == 1
    assert made.miners == {"a": "dense", "c": "dense", "d": "bm25"}
    assert [(one.miner, one.rank) for one in made.found["a"]] == [("dense", 2), ("bm25", 3)]
    (rejected,) = made.rejected
    assert (rejected.chunk.id, rejected.reason) == ("b", "answer")
    assert [one.miner for one in rejected.found] == ["dense", "bm25"]


def test_what_the_guard_rejects_is_counted_by_the_best_rank_that_is_more_than_chance():
    far = [chunk(f"f{at}", f"Town {at} froze.") for at in range(6)]
    made = chosen(wanted(further=7), {"bm25": hits("bm25", *far, B), "random": hits("random", B, A)})
    ranks = count_outcomes([wanted()], [made], [], [0.5])["guard"]["ranks"]
    assert ranks == {"1-5": {"kept": 5, "rejected": 0}, "6-10": {"kept": 1, "rejected": 1},
                     "11-20": {"kept": 0, "rejected": 0}, "later": {"kept": 0, "rejected": 0}}


def test_no_text_comes_twice():
    made = chosen(wanted(), {"dense": hits("dense", A, E)})
    assert ids(made.chunks) == ["a"]
    assert [(one.chunk.id, one.reason) for one in made.rejected] == [("e", "repeated")]


class Ranker:
    """Scores by the number of letters `l`; the texts that it was given are kept."""

    def __init__(self):
        self.asked = []

    def scores(self, queries, texts):
        self.asked += texts
        return [[float(text.count("l")) for text in own] for own in texts]


def test_what_the_reranker_scores_above_all_gold_is_left_out_with_both_scores():
    ranker = Ranker()
    one = wanted(further=1, gold=("No bell.", "A bird."))
    made = chosen(one, {"dense": hits("dense", chunk("l", "Lilly fell ill."), A, D)}, ranker)
    assert ids(made.chunks) == ["a"]  # two, as in the gold: not above it
    assert [(one.chunk.id, one.reason, dict(one.figures)) for one in made.rejected] == [
        ("l", "reranker", {"score": 6.0, "gold": 2.0})]
    assert len(ranker.asked) == 2  # the candidate that came in place of the first was scored too
    assert chosen(replace(one, gold=()), {"dense": hits("dense", C)}, ranker).rejected == ()


@pytest.mark.parametrize(("cosines", "buckets"), [
    ((0.9, 0.1, 0.5), ["hard", "easy", "medium"]), ((0.4, 0.4, 0.4), ["hard", "medium", "easy"]),
    ((0.2, -0.3), ["hard", "medium"]), ((0.7,), ["hard"])])
def test_hardness_is_the_cosine_and_buckets_are_thirds_of_the_question(cosines, buckets):
    made = chosen(wanted(), {"dense": hits("dense", *(A, C, D)[:len(cosines)])})
    how = rate_hardness(made, cosines)
    assert [how[id].bucket for id in ids(made.chunks)] == buckets
    assert [how[id].hardness for id in ids(made.chunks)] == [max(0.0, cosine) for cosine in cosines]


def test_a_whole_index_is_guarded_as_each_of_its_chunks_by_itself(data):
    benchmark = HotpotQa(path=str(data / "hotpotqa" / "hotpotqa_100.json"), limit=8).load()
    index = GuardedIndex(benchmark.all_chunks)
    for question in benchmark.questions:
        gold = [chunk for chunk in question.provided if chunk.id in {one.chunk for one in question.gold}]
        guard = Guard(question, gold, Thresholds(), index)
        alone = [found for chunk in index.chunks if (found := guard.check(chunk)) is not None]
        assert list(index.find_rejected(question, gold)) == alone
