"""Perturbations: names that parse back, chunks in the order that was asked, negatives of a sort, `pool@N`."""
import random

import pytest
from each_case import each
from hypothesis import given
from hypothesis import strategies as st

from ragbed.documents import Chunk, Document, SettingsError
from ragbed.experiments import Benchmark, FoundBy, Gold, Mined, Question
from ragbed.experiments.conditions import Perturbation, apply_perturbation
from ragbed.experiments.running.gold import Perturber

A, B, C, D, E = (Chunk(name, "d", "plain", at, at + 1, name) for at, name in enumerate("abcde"))
MANY = [Chunk(f"c{at}", "d", "plain", at, at + 1, str(at)) for at in range(40)]

shown = st.integers(0, 20).map(lambda n: MANY[:n])
golds = st.sets(st.sampled_from([chunk.id for chunk in MANY]), max_size=8)
negatives = st.lists(st.sampled_from(MANY), max_size=12)


def names(chunks):
    return "".join(chunk.id for chunk in chunks)


def change(name):
    return Perturbation.parse(name)


@each("name", ["none", "shuffle", "negatives@5", "gold_at@3", "shuffle+unnumbered",
               "table+negatives@2", "shuffle+drop_gold+negatives@12", "negatives@5:hard", "pool@3",
               "pool@3:bm25", "shuffle+negatives@2:same_name"])
def test_a_name_parses_back(name):
    assert str(change(name)) == name


@each(("name", "says"), [
    ("shufle", "unnumbered, drop_gold, table, negatives@N"), ("negatives", "negatives@N"), ("shuffle@2", "unknown"),
    ("negatives@0", "unknown"), ("shuffle+shuffle", "unknown"), ("none+shuffle", "unknown"), ("", "unknown"),
    ("drop_gold+gold_at@1", "cannot be combined"), ("table+drop_gold", "replaces all chunks"),
    ("gold_at@2+table", "replaces all chunks")])
def test_an_unknown_or_contradictory_perturbation_is_one_line(name, says):
    with pytest.raises(SettingsError, match=says) as refused:
        change(name)
    assert "\n" not in str(refused.value)


@each(("name", "expected"), [
    ("none", "abcd"), ("unnumbered", "abcd"), ("drop_gold", "ac"), ("gold_at@1", "bdac"), ("gold_at@2", "abdc"),
    ("gold_at@3", "acbd"), ("gold_at@99", "acbd"), ("negatives@1", "abcde"), ("negatives@7", "abcde"),
    ("drop_gold+negatives@1", "ace"), ("gold_at@4+negatives@1", "acebd")])
def test_what_each_does_to_four_chunks_of_which_two_are_gold(name, expected):
    assert names(apply_perturbation([A, B, C, D], change(name), {"b", "d"}, [A, B, E, E])) == expected


def test_a_shuffle_is_the_same_for_the_same_seed_and_differs_between_questions():
    orders = [names(apply_perturbation(MANY[:10], change("shuffle"), rng=random.Random(seed)))
              for seed in ("1:a", "1:a", "1:b")]
    assert orders[0] == orders[1] != orders[2]
    assert orders[0] != names(MANY[:10])


@given(shown, golds, negatives, st.integers(0, 9), st.booleans(), st.integers(0, 30), st.booleans(), st.integers())
def test_no_chunk_is_lost_or_doubled_and_gold_stands_where_it_should(
        chunks, gold, extra, count, shuffle, position, drop, seed):
    what = Perturbation(drop_gold=drop, negatives=count, shuffle=shuffle, gold_at=0 if drop else position)
    after = apply_perturbation(chunks, what, gold, extra, random.Random(seed))
    kept = {chunk.id for chunk in chunks if not (drop and chunk.id in gold)}
    added = {chunk.id for chunk in after} - kept
    assert len(after) == len({chunk.id for chunk in after})
    assert kept <= {chunk.id for chunk in after}
    assert not added & gold
    assert not added & {chunk.id for chunk in chunks}
    possible = {chunk.id for chunk in extra} - gold - {chunk.id for chunk in chunks}
    assert added <= possible
    assert len(added) == min(count, len(possible))
    places = [at for at, chunk in enumerate(after, 1) if chunk.id in gold]
    if what.gold_at and places:
        others = len(after) - len(places)
        assert places == list(range(places[0], places[0] + len(places)))
        assert places[0] == min(what.gold_at, others + 1)


