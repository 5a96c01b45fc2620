"""Why each question came out as it did: one cause for each question in each cell, told from the run alone, and by which
other cells."""
import pytest
from hypothesis import given
from hypothesis import strategies as some
from stored import cell
from stored import result as stored_result

from ragbed.agents import OUTCOMES
from ragbed.experiments import ANSWERS, RANKED, Gold, Question, Scheme, StoredPassage, Verdict
from ragbed.experiments.analysis.causes import CAUSES, Case, find_cause, find_causes, find_siblings
from ragbed.experiments.analysis.error_analysis import analyse_errors
from ragbed.experiments.guests.datasets.hotpotqa import HotpotQa
from ragbed.experiments.guests.datasets.mdbench import Mdbench
from ragbed.experiments.guests.datasets.mrceval import Mrceval

CASE = {"outcome": "answered", "score": 0.0, "gold": 2, "found": 2, "cites": True, "cited_gold": True}


def cause(**changes):
    return find_cause(Case(**{**CASE, **changes})).name


def test_what_is_right_and_what_is_for_a_wrong_reason():
    for seen in ({}, {"found": 1}, {"gold": None, "found": 0, "cited_gold": False},
                 {"answerable": False, "outcome": "refused", "refused": True, "found": 0, "cited_gold": False},
                 {"closed_book": True, "found": 0, "cites": False}, {"cites": False, "cited_gold": False}):
        assert cause(score=1.0, **seen) == "right"
    assert cause(score=1.0, cited_gold=False) == "citation_only"
    for known, name in ((True, "parametric"), (False, "unsupported"), (None, "unsupported")):
        assert cause(score=1.0, found=0, cited_gold=False, known=known) == name


@pytest.mark.parametrize("outcome", ["too_long", "budget", "timeout", "error"])
def test_what_has_no_answer_failed(outcome):
    assert cause(outcome=outcome) == "failed"
    assert cause(outcome=outcome, score=None, answerable=False, found=0) == "failed"


def test_what_cannot_be_scored_is_not_called_wrong():
    assert cause(outcome="malformed") == "format"
    assert cause(unread=True) == "format"
    assert cause(unjudged=True) == "unjudged"
    assert cause(score=None, unjudged=True) == "unjudged"
    assert cause(score=None) == "not_scored"
    assert cause(score=None, answerable=False, may_refuse=False) == "not_scored"


def test_refusals():
    refusal = {"outcome": "refused", "refused": True, "score": -1.0, "cited_gold": False}
    assert cause(**refusal) == "wrong_refusal"
    assert cause(**refusal, right_with_gold=True) == "wrong_refusal"
    assert cause(**{**refusal, "found": 1}) == "retrieval_miss"
    assert cause(**{**refusal, "gold": None}) == "gold_unknown"
    assert cause(answerable=False) == "missing_refusal"
    assert cause(answerable=False, gold=None) == "missing_refusal"
    assert cause(answerable=False, may_refuse=False, found=0) == "retrieval_miss"  # options, and the gold was dropped


def test_whether_retrieval_failed_or_reasoning():
    assert cause(found=1) == "retrieval_miss"
    assert cause(found=1, right_with_gold=False) == "retrieval_miss"
    assert cause(right_with_gold=True) == "distracted"
    assert cause(right_with_gold=None, right_with_fewer_negatives=True) == "distracted"
    assert cause(right_with_gold=True, right_with_fewer_negatives=False) == "distracted"
    assert cause(right_with_gold=False, right_with_fewer_negatives=True) == "reasoning_error"
    assert cause(right_with_gold=False) == "reasoning_error"
    assert cause(right_with_gold=False, right_with_fewer_negatives=False) == "reasoning_error"
    assert cause(gold_alone=True) == "reasoning_error"
    assert cause(gold_alone=True, found=1) == "retrieval_miss"
    assert cause() == "undetermined"
    assert cause(right_with_fewer_negatives=False) == "undetermined"
    assert cause(gold=None) == "gold_unknown"
    assert cause(closed_book=True, found=0) == "closed_book_wrong"
    assert cause(score=0.5, right_with_gold=True) == "distracted"


FLAGS = ("answerable", "refused", "may_refuse", "closed_book", "coarse", "cites", "cited_gold", "unread", "unjudged",
         "gold_alone")
UNSURE = some.sampled_from((None, False, True))
CASES = some.builds(
    Case, outcome=some.sampled_from(OUTCOMES), score=some.sampled_from((None, -1.0, 0.0, 0.5, 1.0)),
    gold=some.sampled_from((None, 1, 2)), found=some.integers(0, 2), known=UNSURE, right_with_gold=UNSURE,
    right_with_fewer_negatives=UNSURE,
    **{name: some.booleans() for name in FLAGS})


