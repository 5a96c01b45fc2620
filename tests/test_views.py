"""The breakdowns of a finished run, against figures computed by hand."""
import json
from dataclasses import replace
from typing import get_args

import pytest
from factored import BASE
from stored import result as stored_result

from ragbed.documents import SettingsError
from ragbed.experiments import Question, Step, Verdict, aggregate
from ragbed.experiments.analysis.analyses import find_view, make_views
from ragbed.experiments.analysis.inputs import AnalysisInput
from ragbed.experiments.analysis.view import View
from ragbed.experiments.conditions import Condition
from ragbed.experiments.guests.datasets.benchmark_views import _CONDITIONS, wins
from ragbed.experiments.metrics import estimate_share

FACTORS = {**BASE, "rules": "choice", "condition": "full"}


def result(cell, question, scores, steps=None):
    verdict = None if steps is None else Verdict(judge="lexical", steps=None if steps == "none" else tuple(steps))
    if verdict:
        scores = {"reasoning_score": 0.0, **scores, "unjudged": float(verdict.unjudged)}
    return stored_result(cell, question, scores, verdict=verdict)


def material(cells, results, questions, columns):
    by_cell = {name: [one for one in results if one.cell == name] for name in cells}
    rows = [{"id": name, **FACTORS, "judge": "lexical", "n": len(by_cell[name]),
             "metrics": aggregate(by_cell[name]), **changes} for name, changes in cells.items()]
    return AnalysisInput(rows, by_cell, {one.id: one for one in questions}, columns)


def question(id, steps=(), **tags):
    return Question(id, "?", ("A",), answerable=True, steps=steps,
                    tags={name: value if isinstance(value, tuple) else (value,) for name, value in tags.items()})


def means(row, keys):
    """A row with its estimates as means."""
    return [*row[:keys], *(value["mean"] if isinstance(value, dict) else value for value in row[keys:])]


def choice_run():
    """Two cells over five questions of two tasks; the second cell differs in its reasoning."""
    questions = [question(f"q{n}", task=task) for n, task in enumerate(["Reasoning", "Context", "Context", "Context",
                                                                        "Reasoning"])]
    right = {"a": [1, 1, 0, 1, 0], "b": [0, 0, 0, 1, 0]}
    results = [result(cell, f"q{n}", {"accuracy": float(score)}) for cell, scores in right.items()
               for n, score in enumerate(scores)]
    return material({"a": {}, "b": {"reasoning": "chain"}}, results, questions, ("accuracy",))


def test_a_breakdown_has_a_row_for_each_value_and_cell_and_averages_over_questions():
    view, = find_view("by:task")(choice_run())
    assert view.header == ("task", "cell", "n", "accuracy")
    assert [means(row, 3) for row in view.rows] == [
        ["Context", "direct", 3, pytest.approx(2 / 3)], ["Context", "chain", 3, pytest.approx(1 / 3)],
        ["Reasoning", "direct", 2, 0.5], ["Reasoning", "chain", 2, 0.0],
        ["all", "direct", 5, 0.6], ["all", "chain", 5, 0.2]]
    assert view.rows[0][3] == estimate_share(2, 3)


def test_a_question_of_several_values_counts_in_each_and_one_of_none_apart():
    questions = [question("q0", kind=("2", "10")), question("q1", kind="10"), question("q2")]
    run = material({"a": {}}, [result("a", f"q{n}", {"accuracy": float(n == 0)}) for n in range(3)], questions,
                   ("accuracy",))
    view, = find_view("by:kind")(run)
    assert [means(row, 3) for row in view.rows] == [
        ["2", "direct", 1, 1.0], ["10", "direct", 2, 0.5], ["no kind", "direct", 1, 0.0],
        ["all", "direct", 3, pytest.approx(1 / 3)]]
    assert view.notes == ("1 questions have several values and count in each.",)


def test_columns_that_share_a_place_are_apart_and_a_judged_one_names_the_judge():
    questions = [question("q0", language="en"), question("q1", language="ko")]
    scores = {"unified": 0.5, "correct": 0.0, "partial": 1.0, "wrong": 0.0}
    run = material({"a": {}}, [result("a", f"q{n}", scores) for n in range(2)], questions,
                   ("unified", "correct / partial / wrong", "refusal_accuracy"))
    view, = find_view("by:language")(run)
    assert view.header[3:] == ("unified (lexical)", "correct (lexical)", "partial (lexical)", "wrong (lexical)",
                               "refusal_accuracy")
    assert means(view.rows[0], 3) == ["en", "direct", 1, 0.5, 0.0, 1.0, 0.0, None]


