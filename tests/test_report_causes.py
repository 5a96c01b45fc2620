"""The report's sentences on causes, failures and refusals."""
from report_runs import Run
from verdicted import cell, said


def test_the_causes_of_the_best_cell_and_of_the_best_that_searches():
    cells = [cell("direct", 0.5, "retrieved"), cell("direct", 0.7, "gold"), cell("direct", 0.1, "closed-book")]

    def row(name, **shares):
        return {"cell": name, "n": 100, "causes": {
            cause: {"mean": share, "low": 0.0, "high": 1.0, "n": 100} for cause, share in shares.items()}}
    names = ("right", "memory", "retrieval_miss", "reasoning_error", "not_known", "not_scored")
    found_causes = {"causes": [{"name": name, "title": name.replace("_", " "), "definition": "d"} for name in names],
                   "notes": [],
                   "cells": [row("direct/retrieved", right=0.3, memory=0.2, retrieval_miss=0.35, reasoning_error=0.15),
                             row("direct/gold", right=0.7, reasoning_error=0.2, not_scored=0.1),
                             row("direct/closed-book", right=0.1, not_known=0.9)]}
    found = said(cells, error_analysis=found_causes)
    assert found["Causes"] == ("Of 50 wrong answers of direct (the best cell): retrieval miss 70 % and reasoning error "
                               "30 %.")
    few = {**found_causes, "cells": [row("direct/retrieved", right=0.9, retrieval_miss=0.06, reasoning_error=0.04)]}
    assert said(cells, error_analysis=few)["Causes"] == (
        "Of 10 wrong answers of direct (the best cell): retrieval miss 6 and reasoning error 4.")
    right = {"causes": found_causes["causes"], "cells": [row("direct/gold", right=1.0)], "notes": []}
    assert said(cells, error_analysis=right)["Causes"] == "No answer is known to be wrong."


def test_failures_say_whether_they_stay_in_the_means():
    cells = [cell("direct", outcomes={"answered": 97, "error": 2, "too_long": 1}), cell("plan")]
    assert said(cells)["Failures"] == "Of 200 answers, 3 failed: error 2 and too long 1. They stay in every mean."
    assert said([cell("plan")])["Failures"] == "None of 100 answers failed."
    published = said([one | {"scoring": "as-published"} for one in cells])["Failures"]
    assert "n is smaller there" in published
    assert "stay in every mean" not in published


def test_failures_have_their_reasons_and_what_is_malformed_is_none_of_them():
    run = Run("direct")
    run.ask("a")
    run.answer("direct", "a", "", outcome="error")
    results = [record.result for record in run.records]
    found = said([cell("direct", outcomes={"answered": 97, "error": 1, "malformed": 2})], results=results)
    assert found["Failures"] == ("Of 100 answers, 1 failed: HTTP 500. Malformed, without an answer that could be "
                                 "read: 2. They stay in every mean.")


def refusing(reasoning, right, over):
    shares = {"refusal_accuracy": right, "refused_answerable": over}
    return cell(reasoning, metrics={"unified": {"mean": 0.5, "low": 0.4, "high": 0.6, "n": 50}, **{
        name: {"mean": count / n if n else None, "low": 0, "high": 1, "n": n} for name, (count, n) in shares.items()}})


def test_refusals_name_the_cells_at_either_end():
    found = said([refusing("direct", (13, 36), (1, 44)), refusing("draft", (28, 36), (0, 44))])
    assert found["Refusals"] == (
        "Unanswerable questions are rightly refused most often by draft (in 28 of 36 cases), least often by direct (in "
        "13 of 36 cases). Answerable questions are needlessly refused most often by direct (in 1 of 44 cases), least "
        "often by draft (in 0 of 44 cases).")
    needless = said([refusing("direct", (0, 0), (4, 44)), refusing("draft", (0, 0), (4, 44))])["Refusals"]
    assert needless == ("Every question is answerable, so that each refusal is needless. Answerable questions are "
                        "needlessly refused by each cell in 4 of 44 cases.")
