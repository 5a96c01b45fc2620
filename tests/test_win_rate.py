"""DetectiveQA's win rate between conditions, against figures computed by hand."""
from typing import get_args

from stored import result as stored_result

from experiments import Question, Verdict, aggregate
from experiments.analysis.benchmark_views import _CONDITIONS, wins
from experiments.analysis.inputs import AnalysisInput
from experiments.metrics import share_of
from retrieval import Condition


def detective_run(conditions):
    """Answers and shares of steps in four conditions; what is None was not judged."""
    full = [(1, 0.5), (1, 0.2), (0, 0.9), (0, 0.5), (1, 0.4), (1, None)]
    closed = [(0, 0.9), (1, 0.4), (0, 0.1), (1, 0.0), (1, 0.4), (1, 0.3)]
    evidence = [(1, 0.9), (1, 0.9), (1, 0.9), (1, 0.9), (1, 0.9), (0, 0.9)]
    answers = {"full": full, "given": evidence, "closed-book": closed, "gold": evidence}
    results = {name: [result(name, f"q{n}", right, share) for n, (right, share) in enumerate(answers[name])]
               for name in conditions}
    cells = [{"id": name, "model": "m", "reasoning": "direct", "condition": name, "judge": "lexical", "n": 6,
              "rules": "closed-book" if name == "closed-book" else "choice", "metrics": aggregate(results[name])}
             for name in conditions]
    questions = [Question(f"q{n}", "?", ("A",), answerable=True) for n in range(6)]
    return AnalysisInput(cells, results, {one.id: one for one in questions}, ("accuracy", "reasoning_score"))


def result(cell, question, right, share):
    verdict = Verdict(judge="lexical", steps=None if share is None else ())
    return stored_result(cell, question, verdict=verdict, scores={
        "accuracy": float(right), "reasoning_score": share or 0.0, "unjudged": float(verdict.unjudged)})


def test_the_win_rate_compares_answers_and_reasoning_and_counts_what_it_leaves_out():
    view, = wins(detective_run(["closed-book", "full"]))
    # 1.5 to 0.9 wins; 1.2 to 1.4 loses; both wrong; 0.5 to 1.0 loses; 1.4 to 1.4 ties; 1.0 to 1.3 loses
    assert view.rows == (("full against closed-book", "answers and reasoning", "direct", 6, 1, 3, 1, 1,
                          share_of(1, 4)),)
    assert view.notes[1] == "Reasonings that were not judged, and count as holding no step: 1."


def test_a_reasoning_that_was_not_judged_counts_once_in_however_many_pairs_it_stands():
    view, = wins(detective_run(["closed-book", "given", "full"]))
    assert [row[0] for row in view.rows] == ["full against given", "full against closed-book",
                                             "given against closed-book"]
    assert view.notes[1] == "Reasonings that were not judged, and count as holding no step: 1."


def test_the_win_rate_knows_every_condition():
    assert set(_CONDITIONS) == set(get_args(Condition))


def test_gold_against_the_full_context_compares_answers_alone():
    view, = wins(detective_run(["closed-book", "full", "gold"]))
    assert [row[:2] for row in view.rows] == [
        ("gold against full", "answers alone"), ("gold against closed-book", "answers and reasoning"),
        ("full against closed-book", "answers and reasoning")]
    assert view.rows[0][3:] == (6, 2, 1, 3, 0, share_of(2, 3))


def test_one_condition_alone_has_no_win_rate():
    assert wins(detective_run(["full"])) == []


def test_only_cells_that_are_otherwise_equal_are_compared():
    run = detective_run(["closed-book", "full"])
    other = AnalysisInput([run.cells[0], {**run.cells[1], "model": "other"}], run.results, run.questions, run.columns)
    assert wins(other) == []