@given(shown, golds, negatives, st.integers(0, 9), st.integers())
def test_a_shuffle_does_not_look_at_the_gold(chunks, gold, extra, count, seed):
    what = Perturbation(shuffle=True, negatives=count)
    usable = [chunk for chunk in extra if chunk.id not in gold]
    assert (apply_perturbation(chunks, what, gold, usable, random.Random(seed))
            == apply_perturbation(chunks, what, (), usable, random.Random(seed)))


def chunk(name):
    return Chunk(name, f"doc-{name}", "plain", 0, 10, f"text of {name}")


GOLD, OTHER = chunk("gold"), chunk("other")
NEGATIVES = {name: chunk(name) for name in ("n1", "n2", "n3", "n4")}


def mined(miner, hardness, bucket):
    return Mined(miner, (FoundBy("dense", 9, 0.5), FoundBy(miner, 1, 1.0)), hardness, bucket)


QUESTION = Question(
    "q", "Which is gold?", ("gold",), True, gold=(Gold("doc-gold", "gold"),),
    provided=(NEGATIVES["n4"], GOLD, NEGATIVES["n1"], OTHER), negatives=(NEGATIVES["n2"], NEGATIVES["n3"]),
    mined={"n1": mined("dense", 0.9, "hard"), "n4": mined("dense", 0.8, "hard"), "n2": mined("bm25", 0.5, "medium"),
           "n3": mined("bm25", 0.2, "easy")})
BENCHMARK = Benchmark("b", (QUESTION,), {f"doc-{name}": Document(f"doc-{name}", name, "", "", "")
                                         for name in ("gold", "other", *NEGATIVES)})
PERTURBER = Perturber(BENCHMARK, lambda id: id)


@each(("name", "taken", "notes"), [
    ("negatives@1", "n1", []), ("negatives@3", "n1 n2 n4", []), ("negatives@4", "n1 n2 n4 n3", []),
    ("negatives@9", "n1 n2 n4 n3", ["negatives:4 of 9"]), ("negatives@2:hard", "n1 n4", []),
    ("negatives@1:easy", "n3", []), ("negatives@2:bm25", "n2 n3", []),
    ("negatives@4:dense", "n1 n4", ["negatives:2 of 4"]),  # dense found the others too
    ("negatives@3:hard", "n1 n4", ["negatives:2 of 3"])])
def test_mined_negatives_come_one_of_each_miner_in_turn_and_none_of_another_sort(name, taken, notes):
    changed = PERTURBER.changed(Perturbation.parse(name), QUESTION, (GOLD,), QUESTION.gold, 0)
    assert ([one.id for one in changed.chunks], list(changed.notes)) == (["gold", *taken.split()], notes)


def test_a_question_for_which_nothing_was_mined_gets_nothing_drawn_either():
    bare = Question("p", "Which?", ("gold",), True, gold=QUESTION.gold, provided=(GOLD, OTHER))
    both = Perturber(Benchmark("b", (QUESTION, bare), BENCHMARK.documents), lambda id: id)
    changed = both.changed(Perturbation.parse("negatives@2"), bare, (GOLD,), bare.gold, 0)
    assert (changed.chunks, changed.notes) == ((GOLD,), ("negatives:0 of 2",))


@pytest.mark.parametrize(("name", "found", "notes"), [
    ("pool@2", "gold n1 n2", []), ("pool@2:hard", "gold n1 n4", []), ("pool@5:easy", "gold n3", ["pool:1 of 5"]),
    ("pool@9", "gold n1 n2 n4 n3", ["pool:4 of 9"]), ("drop_gold+pool@2", "n1 n2", [])])
def test_what_is_searched_is_the_gold_where_it_is_left_and_as_many_negatives(name, found, notes):
    changed = PERTURBER.searched(Perturbation.parse(name), QUESTION, QUESTION.provided, 0)
    assert ([one.id for one in changed.chunks], list(changed.notes)) == (found.split(), notes)
