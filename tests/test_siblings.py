"""Which cells of a run tell the causes of another: those that differ in what was shown alone."""
from stored import cell

from experiments.analysis.cases import siblings_of


def related(cells, one):
    found = siblings_of(cells)[one.id]
    return found.closed_book, found.gold, found.undisturbed


def test_siblings_agree_in_everything_but_what_is_shown():
    one, gold, closed = cell(), cell("gold"), cell("closed-book", rules="closed-book")
    others = [cell(kind, **changes) for kind in ("gold", "closed-book") for changes in (
        {"repeat": 1}, {"model": "n"}, {"reasoning": "chain_of_thought"}, {"show": "sub_questions"})]
    found = cell("retrieved", retrieval="once", retriever="r", format="html")
    cells = [one, *others, gold, closed, found]
    assert related(cells, one) == (closed.id, gold.id, None)
    assert related(cells, found) == (closed.id, gold.id, None)
    assert related([one, *others], one) == (None, None, None)
    assert related([one, cell("gold", rules="reading")], one) == (None, None, None)


def test_the_gold_alone_is_the_evidence_without_what_is_added_or_dropped():
    one = cell()
    for change in ("negatives@2", "drop_gold", "table", "negatives@2+shuffle"):
        assert related([one, cell("gold", perturbation=change)], one)[1] is None
    shuffled, plain = cell("gold", perturbation="shuffle"), cell("gold")
    assert related([one, shuffled], one)[1] == shuffled.id
    assert related([one, shuffled, plain], one)[1] == plain.id
    assert related([plain, shuffled], shuffled)[1] is None  # the gold in another order is no less of it


def test_of_several_the_one_in_the_same_format_is_taken():
    html, plain = (cell("gold", retriever="r", format=name) for name in ("html", "plain"))
    for name, gold in (("html", html), ("plain", plain)):
        one = cell("retrieved", retrieval="once", retriever="r", format=name)
        assert related([html, plain, one], one)[1] == gold.id


def test_fewer_negatives_are_undisturbed():
    none, two, five = cell(), cell(perturbation="negatives@2"), cell(perturbation="negatives@5")
    mixed, full = cell(perturbation="shuffle+negatives@5"), cell("full")
    cells = [none, two, five, mixed, full]
    assert related(cells, five)[2] == none.id
    assert related(cells[1:], five)[2] == two.id
    assert related(cells, two)[2] == none.id
    assert related(cells, none)[2] == related(cells, mixed)[2] is None


def test_seeds_are_matched_where_both_cells_draw_something():
    gold = [cell("gold", reasoning="r", seed=seed) for seed in (1, 2)]
    one = cell(reasoning="r", seed=2, perturbation="shuffle")
    assert related([*gold, one], one)[1] == gold[1].id
    drawn, plain = cell(perturbation="shuffle", seed=1), cell("gold")
    assert related([drawn, plain], drawn)[1] == plain.id
