"""Tables of trajectories: figures by cell, calibration, and tests between cells."""
from acted import acted, begins, passage, search, stops, turn
from stored import cell

from ragbed.experiments.analysis.inputs import AnalysisInput
from ragbed.experiments.guests.trajectories.trajectory_views import trajectory_views
from ragbed.experiments.metrics import aggregate
from ragbed.experiments.question import Question

CELLS = [cell("retrieved", reasoning=name, retriever="bm25") for name in ("short", "long")]
BOTH = (passage(1, 0), passage(2, 1))


def views_of(*results, cells=CELLS):
    rows = [{"id": one.id, **one.levels, "judge": "j", "rules": "grounded", "metrics": aggregate(own)}
            for one, own in zip(cells, results, strict=True)]
    questions = {one.question: Question(one.question, "?", ("x",), True) for one in results[0]}
    run = AnalysisInput(rows, {one.id: own for one, own in zip(cells, results, strict=True)}, questions, ("unified",))
    return {view.name: view for view in trajectory_views(run)}


def asked(cell, number, *steps, **changes):
    question = Question(f"q{number}", "?", ("x",), True)
    return acted(begins("search"), turn(100, 0), *steps, stops(), evidence=BOTH, cell=cell, question=question,
                 **changes)


def test_tables_hold_the_means_and_leave_out_tools_that_no_cell_called():
    views = views_of([asked(CELLS[0], number, search("a", 1, 2)) for number in range(6)],
                     [asked(CELLS[1], number, search("b", 1), turn(200, 0), search("c", 2)) for number in range(6)])
    calls, ended = views["trajectories:calls"], views["trajectories:ended"]
    assert calls.header == ("cell", "n", "calls", "search")
    assert [[one if isinstance(one, int | str) else one["mean"] for one in row] for row in calls.rows] == [
        ["short", 6, 1, 1], ["long", 6, 2, 2]]
    assert ended.header == ("cell", "n", "ended by answer")
    tests = views["trajectories:compared"]
    row = next(row for row in tests.rows if row[0] == "tokens")
    assert (row[1], row[tests.header.index("p")]) == ("short → long", 0.03125)  # 2 of 2^6 swaps are as far apart


def test_calibration_error_needs_100_answers_with_a_confidence():
    def told(number, confidence):
        return asked(CELLS[0], number, search("a", 1), grade="Correct" if number % 2 else "Wrong",
                     figures={"confidence": confidence})

    half = [told(number, 0.9) for number in range(100)]
    ended = views_of(half, cells=CELLS[:1])["trajectories:ended"]
    assert ended.column("calibration error")[0]["mean"] == 0.4
    assert ended.column("calibration error")[0]["n"] == 100
    assert "calibration error" not in views_of(half[:99], cells=CELLS[:1])["trajectories:ended"].header


def test_a_run_without_agents_has_no_tables():
    assert views_of([acted(search("a", 1), turn(1, 1, "answer"), cell=CELLS[0])], cells=CELLS[:1]) == {}
