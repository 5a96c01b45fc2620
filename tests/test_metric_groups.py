"""The groups of metrics beside CReSt's, by hand; each difference between the scorings has its golden pair."""
import math

import pytest
from each_case import each
from factored import Row

from ragbed.experiments import Scored, Sub, aggregate, score

OPTIONS = (("A", "Romeo"), ("B", "Tybalt"), ("C", "Paris"))
REFUSAL = "I cannot answer because the question is unanswerable with the documents."


def both(group, **material):
    """The scores as published and corrected."""
    item = Scored(**{"outcome": "answered", "answerable": True, "text": "x", "answers": ("x",)} | material)
    return score(item, "as-published", (group,)), score(item, "corrected", (group,))


def corrected(group, **material):
    return both(group, **material)[1]


def both_choice(text, **material):
    published, ours = both("choice", **{"text": text, "options": OPTIONS, "answers": ("B",), "rules": "choice"}
                           | material)
    return published["accuracy"], ours["accuracy"], ours["unparsed"]


@each(("text", "expected"), [
    ("B", (1.0, 1.0, 0.0)), ("B. Tybalt", (1.0, 1.0, 0.0)), ("(B)", (0.0, 1.0, 0.0)), ("**B**", (0.0, 1.0, 0.0)),
    ("Answer: B", (0.0, 1.0, 0.0)), ("<Answer>B</Answer>", (0.0, 1.0, 0.0)), ("Tybalt", (0.0, 1.0, 0.0)),
    ("b", (0.0, 1.0, 0.0)), ("C", (0.0, 0.0, 0.0)), ("Both of them, perhaps.", (1.0, 0.0, 1.0)),
    ("Nobody knows.", (0.0, 0.0, 1.0)), ("", (0.0, 0.0, 1.0))])
def test_published_choice_is_the_first_character_and_ours_the_option_that_is_named(text, expected):
    assert both_choice(text) == expected


def test_a_failure_is_a_wrong_choice_and_only_a_reply_can_be_unparsed():
    for outcome in ("too_long", "budget", "timeout", "error"):
        assert both_choice("", outcome=outcome) == (0.0, 0.0, 0.0)
    assert both_choice(REFUSAL, outcome="refused", refused=True) == (0.0, 0.0, 0.0)
    assert both_choice("B, or", outcome="malformed") == (1.0, 0.0, 1.0)


@pytest.mark.parametrize(("grade", "accuracy", "em"), [(0, 0.0, 0.0), (8, 0.8, 0.0), (9, 0.9, 1.0), (10, 1.0, 1.0)])
def test_points_are_over_ten_and_em_is_above_eight(grade, accuracy, em):
    assert both("points", points=grade) == (pointed(accuracy, em),) * 2


def pointed(accuracy, em, unjudged=0.0):
    return {"graded_accuracy": accuracy, "graded_em": em, "unjudged": unjudged}


def test_an_unreadable_grade_is_no_score():
    assert both("points", points=None) == (pointed(None, None, 1.0), pointed(None, None, 1.0))


def test_failures_and_refusals_have_no_points_and_are_not_unjudged():
    nothing = pointed(0.0, 0.0)
    for outcome in ("refused", "malformed", "timeout"):
        assert both("points", outcome=outcome, text="") == (nothing, nothing)
        assert both("points", outcome=outcome, text="x", points=9)[1] == nothing
    assert both("points", outcome="refused", text=REFUSAL, points=9)[0] == pointed(0.9, 1.0)
    assert set(corrected("points", points=9, answers=()).values()) == {None}
    assert set(corrected("points", points=9, answerable=False).values()) == {None}