def order_run(perturbations):
    grades = {None: [1.0, 0.8, 0.4], "unnumbered": [0.5, 0.9, 0.4], "shuffle": [0.7, 0.5, 0.1],
              "shuffle+unnumbered": [0.0, 0.0, 0.0]}
    cells = {str(name): {"perturbation": name, "condition": "provided"} for name in perturbations}
    results = [result(str(name), f"q{n}", {"graded_accuracy": grade, "graded_em": float(grade > 0.8)})
               for name in perturbations for n, grade in enumerate(grades[name])]
    return material(cells, results, [question(f"q{n}") for n in range(3)], ("graded_accuracy", "graded_em"))


def test_the_order_ablation_stands_beside_the_original_with_paired_changes():
    view, = find_view("order")(order_run([None, "shuffle", "unnumbered", "shuffle+unnumbered"]))
    assert view.header[4] == "graded_accuracy: change"
    rows = [means(row, 3) for row in view.rows]
    assert {row[1] for row in rows} == {"direct"}
    assert [row[0] for row in rows] == ["original", "separators off", "shuffled", "separators off, shuffled"]
    assert rows[0][3:] == [pytest.approx(2.2 / 3), None, pytest.approx(1 / 3), None]
    assert rows[1][4] == pytest.approx((-0.5 + 0.1 + 0.0) / 3)
    assert rows[2][4] == pytest.approx(-0.3)
    left = 1 - 0.025 ** (1 / 3)  # each question loses 0.3: no spread, but the room between -1 and 1
    assert view.rows[2][4]["low"] == pytest.approx(-0.3 - left * 0.7)
    assert view.rows[2][4]["high"] == pytest.approx(-0.3 + left * 1.3)
    assert rows[1][5:] == [pytest.approx(1 / 3), 0.0]


def test_without_an_original_or_with_it_alone_there_is_no_order_ablation():
    assert find_view("order")(order_run([None])) == []
    assert find_view("order")(order_run(["shuffle", "unnumbered"])) == []


def test_the_heat_map_counts_steps_by_depth_and_length():
    steps = (Step("a", 0.0), Step("b", 0.55), Step("inference"), Step("c", 1.0))
    questions = [replace(question(f"q{n}", steps), length=length) for n, length in enumerate((40_000, 60_000, 60_000))]
    results = [result("full", "q0", {}, [0, 2]), result("full", "q1", {}, [1]), result("full", "q2", {}, "none"),
               result("found", "q0", {}, [3]), result("found", "q1", {}, [0])]
    view, = find_view("depth")(material({"full": {}, "found": {"condition": "retrieved"}}, results, questions, ()))
    assert view.shaded
    assert view.header[3:5] == ("0-10%", "10-20%")
    assert [row[:3] for row in view.rows] == [
        ("under 50,000 characters", "full", 3), ("under 50,000 characters", "retrieved", 3),
        ("50,000 to 100,000 characters", "full", 3), ("50,000 to 100,000 characters", "retrieved", 3)]
    first = view.rows[0][3:]
    assert [(at, one["mean"], one["n"]) for at, one in enumerate(first) if one] == [
        (0, 1.0, 1), (5, 0.0, 1), (9, 0.0, 1)]
    assert [one["mean"] for one in view.rows[2][3:] if one] == [0.0, 1.0, 0.0]
    assert [one["mean"] for one in view.rows[1][3:] if one] == [0.0, 0.0, 1.0]
    assert view.notes[1] == "1 unjudged answers are left out."


