"""Negatives of a sort, and negatives that are searched: `negatives@N:hard`, `pool@N`."""
from documents import Chunk, Document
from experiments import Benchmark, FoundBy, Gold, Mined, Question
from experiments.running.gold import Perturber
from retrieval import Perturbation


def chunk(name):
    return Chunk(name, f"doc-{name}", "plain", 0, 10, f"text of {name}")


GOLD, OTHER = chunk("gold"), chunk("other")
NEGATIVES = {name: chunk(name) for name in ("n1", "n2", "n3", "n4")}


def mined(miner, hardness, bucket):
    return Mined(miner, (FoundBy("dense", 9, 0.5), FoundBy(miner, 1, 1.0)), hardness, bucket)


QUESTION = Question(
    "q", "Which is gold?", ("gold",), True, gold=(Gold("doc-gold", "gold"),),
    given=(NEGATIVES["n4"], GOLD, NEGATIVES["n1"], OTHER), negatives=(NEGATIVES["n2"], NEGATIVES["n3"]),
    mined={"n1": mined("dense", 0.9, "hard"), "n4": mined("dense", 0.8, "hard"), "n2": mined("bm25", 0.5, "medium"),
           "n3": mined("bm25", 0.2, "easy")})
BENCHMARK = Benchmark("b", (QUESTION,), {f"doc-{name}": Document(f"doc-{name}", name, "", "", "")
                                         for name in ("gold", "other", *NEGATIVES)})
PERTURBER = Perturber(BENCHMARK, lambda id: id)


def after(name, chunks=(GOLD,)):
    changed = PERTURBER.changed(Perturbation.parse(name), QUESTION, chunks, QUESTION.gold, 0)
    return [one.id for one in changed.chunks], list(changed.notes)


def among(name):
    changed = PERTURBER.searched(Perturbation.parse(name), QUESTION, QUESTION.given, 0)
    return [one.id for one in changed.chunks], list(changed.notes)


def test_mined_negatives_come_one_of_each_miner_in_turn_whatever_their_place_among_the_chunks_given():
    assert after("negatives@1") == (["gold", "n1"], [])
    assert after("negatives@3") == (["gold", "n1", "n2", "n4"], [])
    assert after("negatives@4") == (["gold", "n1", "n2", "n4", "n3"], [])


def test_a_dose_ends_with_what_was_mined_and_a_note_says_so():
    assert after("negatives@9") == (["gold", "n1", "n2", "n4", "n3"], ["negatives:4 of 9"])
    assert among("pool@9") == (["gold", "n1", "n2", "n4", "n3"], ["pool:4 of 9"])


def test_a_question_for_which_nothing_was_mined_gets_nothing_drawn_either():
    bare = Question("p", "Which?", ("gold",), True, gold=QUESTION.gold, given=(GOLD, OTHER))
    both = Perturber(Benchmark("b", (QUESTION, bare), BENCHMARK.documents), lambda id: id)
    changed = both.changed(Perturbation.parse("negatives@2"), bare, (GOLD,), bare.gold, 0)
    assert (changed.chunks, changed.notes) == ((GOLD,), ("negatives:0 of 2",))


def test_negatives_are_of_a_hardness_or_of_the_miner_whose_turn_took_them():
    assert after("negatives@2:hard") == (["gold", "n1", "n4"], [])
    assert after("negatives@1:easy") == (["gold", "n3"], [])
    assert after("negatives@2:bm25") == (["gold", "n2", "n3"], [])
    assert after("negatives@4:dense") == (["gold", "n1", "n4"], ["negatives:2 of 4"])  # dense found the others too


def test_where_there_are_too_few_of_a_sort_none_of_another_fill_up_and_a_note_says_so():
    assert after("negatives@3:hard") == (["gold", "n1", "n4"], ["negatives:2 of 3"])


def test_what_is_searched_is_the_gold_and_as_many_negatives():
    assert among("pool@2") == (["gold", "n1", "n2"], [])
    assert among("pool@2:hard") == (["gold", "n1", "n4"], [])
    assert among("pool@5:easy") == (["gold", "n3"], ["pool:1 of 5"])


def test_without_gold_only_negatives_are_searched():
    assert among("drop_gold+pool@2") == (["n1", "n2"], [])


def test_names_read_back():
    for name in ("negatives@5:hard", "pool@3", "pool@3:bm25", "shuffle+negatives@2:same_name"):
        assert str(Perturbation.parse(name)) == name
