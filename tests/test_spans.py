"""Characters found against gold characters, by hand and against sets of characters."""
import pytest
from hypothesis import given
from hypothesis import strategies as some

from ragbed.experiments import Scored, score
from ragbed.experiments.guests.retrieval_evaluation.statistics import precision_omega
from ragbed.experiments.metrics import Extent

NAMES = ("char_recall@5", "char_precision@5", "char_iou@5")


def extents(*spans, document="d"):
    return tuple(Extent(document, "plain", start, end) for start, end in spans)


def figures(found, marked, names=NAMES, searched=True):
    item = Scored("searched", True, found=found, marked=marked, gold_total=len(marked), searched=searched)
    scores = score(item, groups=("spans",), wanted=names)
    return [scores[name] for name in names]


def test_half_of_the_gold_in_a_chunk_of_twice_its_size():
    # Gold 10 to 30, found 20 to 60: ten characters of both, 20 gold, 40 found.
    assert figures(extents((20, 60)), extents((10, 30))) == pytest.approx([10 / 20, 10 / 40, 10 / 50])


def test_overlapping_chunks_find_a_character_once_and_cost_it_twice():
    # Found 0 to 20 and 10 to 30, 40 characters; gold 10 to 20, ten characters.
    assert figures(extents((0, 20), (10, 30)), extents((10, 20))) == pytest.approx([1.0, 10 / 40, 10 / 40])


def test_chunks_of_other_documents_and_renderings_cost_and_find_nothing():
    other = (*extents((0, 10), document="e"), Extent("d", "html", 0, 10))
    assert figures(extents((0, 10)) + other, extents((0, 10))) == pytest.approx([1.0, 1 / 3, 1 / 3])


def test_gold_in_several_places_is_counted_together():
    assert figures(extents((0, 10)), extents((0, 10), (90, 120))) == pytest.approx([1 / 4, 1.0, 1 / 4])


def test_cuts_are_of_chunks():
    found = extents((50, 60), (0, 10))
    assert figures(found, extents((0, 10)), ("char_recall@1", "char_recall@2", "char_precision@2")) == [0.0, 1.0, 0.5]


def test_nothing_found_is_zero_and_gold_of_another_kind_has_no_figure():
    assert figures((), extents((0, 10))) == [0.0] * 3
    assert figures(extents((0, 10)), ()) == [None] * 3
    assert figures(extents((0, 10)), extents((0, 10)), searched=False) == [None] * 3


def test_the_best_that_a_chunker_leaves():
    cut = extents((0, 20), (20, 40), (40, 60))
    # The first two chunks hold gold 10 to 30: 20 of 40 characters.
    assert precision_omega(cut, extents((10, 30))) == pytest.approx(20 / 40)
    assert precision_omega(cut, extents((100, 130))) == 0.0
    # Half of the gold stands in no chunk: 10 of the chunk's 20 and of the 10 that are missed.
    assert precision_omega(extents((0, 20)), extents((10, 30))) == pytest.approx(10 / 30)


SPANS = some.lists(some.tuples(some.integers(0, 40), some.integers(1, 12)).map(lambda one: (one[0], one[0] + one[1])),
                   max_size=4)


@given(SPANS, SPANS.filter(len))
def test_the_figures_are_those_of_sets_of_characters(found, marked):
    gold = {at for start, end in marked for at in range(start, end)}
    taken = [at for start, end in found for at in range(start, end)]
    both = len(gold & set(taken))
    assert figures(extents(*found), extents(*marked)) == pytest.approx(
        [both / len(gold), both / len(taken) if taken else 0.0, both / (len(taken) + len(gold) - both)])