def test_chain_outcomes_are_shares_of_all_patterns_by_hops():
    chains = ["ccc", "ccc", "ccw", "wcc", "wwc", "www", "cccc", ""]
    def scores(chain):
        if not chain:
            return {"em": 0.0, "chain_correct": None, "lucky": None}
        *steps, final = chain
        right = float(set(chain) == {"c"})
        return {"chain_correct": right, "lucky": float(final == "c") - right,
                **{f"sub_em@{n}": float(one == "c") for n, one in enumerate(steps, 1)}}

    results = [result("a", f"q{n}", scores(chain)) for n, chain in enumerate(chains)]
    view, = find_view("chain")(material({"a": {}}, results, [question(f"q{n}") for n in range(8)], ("em",)))
    shares = {row[:2]: row[4]["mean"] for row in view.rows}
    assert len(view.rows) == 8 + 2 + 16 + 2
    assert [row[1] for row in view.rows[:8]] == ["c c c", "c c w", "c w c", "c w w", "w c c", "w c w", "w w c", "w w w"]
    assert shares["2", "c c c"] == pytest.approx(2 / 6)
    assert shares["2", "right for the right reason"] == pytest.approx(2 / 6)
    assert shares["2", "lucky: right answer, a step wrong"] == pytest.approx(2 / 6)
    assert sum(share for (hops, words), share in shares.items() if hops == "2" and words[1] == " ") == pytest.approx(1)
    assert shares["3", "c c c c"] == 1.0
    assert view.notes[1] == "1 answers without a scored chain are left out."


def test_the_gap_is_paired_and_by_the_hops_of_the_edited_question():
    questions = [question("o1", pair="1", version="original"), question("o2", pair="2", version="original"),
                 question("e1", pair="1", version="edited", hops="2"),
                 question("e1b", pair="1", version="edited", hops="3"),
                 question("e2", pair="2", version="edited", hops="2"),
                 question("e9", pair="9", version="edited", hops="2")]
    em = {"o1": 1.0, "o2": 0.0, "e1": 0.0, "e1b": 0.0, "e2": 0.0, "e9": 1.0}
    results = [result("a", name, {"em": score, "f1": score / 2}) for name, score in em.items()]
    view, = find_view("gap")(material({"a": {}}, results, questions, ("em", "f1")))
    assert view.header[3:6] == ("em: original", "em: edited", "em: change")
    assert [means(row, 3) for row in view.rows] == [
        ["2", "direct", 2, 0.5, 0.0, -0.5, 0.25, 0.0, -0.25],
        ["3", "direct", 1, 1.0, 0.0, -1.0, 0.5, 0.0, -0.5],
        ["all", "direct", 3, pytest.approx(2 / 3), 0.0, pytest.approx(-2 / 3), pytest.approx(1 / 3), 0.0,
         pytest.approx(-1 / 3)]]


def test_no_figure_of_a_breakdown_or_a_chain_mixes_originals_with_edited_questions():
    questions = [question("o1", version="original", hops="2"), question("o2", version="original", hops="3"),
                 question("e1", version="edited", hops="2"), question("e2", version="edited", hops="3"),
                 question("e3", version="edited", hops="3")]
    em = {"o1": 1.0, "o2": 1.0, "e1": 1.0, "e2": 0.0, "e3": 0.0}
    results = [result("a", name, {"em": score, "sub_em@1": score, "chain_correct": score, "lucky": 0.0})
               for name, score in em.items()]
    run = material({"a": {}}, results, questions, ("em",))
    hops, = find_view("by:hops")(run)
    assert (hops.header, hops.keys) == (("version", "hops", "cell", "n", "em"), 3)
    assert [means(row, 4) for row in hops.rows] == [
        ["original", "2", "direct", 1, 1.0], ["original", "3", "direct", 1, 1.0], ["original", "all", "direct", 2, 1.0],
        ["edited", "2", "direct", 1, 1.0], ["edited", "3", "direct", 2, 0.0],
        ["edited", "all", "direct", 3, pytest.approx(1 / 3)]]
    chains, = find_view("chain")(run)
    assert {row[:3]: row[5]["mean"] for row in chains.rows if row[2] in ("c c", "w w")} == {
        ("original", "1", "c c"): 1.0, ("original", "1", "w w"): 0.0,
        ("edited", "1", "c c"): pytest.approx(1 / 3), ("edited", "1", "w w"): pytest.approx(2 / 3)}
    assert (chains.header[0], chains.keys, len(chains.notes)) == ("version", 4, 1)
    versions, = find_view("by:version")(run)
    assert [means(row, 3) for row in versions.rows] == [
        ["original", "direct", 2, 1.0], ["edited", "direct", 3, pytest.approx(1 / 3)], ["all", "direct", 5, 0.6]]


def test_without_originals_there_is_no_gap():
    questions = [question("e1", pair="1", version="edited", hops="2")]
    assert find_view("gap")(material({"a": {}}, [result("a", "e1", {"em": 1.0})], questions, ("em",))) == []


