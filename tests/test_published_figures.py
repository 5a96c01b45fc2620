"""Figures of the papers that follow from their own formulas and counts; CReSt's are in test_aggregate.py."""

import pytest
from factored import Row

from experiments import Scored, Sub, aggregate, score
from experiments.metrics import chain_pattern

OPTIONS = (("A", "yes"), ("B", "no"))
# MRCEval, Table 2: questions of each sub-task and GPT-4o's accuracy in percent.
GPT_4O = {
    "Context": [("entity", 132, 90.9), ("relation", 110, 38.2), ("event", 28, 46.4), ("counterfactual", 200, 12.0),
                ("unanswerable", 200, 75.0), ("inconsistent", 200, 35.5)],
    "Knowledge": [("commonsense", 200, 58.5), ("world", 200, 47.5), ("domain", 200, 41.5)],
    "Reasoning": [("logical", 184, 58.2), ("arithmetic", 200, 66.0), ("multi-hop", 200, 81.5),
                  ("temporal", 200, 71.5)]}
# MRKE, Table 5: per mille of the 300 questions with two hops, by (first sub-answer, second, final answer).
PATTERNS = [(True, True, True), (True, True, False), (True, False, True), (True, False, False),
            (False, True, True), (False, True, False), (False, False, True), (False, False, False)]
TABLE_5 = {"GPT-4": (363, 123, 20, 253, 57, 37, 3, 143), "GPT-3.5": (133, 93, 67, 243, 37, 37, 73, 317),
           "Bing Chat": (283, 77, 60, 163, 23, 30, 50, 313)}


def chosen(count, percent):
    right = round(count * percent / 100)
    assert abs(100 * right / count - percent) < 0.06
    return [Row(score(Scored("answered", True, f"({'A' if at < right else 'B'})", answers=("A",), options=OPTIONS,
                             rules="choice"), groups=("choice",))) for at in range(count)]


def test_mrcevals_averages_are_over_questions():
    tasks = {task: [row for _, count, percent in subtasks for row in chosen(count, percent)]
             for task, subtasks in GPT_4O.items()}
    everything = [row for rows in tasks.values() for row in rows]
    shown = [round(100 * aggregate(rows, resamples=2)["accuracy"]["mean"], 1) for rows in (*tasks.values(), everything)]
    assert shown == [48.3, 49.2, 69.5, 55.9]
    assert len(everything) == 2254


@pytest.mark.parametrize("scoring", ["corrected", "as-published"])
@pytest.mark.parametrize(("accuracy", "reasoning", "gm"), [(73.99, 27.43, 45.05), (40.58, 22.08, 29.93)])
def test_detectiveqas_gm(accuracy, reasoning, gm, scoring):
    rows = [Row({"accuracy": accuracy / 100, "reasoning_score": reasoning / 100})]
    assert round(100 * aggregate(rows, scoring)["gm"]["mean"], 2) == gm


def patterned(model):
    def item(first, second, final):
        said = ["x" if right else "y" for right in (first, second, final)]
        return Scored("answered", True, said[2], answers=("x",),
                      subs=tuple(Sub("answered", text, "x") for text in said[:2]))
    counts = [round(300 * share / 1000) for share in TABLE_5[model]]
    assert sum(counts) == 300
    return [item(*pattern) for count, pattern in zip(counts, PATTERNS, strict=True) for _ in range(count)]


@pytest.mark.parametrize(("model", "expected"), [("GPT-4", 1.52), ("GPT-3.5", 2.44), ("Bing Chat", 1.95)])
def test_mrkes_joint_em_at_two_hops(model, expected):
    items = patterned(model)
    rows = [Row(score(item, "as-published", ("overlap", "chain"))) for item in items]
    figures = aggregate(rows, "as-published")
    assert round(figures["joint_em_log"]["mean"], 2) == expected
    assert figures["joint_em_log"]["low"] < expected < figures["joint_em_log"]["high"]
    assert figures["joint_em_log"]["n"] == 300


def test_mrkes_shares_of_right_and_lucky_answers():
    items = patterned("GPT-3.5")
    rows = [Row(score(item, groups=("overlap", "chain"))) for item in items]
    figures = aggregate(rows, resamples=2)
    assert round(100 * figures["chain_correct"]["mean"], 1) == 13.3
    assert round(100 * figures["lucky"]["mean"], 1) == 17.7
    assert [chain_pattern(row.scores) for row in rows].count((True, False, False)) == 73
    assert "joint_em_log" not in figures