@given(CASES)
def test_every_case_has_exactly_one_cause_and_right_answers_never_one_of_a_failure(case):
    name = find_cause(case).name
    assert [one.name for one in CAUSES if one.name == name] == [name]
    assert (name in ("right", "citation_only", "parametric", "unsupported")) == case.right
    if name in ("distracted", "reasoning_error", "undetermined", "wrong_refusal"):
        assert case.in_view
    if name == "failed":
        assert case.outcome in ("too_long", "budget", "timeout", "error")


def result(of, question="q", **changes):
    return stored_result(of.id, question, **{"gold_total": 1, "gold_in_view": True, **changes})


def passage(number, *holds, gold="chunk"):
    return StoredPassage(number=number, chunk=f"c{number}", document="d", source="d", format="plain", start=0, end=1,
                         pages=None, text="t", gold=gold if holds else None, holds=holds)


QUESTION = Question(id="q", text="?", answers=("x",), answerable=True, gold=(Gold("d"),))


def told(results, cells, scheme=ANSWERS, scoring="corrected", question=QUESTION):
    return {id: found["q"] for id, found in find_causes(cells, results, {"q": question}, scheme.correctness_metrics,
                                                        scoring).items()}


def test_the_gold_items_of_all_passages_count_together():
    one = cell()
    for held, total, name in (((0,), 2, "retrieval_miss"), ((0, 1), 2, "undetermined"), ((), 2, "retrieval_miss")):
        evidence = tuple(passage(place + 1, item) for place, item in enumerate(held))
        found = told([result(one, evidence=evidence, gold_total=total, scores={"unified": 0.0})], [one])
        assert found == {one.id: name}


def test_a_sibling_without_an_answer_tells_nothing():
    one, gold = cell(), cell("gold")
    wrong = result(one, evidence=(passage(1, 0),), scores={"unified": 0.0})
    for outcome, name in (("answered", "reasoning_error"), ("refused", "reasoning_error"), ("timeout", "undetermined"),
                          ("too_long", "undetermined"), ("malformed", "undetermined")):
        other = result(gold, outcome=outcome, evidence=(passage(1, 0),), scores={"unified": 0.0})
        assert told([wrong, other], [one, gold])[one.id] == name
    lacking = result(gold, scores={"unified": 0.0})
    assert told([wrong, lacking], [one, gold]) == {one.id: "undetermined", gold.id: "retrieval_miss"}
    unjudged = result(gold, evidence=(passage(1, 0),), scores={"unified": 0.0, "unjudged": 1.0})
    assert told([wrong, unjudged], [one, gold]) == {one.id: "undetermined", gold.id: "unjudged"}


def test_what_right_means_depends_on_the_benchmark():
    schemes = (ANSWERS, Mrceval.scheme, Mdbench.scheme, HotpotQa.scheme, RANKED)
    assert [scheme.correctness_metrics[:1] for scheme in schemes] == [
        ("unified",), ("accuracy",), ("graded_em",), ("unified",), ()]
    assert Scheme(groups=("chain", "overlap"), rubric=None, columns=("em",)).correctness_metrics == ("em",)
    both = Scheme(groups=("answers", "choice", "overlap", "form"), rubric="grades", columns=())
    assert both.correctness_metrics == ("accuracy", "unified")
    one = cell(rules="reading")
    seen = {"evidence": (passage(1, 0),)}
    for scores, name in (({"accuracy": 1.0, "unified": 0.0}, "right"), ({"accuracy": None, "unified": 1.0}, "right"),
                         ({"accuracy": 0.0, "unparsed": 1.0, "unified": 1.0}, "format"),
                         ({"accuracy": None, "unified": 0.5}, "undetermined")):
        assert told([result(one, **seen, scores=scores)], [one], both) == {one.id: name}
    assert find_causes([one], [result(one)], {"q": QUESTION}, RANKED.correctness_metrics) == {}


def test_as_published_reads_as_the_paper_does():
    one = cell(rules="choice")
    question = Question(id="q", text="?", answers=("A",), answerable=True, options=(("A", "x"), ("B", "y")))
    for text, name in (("B. y", "gold_unknown"), ("The answer is A", "format")):
        shown = result(one, text=text, gold_total=0, scores={"accuracy": 0.0})
        assert told([shown], [one], Mrceval.scheme, "as-published", question) == {one.id: name}
    graded = cell()
    refused = result(graded, text="It is unanswerable.", refused_as_published=True, evidence=(passage(1, 0),),
                     scores={"unified": -1.0})
    assert told([refused], [graded], scoring="as-published") == {graded.id: "wrong_refusal"}
    assert told([refused], [graded]) == {graded.id: "undetermined"}


