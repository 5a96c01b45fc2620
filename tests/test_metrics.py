"""CReSt's metrics per question, as published and corrected: each difference has its golden pair."""
import pytest

from ragbed.documents import SettingsError
from ragbed.experiments import METRICS, Scored, find_metric, score

REFUSAL = "I cannot answer because the question is unanswerable with the documents."
GOLD_1_AND_3 = {1: frozenset({0}), 2: frozenset(), 3: frozenset({1})}


def both(name, **material):
    item = Scored(**{"outcome": "answered", "answerable": True, "text": "x", "answers": ("x",)} | material)
    return score(item, "as-published")[name], score(item, "corrected")[name]


def test_unified_gives_points_by_grade_charges_a_needless_refusal_and_rewards_a_rightful_one():
    for grade, points in (("Correct", 1.0), ("Partially Correct", 0.5), ("Wrong", 0.0)):
        assert both("unified", grade=grade) == (points, points)
    refused = {"outcome": "refused", "text": REFUSAL, "refused": True, "grade": "Wrong"}
    assert both("unified", **refused) == (-1.0, -1.0)
    assert both("unified", answerable=False, **refused) == (1.0, 1.0)
    assert both("unified", answerable=False) == (0.0, 0.0)


def test_published_refusal_is_the_word_anywhere():
    mention = {"text": "Some call it unanswerable, but it is 4.", "answerable": False}
    assert both("unified", **mention) == (1.0, 0.0)
    assert both("refusal_accuracy", **mention) == (1.0, 0.0)
    assert both("refused_answerable", text="Some call it UNANSWERABLE, but it is 4.") == (1.0, 0.0)


def test_published_minus_one_needs_the_word_and_a_wrong_grade():
    assert both("unified", text="Not unanswerable: 4", grade="Correct") == (1.0, 1.0)
    assert both("unified", text="Not unanswerable: 5", grade="Wrong") == (-1.0, 0.0)
    assert both("unified", text="Not unanswerable: 4ish", grade="Partially Correct") == (0.5, 0.5)
    refused = {"outcome": "refused", "text": REFUSAL, "refused": True}
    assert both("unified", grade="Correct", **refused) == (1.0, -1.0)
    assert both("unified", grade="Partially Correct", **refused) == (0.5, -1.0)
    assert both("correct", grade="Correct", **refused) == (1.0, 0.0)
    assert both("unified", grade=None, **refused) == (0.0, -1.0)
    assert both("unjudged", grade=None, **refused) == (1.0, 0.0)


def test_published_scoring_drops_empty_answers_and_corrected_counts_them():
    for outcome in ("malformed", "too_long", "budget", "timeout", "error"):
        for name in ("unified", "correct", "wrong"):
            assert both(name, outcome=outcome, text="") == (None, 0.0)
        assert both("unified", outcome=outcome, text="", answerable=False) == (None, 0.0)
        assert both("citation_recall", outcome=outcome, text="", gold_total=1) == (None, 0.0)


REFUSED_WRONG = {"outcome": "refused", "text": REFUSAL, "refused": True, "grade": "Wrong"}


@pytest.mark.parametrize(("name", "answer", "expected"), [
    # A verdict that was not read has two published denominators and no corrected score.
    ("unified", {"grade": None}, (0.0, None)), ("correct", {"grade": None}, (None, None)),
    ("unjudged", {"grade": None}, (1.0, 1.0)), ("unjudged", {"grade": "Wrong"}, (0.0, 0.0)),
    # A refusal that is wrong is counted in both scorings.
    ("wrong", REFUSED_WRONG, (1.0, 1.0)), ("unjudged", REFUSED_WRONG, (0.0, 0.0)),
    ("refused_answerable", REFUSED_WRONG, (1.0, 1.0))])
def test_what_was_not_judged_and_what_was_wrongly_refused(name, answer, expected):
    assert both(name, **answer) == expected


@pytest.mark.parametrize(("changes", "precision", "recall"), [
    ({"text": "x [1][2]", "cited": (1, 2)}, (0.5, 0.5), (0.5, 0.5)),
    # Only single brackets are published citations.
    ({"text": "x [1, 3]", "cited": (1, 3)}, (0.0, 1.0), (0.0, 1.0)),
    # Numbers never shown lower published precision.
    ({"text": "x [1] in [2019]", "cited": (1,), "invalid": (2019,)}, (0.5, 1.0), (0.5, 0.5)),
    # Repeated gold labels lower published recall.
    ({"text": "x [1][3]", "cited": (1, 3), "gold_repeats": 2}, (1.0, 1.0), (0.5, 1.0)),
    # Two chunks of one gold page are both precise, and recall it once.
    ({"text": "x [1][2]", "cited": (1, 2), "hits": {1: frozenset({0}), 2: frozenset({0})}, "gold_total": 1},
     (1.0, 1.0), (1.0, 1.0))])
