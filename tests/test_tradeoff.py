"""The refusal trade-off: how much is answered, against how much of that is wrong; and sweeps of a threshold."""
from dataclasses import replace

import pytest
from bs4 import BeautifulSoup
from charted import words
from sklearn.metrics import auc
from stored import cell

from ragbed.experiments.analysis.causes import Case
from ragbed.experiments.analysis.error_analysis import estimate_tradeoff

CELL = cell()


def traded(*cases, cell=CELL, grouped=()):
    return estimate_tradeoff([cell], {cell.id: {str(place): case for place, case in enumerate(cases)}}, dict(grouped),
                             {})


def answered(score, **changes):
    return Case(**{"outcome": "answered", "score": score, **changes})


REFUSED = Case(outcome="refused", score=-1.0, refused=True)


def test_coverage_counts_answers_and_risk_the_wrong_among_them():
    row, = traded(answered(1.0), answered(1.0), answered(0.0), REFUSED)
    assert (row["cell"], row["answered"]["mean"], row["answered"]["n"]) == (CELL.id, 0.75, 4)
    assert (row["risk"]["mean"], row["risk"]["n"]) == (pytest.approx(1 / 3), 3)
    assert row["refused"]["mean"] == 0.25
    assert 0 < row["risk"]["low"] < 1 / 3 < row["risk"]["high"] < 1


def test_unanswerable_questions_count_and_every_answer_to_them_is_wrong():
    right = Case(outcome="refused", score=1.0, refused=True, answerable=False)
    row, = traded(answered(1.0), answered(0.0, answerable=False), right)
    assert (row["answered"]["n"], row["answered"]["mean"]) == (3, pytest.approx(2 / 3))
    assert (row["risk"]["mean"], row["risk"]["n"]) == (0.5, 2)


def test_failures_lower_the_coverage_and_are_no_risk():
    failed = [Case(outcome=outcome, score=0.0) for outcome in ("malformed", "too_long", "budget", "timeout", "error")]
    row, = traded(answered(1.0), *failed)
    assert (row["answered"]["mean"], row["refused"]["mean"]) == (pytest.approx(1 / 6), 0.0)
    assert (row["risk"]["mean"], row["risk"]["n"]) == (0.0, 1)


@pytest.mark.parametrize(("cases", "coverage", "risk", "n"), [
    ([answered(0.5), answered(1.0)], 1.0, 0.5, 2),  # partially correct is wrong
    ([answered(1.0), answered(0.0, unread=True)], 0.5, 0.0, 1),  # a reply that names no option is no answer
    # What is not judged or scored is answered, and no part of the risk.
    ([answered(0.0), answered(0.0, unjudged=True), answered(None)], 1.0, 1.0, 1)])
def test_what_counts_as_answered_and_what_as_wrong(cases, coverage, risk, n):
    row, = traded(*cases)
    assert (row["answered"]["mean"], row["risk"]["mean"], row["risk"]["n"]) == (coverage, risk, n)


def test_where_all_is_refused_there_is_no_risk_to_state():
    row, = traded(REFUSED, REFUSED)
    assert (row["answered"]["mean"], row["risk"]) == (0.0, {"mean": None, "low": None, "high": None, "n": 0})


def test_only_rules_that_offer_a_refusal_have_one():
    for rules in ("open", "reading", "choice", "closed-book"):
        assert traded(answered(1.0), cell=replace(CELL, rules=rules)) is None
    assert estimate_tradeoff([CELL], {}, {}, {}) is None