def test_an_unread_verdict_of_points_is_unjudged_in_both_scorings():
    one, seen = cell(), {"evidence": (passage(1, 0),), "verdict": Verdict(judge="j", note="nothing readable")}
    for scores in ({"graded_em": 0.0, "unjudged": 1.0, "em": 0.0}, {"graded_em": None, "unjudged": 1.0, "em": 0.0}):
        assert told([result(one, **seen, scores=scores)], [one], Mdbench.scheme) == {one.id: "unjudged"}


def test_with_the_table_in_their_place_what_was_in_view_is_not_known():
    one = cell(perturbation="table")
    assert told([result(one, scores={"unified": 0.0})], [one]) == {one.id: "gold_unknown"}
    assert told([result(one, scores={"unified": 1.0})], [one]) == {one.id: "right"}


def test_where_numbers_are_not_shown_no_citation_is_due():
    for change, name in ((None, "citation_only"), ("unnumbered", "right")):
        one = cell(perturbation=change)
        assert told([result(one, evidence=(passage(1, 0),), scores={"unified": 1.0})], [one]) == {one.id: name}


def test_of_the_retrieval_misses_it_is_told_how_many_were_refused():
    one, missing = cell(), {"gold_total": 2, "evidence": (passage(1, 0),)}
    made = [result(one, "q0", **missing, scores={"unified": 0.0}),
            result(one, "q1", **missing, scores={"unified": -1.0}, outcome="refused", refused=True),
            result(one, "q2", evidence=(passage(1, 0),), scores={"unified": -1.0}, outcome="refused", refused=True)]
    questions = {f"q{place}": QUESTION for place in range(3)}
    row, = analyse_errors([one], made, questions, ANSWERS.correctness_metrics, "corrected", {}, 0,
                          {})["error_analysis"]["cells"]
    assert (row["abstained"]["mean"], row["abstained"]["n"]) == (0.5, 2)
    assert (row["gold_whole"]["mean"], row["gold_found"]["mean"]) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert {name for name, share in row["causes"].items() if share["mean"]} == {"retrieval_miss", "wrong_refusal"}


def test_a_model_that_guesses_looks_distracted_and_the_run_says_that_it_may_be_chance():
    cells, evidence = [cell(), cell("gold")], (passage(1, 0),)
    questions = {f"q{place}": QUESTION for place in range(100)}

    def notes(scores):
        made = [result(one, f"q{place}", evidence=evidence, cited=(1,), scores={"unified": float(scores(place, at))})
                for at, one in enumerate(cells) for place in range(100)]
        said = analyse_errors(cells, made, questions, ANSWERS.correctness_metrics, "corrected", {}, 0,
                              {})["error_analysis"]
        return said["cells"][0]["causes"]["distracted"]["mean"], [note for note in said["notes"] if "chance" in note]

    share, said = notes(lambda place, at: place // 2 % 2 if at else place % 2)
    assert (share, len(said)) == (0.25, 1)
    share, said = notes(lambda place, at: at or place % 2)
    assert (share, said) == (0.5, [])


def test_a_model_that_guesses_would_seem_mended_and_what_it_makes_of_other_questions_stands_beside():
    cells, questions = [cell(), cell("gold")], {f"q{place}": QUESTION for place in range(60)}
    made = [result(one, name, evidence=(passage(1, 0),) if at or place % 2 else (), cited=(1,),
                   scores={"unified": float((place // 5 if at else place) % 5 < 3)})
            for at, one in enumerate(cells) for place, name in enumerate(questions)]
    said = analyse_errors(cells, made, questions, ANSWERS.correctness_metrics, "corrected", {}, 0, {})["error_analysis"]
    row, = said["joint"]
    assert (row["mended"]["mean"], row["mended"]["n"]) == (pytest.approx(2 / 3), 12)  # of 30 without gold, 12 are wrong
    assert (row["others"]["mean"], row["others"]["n"]) == (pytest.approx(2 / 3), 48)
    assert any("upper bound" in note and "other questions" in note for note in said["notes"])


def related(cells, one):
    found = find_siblings(cells)[one.id]
    return found.closed_book, found.gold, found.fewest_negatives


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