def test_citations_by_hand(changes, precision, recall):
    item = {"hits": GOLD_1_AND_3, "gold_total": 2, **changes}
    assert both("citation_precision", **item) == precision
    assert both("citation_recall", **item) == recall
    assert both("invalid_citations", **item) == (None, float("invalid" in changes))


def test_a_question_without_gold_labels_has_no_corrected_citation_score():
    assert both("citation_recall", text="x [1]", cited=(1,), hits={1: frozenset()}) == (0.0, None)


def test_recall_in_view_forgives_gold_that_was_not_shown():
    item = {"text": "x [1]", "cited": (1,), "hits": {1: frozenset({0}), 2: frozenset()}, "gold_total": 4}
    assert both("citation_recall", **item)[1] == 0.25
    assert both("citation_recall_in_view", **item)[1] == 1.0
    assert both("citation_recall_in_view", **item | {"hits": {1: frozenset()}})[1] is None


@pytest.mark.parametrize("rules", ["reading", "choice", "closed-book"])
def test_without_citation_rules_no_citation_metric_applies(rules):
    scores = score(Scored("answered", True, "x", rules=rules, gold_total=1))
    assert {name for name, value in scores.items() if "citation" in name and value is not None} == set()


def test_a_question_without_a_gold_answer_has_no_grade():
    for text, refused in (("x", False), (REFUSAL, True)):
        scores = score(Scored("refused" if refused else "answered", True, text, refused))
        assert [scores[name] for name in ("unified", "correct", "partial", "wrong", "em", "f1")] == [None] * 6


def test_em_and_f1_ignore_citations_and_count_failures():
    assert both("em", text="The Tybalt [1, 2].", answers=("Romeo", "Tybalt")) == (1.0, 1.0)
    assert both("f1", text="Tybalt Capulet [1]", answers=("Tybalt",))[1] == pytest.approx(2 / 3)
    assert both("f1", outcome="timeout", text="", answers=("Tybalt",)) == (0.0, 0.0)
    assert both("em", answerable=False) == (None, None)


def test_form_is_counted_over_everything():
    assert both("well_formed", outcome="malformed", text="")[1] == 0.0
    assert both("well_formed", outcome="refused", text=REFUSAL)[1] == 1.0
    assert both("tagged", tagged=True)[1] == 1.0
    assert both("tagged", tagged=None)[1] is None


def test_names_parse_back_and_a_typo_lists_the_valid_ones():
    shapes = [metric.shape for metric in METRICS.values()]
    names = [shape.replace("[@N]", "").replace("@N", "@5") for shape in shapes]
    assert {"recall@5", "sub_em@5", "mrr"} <= set(names)
    names += [shape.replace("[@N]", "@10") for shape in shapes if "[@N]" in shape]
    assert {"mrr@10"} <= set(names)
    assert all(str(find_metric(name)) == name for name in names)
    for wrong in ("recall", "recall@", "recall@0", "recall@05", "recall@x", "em@5", "recall@5@5",
                  "recall@" + "9" * 5000):
        with pytest.raises(SettingsError):
            find_metric(wrong)
    with pytest.raises(SettingsError, match=r"unknown metric 'unifed'; did you mean 'unified'\? "):
        find_metric("unifed")


@pytest.mark.parametrize("rules", ["open", "reading", "choice", "closed-book"])
def test_where_the_prompt_offers_no_refusal_none_is_scored(rules):
    refused = {"rules": rules, "outcome": "refused", "text": REFUSAL, "refused": True}
    assert both("refusal_accuracy", answerable=False, **refused) == (None, None)
    assert both("refused_answerable", **refused) == (None, None)
    assert both("unified", answerable=False, **refused) == (None, None)
    assert both("unified", grade="Correct", rules=rules) == (1.0, 1.0)


def test_a_reply_that_could_not_be_read_has_no_marks_corrected_though_a_judge_has_seen_its_text():
    names = ("unified", "correct", "partial", "unjudged", "citation_precision", "citation_recall",
             "citation_recall_in_view", "invalid_citations")
    cut = {"outcome": "malformed", "text": "[1][3]", "grade": "Correct", "cited": (1, 3), "invalid": (9,),
           "hits": GOLD_1_AND_3, "gold_total": 2}
    assert {both(name, **cut)[1] for name in names} == {0.0}
    assert both("unified", **cut)[0] == 1.0
    found = score(Scored(answerable=True, answers=("x",), **cut), groups=("support",))
    assert {found[name] for name in ("support_em", "support_f1", "support_joint_f1")} == {0.0}
