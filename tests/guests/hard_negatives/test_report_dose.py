"""The report's section on dose and response: charts of a readable number of lines, areas, what differs, no markup."""
import re

import pytest
from charted import HOSTILE, SUMMARY, cell, page, words

from ragbed.experiments.guests.hard_negatives.dose import Reached, compute_dose
from ragbed.experiments.metrics import ScoredQuestion

CHANGES = (None, "negatives@2", "negatives@5")


def figure(mean, n=8):
    return {"mean": mean, "low": max(mean - 0.2, 0.0), "high": min(mean + 0.2, 1.0), "n": n}


def made(strategies, conditions=("gold",), changes=CHANGES, scores=None, asked=8):
    """A summary: the later the strategy, the more it loses with each dose."""
    rows, answers = [], {}
    for condition in conditions:
        for place, strategy in enumerate(strategies):
            for dosed, change in enumerate(changes):
                right = 1.0 if scores is None else scores[place][dosed]
                id = f"{strategy}/{condition}/{change}"
                rows.append(cell(strategy, condition, right, id=id, perturbation=change, benchmark="b", show="question",
                                 retrieval=None, retriever=None, metrics={"em": figure(right)}))
                answers[id] = {f"q{at}": ScoredQuestion(True, "answered", {"em": float(at < asked * right)})
                               for at in range(asked)}
    return SUMMARY | {"cells": rows,
                      "dose": compute_dose(rows, answers, {}, "em", "corrected",
                                           reached={rows[-1]["id"]: Reached(3, 0.25)})}


@pytest.fixture(scope="module")
def section(tmp_path_factory):
    summary = made(("direct", HOSTILE), scores=((1.0, 1.0, 1.0), (1.0, 0.5, 0.0)))
    return page(tmp_path_factory.mktemp("dose"), summary).select_one("#dose")


def test_a_line_goes_through_the_doses_where_they_are(section):
    xs = [float(spot.svg["x"].rstrip("%")) for spot in section.select("svg.area a.spot")][:3]
    assert (xs[1] - xs[0]) / (xs[2] - xs[0]) == pytest.approx(2 / 5, abs=0.001)
    assert [words(tick) for tick in section.select("svg.area text.tick")][-3:] == ["0", "2", "5"]
    assert len(section.select("line.series")) == 4


def test_a_point_says_what_it_is_and_leads_to_its_cell(section):
    *_, last = section.select("a.spot")
    assert last["href"] == "#cell-6"
    assert last["aria-label"] == (
        f"{HOSTILE}; 5 negatives: 0.00 [0.00, 0.20]; 8 questions, 3 with fewer; mean hardness 0.25")


def test_areas_changes_and_what_differs_stand_beside_it(section):
    first, second = (words(row) for row in section.select('[data-view="dose:negatives:negatives"] tbody tr'))
    assert re.match(r"direct 1\.00 \[.* 1\.00 \[.* 1\.00 \[.* \+0\.00 \[", first)
    assert re.match(rf"{re.escape(HOSTILE)} 1\.00 .* 0\.50 .* 0\.00 .* 0\.45 .* -1\.00 \[", second)  # (1.5 + 0.75) / 5
    (test,) = (words(row) for row in section.select("table.tests tbody tr"))
    assert test.startswith(f"reasoning direct → {HOSTILE} 8 1.00 [")
    assert " -0.55 [" in test
    said = [re.sub(r" \[[^]]*\]", "", words(one)) for one in section.select(".hint")]  # without intervals
    assert said[:3] == ["Largest area: 1.00, direct.",
                        f"Significant change from the first dose to the last: {HOSTILE} (-1.00).",
                        f"Significantly different areas: {HOSTILE} against direct (-0.55)."]


def test_a_name_that_attacks_is_only_text(section):
    assert section.select("img, script") == []
    assert HOSTILE in words(section.select_one(".keys"))


def test_the_real_differences_come_first_and_many_others_are_folded(tmp_path):
    last = ((1.0, 1.0, 1.0), (1.0, 0.0, 0.0))
    section = page(tmp_path, made("abcdef", scores=(last[0],) * 5 + last[1:], asked=12)).select_one("#dose")
    first, more = section.select("table.tests")
    assert [len(one.select("tr.real")) for one in (first, more)] == [5, 0]
    assert [len(one.select("tbody tr")) for one in (first, more)] == [5, 10]
    assert words(first.select_one("tr.real")).startswith("reasoning a → f 12")


@pytest.mark.parametrize(("strategies", "conditions", "titles", "keys"), [
    ("abcd", ("gold", "provided"), ("gold", "provided"), ["a b c d"] * 2),
    ("abcdefgh", ("gold",), ("1 to 6", "7 to 8"), [
        "a b c d e f", "g h"])])
def test_too_many_curves_for_one_chart_are_split(tmp_path, strategies, conditions, titles, keys):
    section = page(tmp_path, made(strategies, conditions)).select_one("#dose")
    assert [words(one) for one in section.select(".panel-title")] == [f"exact match · {title}" for title in titles]
    assert [words(one) for one in section.select(".keys")] == keys


def test_metrics_that_are_equal_everywhere_share_a_chart(tmp_path):
    summary = made("ab")
    for curve in summary["dose"]["curves"]:
        for point in curve["points"]:
            point["metrics"] |= {"recall@5": figure(0.5), "recall@10": figure(0.5), "ndcg@10": figure(0.5)}
    summary["dose"]["metrics"] += ["recall@5", "recall@10", "ndcg@10"]
    titles = [words(title) for title in page(tmp_path, summary).select(".panel-title")]
    assert titles == ["exact match", "recall@5, recall@10", "nDCG@10"]


def test_hardness_stands_in_steps_beside_what_has_no_negatives(tmp_path):
    sorts = (None, *(f"negatives@4:{sort}" for sort in ("easy", "medium", "hard")))
    summary = made(("direct",), changes=sorts, scores=((1.0, 1.0, 0.5, 0.25),))
    chart = page(tmp_path, summary).select_one('[data-view="dose:hardness:negatives"]')
    assert [words(tick) for tick in chart.select("text.tick")][-4:] == ["without", "easy", "medium", "hard"]
    plain, *others = chart.select("a.spot")
    assert [spot["aria-label"].split("; ")[1][:10] for spot in others] == ["easy: 1.00", "medium: 0.", "hard: 0.25"]
    assert (plain["class"], len(chart.select("line.series"))) == (["spot", "c1", "bare"], 2)
    assert "Hollow points are cells without negatives" in words(chart)


def test_without_curves_there_is_no_section(tmp_path):
    assert page(tmp_path, SUMMARY).select_one("#dose") is None
