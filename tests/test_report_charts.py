"""The report's charts and tables: what they draw, out of which part of the summary, and what stands beside them."""
import pytest
from charted import CELLS, CONDITIONS, HOSTILE, SUMMARY, cell, page, words

from experiments.report.cells import table
from experiments.report.plot import cost_of, plot


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return page(tmp_path_factory.mktemp("report"), SUMMARY)


def test_hostile_names_make_no_element_in_any_chart(report):
    assert report.find_all("img") == []
    assert all(not name.startswith("on") and name != "style" for tag in report.find_all() for name in tag.attrs)


def test_every_link_leads_into_the_page(report):
    targets = [link["href"] for link in report.select("a[href]")]
    assert all(target.startswith("#questions?") or report.select_one(target) for target in targets)


def test_points_have_intervals_words_and_a_row_of_the_table(report):
    spots = report.select("#plot a.spot")
    assert [spot["href"] for spot in spots] == [f"#cell-{number}" for number in range(1, 7)]
    assert spots[2]["aria-label"] == ("direct · gold; exact match 0.20 [0.10, 0.30], 50 questions; "
                                      "200 tokens per question")
    assert [words(line) for line in spots[2].select(".tip text")] == spots[2]["aria-label"].split("; ")
    assert len(report.select("#plot .behind")) == 6


def test_the_front_is_drawn_and_named_in_legend_and_table(report):
    made = table(CELLS, ["em"])
    chart = plot(made, cost_of(made.cells))
    assert [spot.cell.number for spot in chart.spots if spot.front] == [1, 2]
    assert [spot.cell.number for spot in chart.spots if spot.faded] == [3, 4, 5, 6]
    assert len(report.select("#plot line.front")) == 2 * 2
    assert "Faded cells do not compete" in words(report.select_one("#plot figcaption"))
    assert [item.a["href"] for item in report.select("#plot .points li") if "on the front" in words(item)] == [
        "#cell-1", "#cell-2"]
    assert [row["id"] for row in report.select("table.cells tbody tr") if "on the Pareto front" in words(row)] == [
        "cell-1", "cell-2"]


def test_repeats_do_not_compete_with_each_other_on_the_front(tmp_path):
    cells = [cell(name, mean=mean + 0.1 * at, tokens=tokens + at, id=f"{name}{at}", repeat=at)
             for name, mean, tokens in (("direct", 0.3, 100), ("plan", 0.6, 200), ("waste", 0.2, 300)) for at in (0, 1)]
    made = page(tmp_path, {"columns": ["em"], "cells": cells, "notes": []})
    spots = made.select("#plot a.spot")
    assert [spot["href"] for spot in spots] == ["#cell-1", "#cell-3", "#cell-5"]
    assert spots[0]["aria-label"].startswith("direct (2 repeats); exact match 0.35 ")
    assert [bool(spot.select(".on-front")) for spot in spots] == [True, True, False]
    assert [row["id"] for row in made.select("table.cells tbody tr") if "on the Pareto front" in words(row)] == [
        "cell-1", "cell-2", "cell-3", "cell-4"]
    assert "Repeats of a cell are one point" in words(made.select_one("#plot figcaption"))


def test_the_grid_crosses_two_factors_with_shades_and_links(report):
    grid = report.select_one("table.grid")
    assert [words(head) for head in grid.select("thead th")] == ["reasoning", *CONDITIONS]
    squares = grid.select("tbody td")
    assert [square["class"] for square in squares] == [[f"shade-{at}"] for at in (0, 4, 8, 2, 6, 10)]
    assert words(squares[-1]) == "0.50 highest [0.40, 0.60]"
    assert squares[1].a["href"] == "#questions?cell=3"
    assert squares[1].a["aria-label"] == "direct · gold, 0.20: its questions"


def test_means_lead_to_what_is_wrong_and_counts_to_what_became_right_or_wrong(tmp_path):
    made = page(tmp_path, SUMMARY, ("unified",))
    assert made.select("table.grid td")[1].a["href"] == "#questions?cell=3&wrong=3"
    assert "right there is unified score of 1" in words(made.select_one("#comparisons .hint"))
    assert "unified score of 1, not the headline's exact match" in words(made.select_one("#causes figcaption"))
    up, down = made.select('#comparisons [data-label="up, down"]')[1].select("a")
    assert (up["href"], words(up)) == ("#questions?right=2&wrong=1", "9")
    assert down["href"] == "#questions?right=1&wrong=2"
    assert down["aria-label"] == f"4 down: right in direct · retrieved, wrong in {HOSTILE} · retrieved"


def test_a_combination_that_was_not_run_is_named(tmp_path):
    made = page(tmp_path, SUMMARY | {"cells": CELLS[:-1]})
    assert words(made.select("table.grid td")[-1]) == "no cell"


def test_a_bar_has_a_part_for_each_cause_that_leads_to_its_questions(report):
    bars = report.select("#causes svg.stack")
    assert len(bars) == 6
    first, second = bars[0].select("a")
    assert [first["href"], second["href"]] == [
        "#questions?cell=1&cause=right", "#questions?cell=1&cause=retrieval_miss"]
    assert second["aria-label"] == "direct · retrieved: retrieval miss, 30 of 50"
    assert (second.rect["x"], second.rect["width"], words(second.select_one("text"))) == ("40.0%", "60.0%", "60 %")


def test_causes_have_a_legend_a_table_and_definitions(report):
    assert [words(item) for item in report.select("#causes .keys li")] == ["right", "retrieval miss"]
    assert report.select_one("#k-retrieval_miss rect")["class"] == ["k-orange"]
    row = report.select("#causes table tbody tr")[0]
    assert words(row) == "1 direct · retrieved 50 0.40 [0.28, 0.54] 0.60 [0.46, 0.72]"
    assert [words(item) for item in report.select("#causes .defined div")] == [
        "right It is right.", "retrieval miss Not in view.", f"format {HOSTILE}"]


def test_what_is_kept_of_the_gold_alone_has_counts_and_the_share_an_interval(report):
    kept = report.select("#causes table")[1]
    assert words(kept.select_one("tbody tr")) == "1 direct · retrieved 50 0.62 [0.45, 0.77] n 32 20 12 8 10 0.500"
    assert [words(code) for code in report.select("#causes .hint code")] == ["ragbed diagnose"]


def test_refusals_are_drawn_with_both_intervals(report):
    spot = report.select("#refusals a.spot")[0]
    assert spot["aria-label"] == "direct · retrieved; answers 80 % of 50; wrong in 25 % of 40 answered"
    assert len(report.select_one("#refusals .behind").select("line.whisker")) == 2
    assert words(report.select("#refusals tbody tr")[0]) == "1 direct · retrieved 80 [67, 89] n 50 25 [14, 40] n 40"