def test_views_without_their_material_are_left_out_and_the_others_are_plain_json():
    run = choice_run()
    made = make_views(("by:task", "by:absent", "order", "wins", "depth", "chain", "gap"), run)
    assert [view.name for view in made] == ["by:task"]
    plain = made[0].as_json()
    assert json.loads(json.dumps(plain)) == plain
    assert View.of(plain) == made[0]
    assert make_views(("by:task",), AnalysisInput([], {}, run.questions, run.columns)) == []


@pytest.mark.parametrize("name", ["heat", "by:", ""])
def test_an_unknown_view_is_refused_with_the_known_ones(name):
    with pytest.raises(SettingsError, match="choose from: chain, order, wins, depth, gap, browsing, memory or by:TAG"):
        find_view(name)


def test_a_cell_is_called_by_what_differs_and_closed_books_rules_go_without_saying():
    run = material({"full": {}, "closed-book": {"condition": "closed-book", "rules": "closed-book"}}, [], [], ())
    assert [label for label, _ in run.labelled()] == ["full", "closed-book"]
    assert [label for label, _ in order_run([None, "shuffle"]).labelled()] == ["no perturbation", "shuffle"]
    twice = AnalysisInput([run.cells[0], {**run.cells[0], "id": "z"}], run.results, run.questions, run.columns)
    assert [label for label, _ in twice.labelled()] == ["direct (full)", "direct (z)"]


def detective_run(conditions):
    """Answers and shares of steps in four conditions; what is None was not judged."""
    full = [(1, 0.5), (1, 0.2), (0, 0.9), (0, 0.5), (1, 0.4), (1, None)]
    closed = [(0, 0.9), (1, 0.4), (0, 0.1), (1, 0.0), (1, 0.4), (1, 0.3)]
    evidence = [(1, 0.9), (1, 0.9), (1, 0.9), (1, 0.9), (1, 0.9), (0, 0.9)]
    answers = {"full": full, "provided": evidence, "closed-book": closed, "gold": evidence}
    results = [result(name, f"q{n}", {"accuracy": float(right), "reasoning_score": share or 0.0},
                      "none" if share is None else ()) for name in conditions
               for n, (right, share) in enumerate(answers[name])]
    cells = {name: {"condition": name, "rules": "closed-book" if name == "closed-book" else "choice"}
             for name in conditions}
    return material(cells, results, [question(f"q{n}") for n in range(6)], ("accuracy", "reasoning_score"))


def test_the_win_rate_compares_answers_and_reasoning_and_counts_what_it_leaves_out():
    view, = wins(detective_run(["closed-book", "full"]))
    # 1.5 to 0.9 wins; 1.2 to 1.4 loses; both wrong; 0.5 to 1.0 loses; 1.4 to 1.4 ties; 1.0 to 1.3 loses
    assert view.rows == (("full against closed-book", "answers and reasoning", "direct", 6, 1, 3, 1, 1,
                          estimate_share(1, 4)),)
    assert view.notes[1] == "1 unjudged answers count as having no step."


def test_a_reasoning_that_was_not_judged_counts_once_in_however_many_pairs_it_stands():
    view, = wins(detective_run(["closed-book", "provided", "full"]))
    assert [row[0] for row in view.rows] == ["full against provided", "full against closed-book",
                                             "provided against closed-book"]
    assert view.notes[1] == "1 unjudged answers count as having no step."


def test_the_win_rate_knows_every_condition():
    assert set(_CONDITIONS) == set(get_args(Condition))


def test_gold_against_the_full_context_compares_answers_alone():
    view, = wins(detective_run(["closed-book", "full", "gold"]))
    assert [row[:2] for row in view.rows] == [
        ("gold against full", "answers only"), ("gold against closed-book", "answers and reasoning"),
        ("full against closed-book", "answers and reasoning")]
    assert view.rows[0][3:] == (6, 2, 1, 3, 0, estimate_share(2, 3))


def test_one_condition_alone_has_no_win_rate():
    assert wins(detective_run(["full"])) == []


def test_only_cells_that_are_otherwise_equal_are_compared():
    run = detective_run(["closed-book", "full"])
    other = AnalysisInput([run.cells[0], {**run.cells[1], "model": "other"}], run.results, run.questions, run.columns)
    assert wins(other) == []