def test_questions_that_share_a_document_widen_the_interval():
    cases = [answered(float(place < 20)) for place in range(40)]
    alone, = traded(*cases)
    joined, = traded(*cases, grouped={str(place): str(place // 4) for place in range(40)})
    widths = [row["risk"]["high"] - row["risk"]["low"] for row in (alone, joined)]
    assert widths[1] > 1.5 * widths[0]


def test_the_area_under_the_curve_of_a_sweep_is_scikit_learns_and_has_an_interval():
    sure = [place * 37 % 40 / 40 for place in range(40)]  # how sure it is; the surer, the more often right
    cells = [replace(CELL, reasoning=f"sure@{threshold}") for threshold in (0.6, 0.0, 0.3, 0.9)]
    sweeps = {cell.reasoning: ("sure", float(cell.reasoning.partition("@")[2])) for cell in cells}
    cases = {cell.id: {str(place): answered(float(place % 10 < 10 * of)) if of >= sweeps[cell.reasoning][1] else REFUSED
                       for place, of in enumerate(sure)} for cell in cells}
    rows = estimate_tradeoff(cells, cases, {}, sweeps)
    points = sorted((row["answered"]["mean"], row["risk"]["mean"]) for row in rows)
    area = rows[0]["area"]
    assert area["mean"] == pytest.approx(auc(*zip(*points, strict=True)), abs=1e-10)
    assert 0 < area["low"] < area["mean"] < area["high"] < 1
    assert [row["area"] for row in rows] == [area] * 4
    assert estimate_tradeoff(cells[:1], cases, {}, sweeps)[0]["area"] is None


REFUSE = {"kind": "supported", "otherwise": "refuse"}


def reply(body):
    """The first answer wrong and out of nowhere, the last short of a word, all others as the document has it."""
    last = body["messages"][-1]["content"]
    number = int(last.rpartition("in town ")[2].partition("?")[0])
    return {0: "999 people [1]", 5: "555 people, counted lately [1]"}.get(number, f"{number * 111} people [1]")


def made(serve, town, ragbed, reasoning, **settings):
    server = serve(reply)
    return server, ragbed.json("run", town.config(server.url, reasoning=reasoning, **settings))


def test_a_sweep_asks_what_one_threshold_asks(serve, town, ragbed):
    server, summary = made(serve, town, ragbed, {**REFUSE, "threshold": [0.0, 0.2, 0.6]})
    assert [f"threshold={one}" in row["reasoning"] for one, row in zip((0.0, 0.2, 0.6), summary["cells"], strict=True)
            ] == [True] * 3
    assert len(server.requests) == 6
    assert [row["usage"]["calls"] for row in summary["cells"]] == [6, 6, 6]


def test_a_sweep_of_judged_sufficiency_judges_once_too(serve, town, ragbed):
    def both(body):
        return "Sufficiency: 6" if "Judge whether" in body["messages"][-1]["content"] else reply(body)

    server = serve(both)
    settings = {"kind": "sufficient", "of": "direct", "iterations": 0, "threshold": [0.2, 0.5, 0.8]}
    summary = ragbed.json("run", town.config(server.url, reasoning=settings))
    assert len(server.requests) == 12
    assert [row["outcomes"]["refused"] for row in summary["cells"]] == [0, 0, 6]


@pytest.mark.slow
def test_each_threshold_tells_what_it_answers_and_refuses(serve, town, ragbed):
    _, summary = made(serve, town, ragbed, [{**REFUSE, "threshold": [0.0, 0.2, 0.6]}, "direct"])
    rows = summary["tradeoff"]
    assert [row.get("threshold") for row in rows] == [0.0, 0.2, 0.6, None]
    assert len({row.get("sweep") for row in rows[:3]}) == 1
    assert [(row["answered"]["mean"], row["rightly"]["mean"], row["needlessly"]["mean"]) for row in rows[:3]] == [
        (1.0, 0.0, 0.0), (pytest.approx(5 / 6), 1.0, 0.0), (pytest.approx(4 / 6), 1.0, 0.2)]
    assert [row["risk"]["mean"] for row in rows[:2]] == [pytest.approx(1 / 6), 0.0]
    status, out, _ = ragbed("diagnose", town.run)
    assert status == 0
    assert "Answers and refusals at each threshold" in out
    assert ragbed.json("diagnose", town.run)["tradeoff"] == rows
    report = BeautifulSoup((town.run / "report.html").read_text(), "html.parser")
    rows = report.select('[data-view="refusals:thresholds"] tbody tr')
    assert [words(row.select("th")[1]).replace(" ", "") for row in rows] == ["0", "0.2", "0.6"]


def test_strategies_of_different_settings_are_no_sweep(serve, town, ragbed):
    _, summary = made(serve, town, ragbed, [REFUSE, {**REFUSE, "threshold": 0.9, "of": "chain_of_thought"}, "direct"])
    assert all("sweep" not in row for row in summary["tradeoff"])