def test_the_reasoning_score_is_the_share_of_the_steps_found():
    assert corrected("steps", steps=(0, 2), step_count=4, reasoned=True) == {"reasoning_score": 0.5, "unjudged": 0.0}
    odd = {"steps": (0, 0, 7), "step_count": 4, "reasoned": True}
    assert corrected("steps", **odd)["reasoning_score"] == 0.25
    wrong = {"steps": (0, 1), "step_count": 2, "reasoned": True, "outcome": "malformed", "text": ""}
    assert corrected("steps", **wrong)["reasoning_score"] == 1.0


def test_reasoning_that_nobody_could_judge_is_apart_from_none():
    assert corrected("steps", step_count=4) == {"reasoning_score": 0.0, "unjudged": None}
    assert corrected("steps", step_count=4, reasoned=True) == {"reasoning_score": None, "unjudged": 1.0}
    assert corrected("steps", reasoned=True) == {"reasoning_score": None, "unjudged": None}


def test_gm_is_of_the_means_and_its_interval_of_the_same_resamples():
    rows = [Row({"accuracy": float(at % 2), "reasoning_score": (at % 2) / 2}) for at in range(40)]
    gm = aggregate(rows)["gm"]
    assert gm["mean"] == pytest.approx(math.sqrt(0.5 * 0.25))
    spread = aggregate(rows)["reasoning_score"]
    assert (gm["low"], gm["high"]) == (pytest.approx(math.sqrt(2) * spread["low"]),
                                       pytest.approx(math.sqrt(2) * spread["high"]))
    assert gm["n"] == 40
    assert "gm" not in aggregate([Row({"accuracy": 1.0})])


def squad(text="", outcome="answered", answerable=True, answers=("the Normandy coast", "Normandy"), **changes):
    published, ours = both("squad", text=text, outcome=outcome, answerable=answerable,
                           answers=answers if answerable else (), **changes)
    assert published == ours
    return ours["squad_em"], ours["squad_f1"]


@each(("text", "changes", "expected"), [
    ("Normandy [1]", {}, (1.0, 1.0)),
    ("in Normandy", {}, (0.0, 2 / 3)),  # precision 1/2 and recall 1 with the second answer
    ("coast of Normandy, France", {}, (0.0, pytest.approx(2 * (2 / 4) * (2 / 2) / (2 / 4 + 2 / 2)))),
    ("no doubt", {"answers": ("no",)}, (0.0, 2 / 3)),  # no rule for yes and no, unlike HotpotQA's
    ("Paris", {}, (0.0, 0.0)),
    (REFUSAL, {"outcome": "refused"}, (0.0, 0.0)),
    # No answer is right where there is none.
    (REFUSAL, {"outcome": "refused", "answerable": False}, (1.0, 1.0)),
    ("Normandy", {"answerable": False}, (0.0, 0.0)),
    # What nobody could decline is left out.
    ("Normandy", {"answers": ()}, (None, None)),
    (REFUSAL, {"outcome": "refused", "answerable": False, "rules": "reading"}, (None, None)),
    ("Normandy", {"rules": "reading"}, (1.0, 1.0))])
def test_squads_figures_take_the_best_answer(text, changes, expected):
    assert squad(text, **changes) == expected


@pytest.mark.parametrize("outcome", ["malformed", "timeout", "error"])
def test_squads_figures_count_a_failure_as_nothing(outcome):
    assert squad("", outcome) == squad("", outcome, answerable=False) == (0.0, 0.0)


def test_squads_figures_are_over_all_questions():
    scores = [squad("Normandy"), squad("in Normandy"), squad(REFUSAL, "refused", answerable=False),
              squad("Normandy", answerable=False)]
    figures = aggregate([Row({"squad_em": em, "squad_f1": f1}, at < 2) for at, (em, f1) in enumerate(scores)])
    assert [(figures[name]["mean"], figures[name]["n"]) for name in ("squad_em", "squad_f1")] == [
        (0.5, 4), (pytest.approx((1 + 2 / 3 + 1) / 4), 4)]


