"""What holds of every metric, whatever the answer: bounds, names, and what must make no difference."""
import random
from dataclasses import replace

from factored import Row
from hypothesis import given
from hypothesis import strategies as st

from ragbed.agents import OUTCOMES
from ragbed.experiments import METRICS, Scored, Sub, Support, SupportLabel, aggregate, find_metric, score
from ragbed.experiments.metrics import GROUPS, chain_pattern

TEXTS = ["", "x", "x [1][9]", "the x", "y [1, 2]", "B", "(B) yes", "Answer: A",
         "I cannot answer because the question is unanswerable with the documents."]
LABELS = st.builds(SupportLabel, text=st.just("x"), cited=st.lists(st.integers(1, 3), max_size=2).map(tuple),
                   vital=st.booleans(), level=st.sampled_from(["full", "partial", "none", None]))
SUBS = st.builds(Sub, st.sampled_from(OUTCOMES), st.sampled_from(TEXTS), st.sampled_from(["x", "x y", "no"]))
ITEMS = st.builds(
    Scored, outcome=st.sampled_from(OUTCOMES), answerable=st.booleans(), text=st.sampled_from(TEXTS),
    refused=st.booleans(), tagged=st.sampled_from([None, True, False]),
    answers=st.sampled_from([(), ("x",), ("B",), ("no", "x")]),
    options=st.sampled_from([(), (("A", "no"), ("B", "yes"))]),
    grade=st.sampled_from([None, "Correct", "Partially Correct", "Wrong"]),
    points=st.none() | st.integers(0, 10), steps=st.none() | st.lists(st.integers(0, 9), max_size=5).map(tuple),
    step_count=st.integers(0, 4), reasoned=st.booleans(), subs=st.lists(SUBS, max_size=4).map(tuple),
    cited=st.lists(st.integers(1, 3), unique=True).map(tuple),
    hits=st.dictionaries(st.integers(1, 3), st.frozensets(st.integers(0, 2))),
    gold_total=st.integers(3, 5), gold_repeats=st.integers(0, 2),
    rules=st.sampled_from(["grounded", "open", "reading", "choice", "closed-book"]), separators=st.booleans(),
    searched=st.booleans(), support=st.builds(Support, judge=st.just("j"), sentences=st.lists(
        LABELS, min_size=1, max_size=3).map(tuple), nuggets=st.lists(LABELS, max_size=3).map(tuple)))
SCORINGS = st.sampled_from(["corrected", "as-published"])
RANKINGS = ("ranking", "judgements")  # which stand, however the question ended
ALL = tuple(GROUPS)


def rows_of(items, scoring, groups=ALL):
    return [Row(score(item, scoring, groups), item.answerable, item.outcome) for item in items]


@given(ITEMS, SCORINGS, st.sampled_from(ALL))
def test_every_score_is_in_bounds_and_every_metric_of_the_group_is_named(item, scoring, group):
    scores = score(item, scoring, (group,))
    per_question = [metric.name for metric in GROUPS[group].metrics if not metric.of_set]
    expected = [name for name in per_question if METRICS[name].cut is None or METRICS[name].uncut]
    assert [name for name in scores if "@" not in name] == expected
    assert {name.partition("@")[0] for name in scores} <= set(per_question)
    for name, value in scores.items():
        assert str(find_metric(name)) == name
        low = -1.0 if name == "unified" else 0.0
        assert value is None or name == "invalid_citations" or low <= value <= 1.0
        assert value is None or not find_metric(name).share or value in (0.0, 1.0)


@given(ITEMS)
def test_corrected_scoring_leaves_out_no_judged_question_for_how_it_ended(item):
    read = item.support.model_copy(update={kind: tuple(
        one.model_copy(update={"level": one.level or "none"}) for one in getattr(item.support, kind))
        for kind in ("sentences", "nuggets")})
    item = replace(item, grade=item.grade or "Wrong", points=item.points or 0, steps=item.steps or (), support=read)
    ended = [score(replace(item, outcome=outcome), groups=ALL) for outcome in OUTCOMES]
    missing = [{name for name, value in scores.items() if value is None and not name.startswith("sentences_")}
               for scores in ended]  # shares of what an answer says are of answers
    assert all(one == missing[0] for one in missing)


@given(ITEMS, st.text(max_size=30))
def test_what_a_failure_left_behind_scores_nothing(item, text):
    failed = replace(item, outcome="timeout", text=text, grade=None, cited=(), steps=None, reasoned=False)
    for name, value in score(failed, groups=[group for group in GROUPS if group not in RANKINGS]).items():
        if name.partition("@")[0] not in ("sub_em", "sub_f1", "tagged", "invalid_citations"):
            assert value in (None, 0.0)


@given(ITEMS)
def test_a_chain_is_right_lucky_or_has_a_wrong_end_and_its_pattern_says_which(item):
    scores = score(item, groups=("chain",))
    pattern = chain_pattern(scores)
    if not pattern:
        assert set(scores.values()) <= {None}
        return
    assert len(pattern) == len(item.subs) + 1
    assert scores["chain_correct"] == all(pattern) == scores["joint_em"]
    assert scores["lucky"] == (pattern[-1] and not all(pattern))
    assert [scores[f"sub_em@{place}"] for place in range(1, len(pattern))] == list(map(float, pattern[:-1]))
    assert scores["joint_em"] <= scores["joint_f1"] + 1e-12
    smallest = min(scores[f"sub_f1@{place}"] for place in range(1, len(pattern)))
    assert smallest > 0 or scores["joint_f1"] == 0


@given(st.lists(ITEMS, max_size=8), SCORINGS, st.randoms(use_true_random=False))
def test_the_order_of_the_questions_does_not_matter(items, scoring, rng):
    rows = rows_of(items, scoring)
    figures = aggregate(rows, scoring, resamples=20)
    rng.shuffle(rows)
    assert aggregate(rows, scoring, resamples=20) == figures


@given(st.lists(ITEMS, min_size=1, max_size=8), SCORINGS)
def test_every_figure_of_a_set_is_finite_or_none_and_within_its_interval(items, scoring):
    for name, figure in aggregate(rows_of(items, scoring), scoring, resamples=20).items():
        low, mean, high = figure["low"], figure["mean"], figure["high"]
        assert find_metric(name)
        assert figure["n"] <= len(items)
        assert (mean is None) >= (figure["n"] == 0)
        assert (low is None) == (high is None)
        if mean is not None and not name.endswith("_log") and name != "invalid_citations":
            assert (-1.0 if name == "unified" else 0.0) <= mean <= 1.0
        assert low is None or low <= high


def test_questions_of_several_lengths_have_their_families_in_order():
    items = [Scored("answered", True, "x", answers=("x",), subs=(Sub("answered", "x", "x"),) * hops)
             for hops in random.Random(0).sample(range(1, 13), 12)]
    figures = aggregate(rows_of(items, "corrected", ("chain",)), resamples=2)
    assert [name for name in figures if name.startswith("sub_em@")] == [f"sub_em@{place}" for place in range(1, 13)]
    assert figures["sub_em@1"]["n"] == 12
    assert figures["sub_em@12"]["n"] == 1