CHAIN = {"text": "Lake Havasu City [1]", "answers": ("Lake Havasu City, Arizona",),
         "subs": (Sub("answered", "London Bridge [2]", "London Bridge"),
                  Sub("answered", "the city of Havasu", "Havasu"))}


def test_a_chain_by_hand():
    # Precision 1, 1, 1/3; recall 3/4, 1, 1.
    scores = corrected("chain", **CHAIN)
    assert scores == pytest.approx({
        "joint_em": 0.0, "joint_f1": 2 * (1 / 3) * (3 / 4) / (1 / 3 + 3 / 4), "chain_correct": 0.0, "lucky": 0.0,
        "sub_em@1": 1.0, "sub_f1@1": 1.0, "sub_em@2": 0.0, "sub_f1@2": 0.5})


def test_a_right_answer_over_a_wrong_step_is_lucky():
    scores = corrected("chain", **CHAIN | {"answers": ("Lake Havasu City",)})
    assert (scores["lucky"], scores["chain_correct"], scores["joint_em"]) == (1.0, 0.0, 0.0)
    right = corrected("chain", subs=(Sub("answered", "x", "x"),))
    assert (right["lucky"], right["chain_correct"], right["joint_em"], right["joint_f1"]) == (0.0, 1.0, 1.0, 1.0)


def test_a_failed_sub_question_is_wrong():
    failed = (Sub("timeout", "", "x"), Sub("refused", "x", "x"))
    scores = corrected("chain", subs=failed)
    assert (scores["sub_em@1"], scores["sub_em@2"], scores["lucky"], scores["joint_f1"]) == (0.0, 0.0, 1.0, 0.0)


def test_a_chain_needs_sub_answers_and_a_gold_answer():
    assert corrected("chain") == dict.fromkeys(("joint_em", "joint_f1", "chain_correct", "lucky"))
    for missing in ({"answers": ()}, {"answerable": False}):
        assert set(corrected("chain", **CHAIN | missing).values()) == {None}
        assert "sub_em@2" in corrected("chain", **CHAIN | missing)


def chain_rows(*items):
    return [Row(score(Scored("answered", True, text, answers=("x",), subs=tuple(Sub("answered", said, "x") for said in
                                                                             subs)), "as-published",
                      ("overlap", "chain"))) for text, subs in items]


def test_published_joint_figures_are_logarithms_of_the_sets():
    rows = chain_rows(("x", "xx"), ("x", "xy"), ("y", "xx"), ("x y", "xx"))
    figures = aggregate(rows, "as-published", resamples=2)
    # EMs 2/4 (final), 4/4, 3/4; joint F1 1, 0, 0 and 2/3.
    assert figures["joint_em_log"]["mean"] == pytest.approx(-math.log(2 * (0.5 * 1 * 0.75) / (0.5 + 1 + 0.75)))
    assert figures["joint_f1_log"]["mean"] == pytest.approx(-math.log((1 + 2 / 3) / 4))
    assert {"joint_em_log", "joint_f1_log"}.isdisjoint(aggregate(rows, "corrected", resamples=2))


def test_where_an_em_is_zero_the_published_joint_em_has_no_value():
    figures = aggregate(chain_rows(("x", "xy"), ("y", "xy")), "as-published", resamples=20)
    assert figures["joint_em_log"] == figures["joint_f1_log"] == {"mean": None, "low": None, "high": None, "n": 2}
    some = aggregate(chain_rows(("x", "x"), ("y", "y")), "as-published", resamples=200)["joint_em_log"]
    assert (some["low"], some["high"]) == (None, None)
    assert some["mean"] == pytest.approx(-math.log(0.5))


GOLD = {"hits": {1: frozenset({0}), 2: frozenset(), 3: frozenset({1}), 4: frozenset({1})}, "gold_total": 2}


@pytest.mark.parametrize(("cited", "em", "f1"), [
    ((1, 3), 1.0, 1.0), ((3, 4, 1), 1.0, 1.0), ((1,), 0.0, 2 / 3), ((1, 2, 3), 0.0, 2 * (2 / 3) / (2 / 3 + 1)),
    ((2,), 0.0, 0.0), ((), 0.0, 0.0)])
def test_support_compares_cited_chunks_with_gold_ones(cited, em, f1):
    scores = corrected("support", cited=cited, **GOLD)
    assert (scores["support_em"], scores["support_f1"]) == (em, pytest.approx(f1))


def test_joint_support_multiplies_precisions_and_recalls():
    # Answer: precision 1/2, recall 1; support: precision 1, recall 1/2.
    scores = corrected("support", text="x y [1]", cited=(1,), **GOLD)
    assert scores["support_joint_f1"] == pytest.approx(0.5)
    assert scores["support_joint_em"] == 0.0
    assert corrected("support", cited=(1, 3), **GOLD)["support_joint_em"] == 1.0
    assert corrected("support", cited=(1, 3), text="y", **GOLD)["support_joint_em"] == 0.0


def test_support_is_of_answerable_questions_with_gold_and_citations():
    failed = corrected("support", outcome="timeout", text="", **GOLD)
    assert set(failed.values()) == {0.0}
    for missing in ({"answerable": False}, {"gold_total": 0}, {"rules": "choice"}, {"separators": False}):
        assert set(corrected("support", cited=(1,), **GOLD | missing).values()) == {None}
    unknown = corrected("support", cited=(1, 3), answers=(), **GOLD)
    assert (unknown["support_f1"], unknown["support_joint_f1"]) == (1.0, None)


def ranked(*held, total):
    hits = {number: frozenset(items) for number, items in enumerate(held, start=1)}
    scores = corrected("ranking", hits=hits, gold_total=total, searched=True)
    return [scores[name] for name in ("recall@5", "recall@10", "ndcg@10", "mrr", "map")]


def dcg(*ranks):
    return sum(1 / math.log2(rank + 1) for rank in ranks)


def test_a_ranking_by_hand():
    assert ranked((), {0}, (), {2}, total=3) == pytest.approx(
        [2 / 3, 2 / 3, dcg(2, 4) / dcg(1, 2, 3), 1 / 2, (1 / 2 + 2 / 4) / 3])
    assert ranked(*[()] * 5, {0}, *[()] * 5, {1}, total=2) == pytest.approx(
        [0.0, 1 / 2, dcg(6) / dcg(1, 2), 1 / 6, (1 / 6 + 2 / 12) / 2])


def test_nothing_found_is_zero_and_everything_first_is_one():
    assert ranked(total=2) == [0.0] * 5
    assert ranked((), (), total=2) == [0.0] * 5
    assert ranked({0}, {1}, (), total=2) == [1.0] * 5
    assert ranked({0, 1}, (), total=2) == [1.0] * 5


def test_a_chunk_that_repeats_gold_is_a_miss_and_one_with_several_items_has_them_all():
    assert ranked({0}, {0}, {1}, total=2) == ranked({0}, (), {1}, total=2)
    assert ranked({0}, {0, 1}, total=2) == [1.0] * 5
    # All six items in the fifth chunk count within five chunks: ranks 5 to 10 of the ranking.
    many = ranked((), (), (), (), set(range(6)), total=6)
    assert many == pytest.approx([1.0, 1.0, dcg(*range(5, 11)) / dcg(*range(1, 7)), 1 / 5,
                                  sum(at / (at + 4) for at in range(1, 7)) / 6])


def test_rankings_are_of_searched_evidence_with_gold():
    placed = corrected("ranking", hits={1: frozenset({0})}, gold_total=1)
    assert set(placed.values()) == {None}
    assert set(corrected("ranking", hits={1: frozenset()}, searched=True).values()) == {None}
    assert set(corrected("ranking", outcome="error", text="", gold_total=1, searched=True).values()) == {0.0}
