"""The report's charts and tables: what they draw, out of which part of the summary, and what stands beside them."""
import pytest
from charted import CELLS, HOSTILE, SUMMARY, cell, page, pair, words

from ragbed.experiments.metrics import estimate_share


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return page(tmp_path_factory.mktemp("report"), SUMMARY)


def test_hostile_names_make_no_element_in_any_chart(report):
    assert report.find_all("img") == []
    assert all(not name.startswith("on") and name != "style" for tag in report.find_all() for name in tag.attrs)


def test_every_link_leads_into_the_page_and_the_sections_are_linked_in_order(report):
    targets = [link["href"] for link in report.select("a[href]")]
    assert all(target.startswith("#questions?") or report.select_one(target) for target in targets)
    assert [words(link) for link in report.select("nav[aria-label=Sections] a")] == [
        "Summary", "Cost and quality", "Factors", "Causes", "Refusals", "More figures", "Comparisons", "Questions"]


def test_a_summary_of_less_has_fewer_sections(tmp_path):
    nothing = dict.fromkeys(("comparisons", "effects", "error_analysis", "tradeoff"))
    made = page(tmp_path, SUMMARY | nothing)
    assert [words(link) for link in made.select("nav[aria-label=Sections] a")] == [
        "Summary", "Cost and quality", "More figures", "Questions"]
    assert made.select("#causes, #refusals, #comparisons") == []


def test_points_have_intervals_words_and_a_row_of_the_table(report):
    spots = report.select("#plot a.spot")
    assert [spot["href"] for spot in spots] == [f"#cell-{number}" for number in range(1, 7)]
    assert spots[2]["aria-label"] == ("direct · gold; exact match 0.20 [0.10, 0.30], 50 questions; "
                                      "200 tokens per question")
    assert [words(line) for line in spots[2].select(".tip text")] == spots[2]["aria-label"].split("; ")
    assert len(report.select("#plot .behind")) == 6


def test_the_front_is_drawn_and_named_in_legend_and_table(report):
    spots = report.select("#plot a.spot")
    assert [bool(spot.select(".on-front")) for spot in spots] == [True, True, False, False, False, False]
    assert len(report.select("#plot line.front")) == 2 * 2
    assert "Faded cells were asked under other conditions" in words(report.select_one("#plot figcaption"))
    assert [item.a["href"] for item in report.select("#plot .points li") if "on the Pareto front" in words(item)] == [
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


def view(report, name):
    return report.select_one(f'[data-view="{name}"]')


def test_counts_lead_to_what_became_right_or_wrong(tmp_path):
    made = page(tmp_path, SUMMARY, ("unified",))
    assert "a correct answer or a right refusal" in words(made.select_one("#causes figcaption"))
    row = view(made, "comparisons:reasoning").select("tbody tr")[1]
    up, down = (row.select_one(f'[data-label="{name}"] a') for name in ("up", "down"))
    assert (up["href"], words(up)) == ("#questions?right=2&wrong=1", "9")
    assert down["href"] == "#questions?right=1&wrong=2"
    assert down["aria-label"] == f"4 down: right in direct · retrieved, wrong in {HOSTILE} · retrieved"


def test_a_bar_has_a_part_for_each_cause_that_leads_to_its_questions(report):
    bars = report.select("#causes svg.stack")
    assert len(bars) == 6
    first, second = bars[0].select("a")
    assert [first["href"], second["href"]] == [
        "#questions?cell=1&cause=right", "#questions?cell=1&cause=retrieval_miss"]
    assert second["aria-label"] == "direct · retrieved: retrieval miss: 30 of 50"
    assert (second.rect["x"], second.rect["width"], words(second.select_one("text"))) == ("40.0%", "60.0%", "60 %")


def test_causes_have_a_legend_a_table_and_definitions(report):
    assert [words(item) for item in report.select("#causes .keys li")] == ["right", "retrieval miss"]
    assert report.select_one("#k-1 rect")["class"] == ["k-orange"]
    assert words(view(report, "causes").select_one("tbody tr")) == (
        "1 direct · retrieved 50 0.40 [0.28, 0.54] 0.60 [0.46, 0.72]")
    assert [words(row) for row in view(report, "causes:definitions").select("tbody tr")] == [
        "right right It is right.", "retrieval miss retrieval_miss Not in view.", f"format format {HOSTILE}"]


def test_what_is_kept_of_the_gold_alone_has_counts_and_the_share_an_interval(report):
    assert words(view(report, "causes:gold").select_one("tbody tr")) == (
        "1 direct · retrieved 50 20 12 8 10 0.62 [0.45, 0.77] n 32 none none 0.500 0.500")
    assert [words(code) for code in report.select("#causes .hint code")] == ["ragbed diagnose"]


def test_refusals_are_drawn_with_both_intervals(report):
    spot = report.select("#refusals a.spot")[0]
    assert spot["aria-label"] == "direct · retrieved; answers 80 % of 50; wrong in 25 % of 40 answered"
    assert len(report.select_one("#refusals .behind").select("line.whisker")) == 2
    assert words(report.select("#refusals tbody tr")[0]) == (
        "1 direct · retrieved 0.80 [0.67, 0.89] n 50 0.25 [0.14, 0.40] n 40")


def test_effects_have_means_intervals_and_tests(report):
    rows = view(report, "effects").select("tbody tr")
    assert [words(row) for row in rows] == [
        "reasoning direct 100 0.40 [0.30, 0.50] -0.02 [-0.07, +0.03] 0.200 0.200",
        f"{HOSTILE} 100 0.45 [0.35, 0.55] +0.02 [-0.03, +0.07]",
        "condition gold 100 0.70 [0.60, 0.80] +0.30 [+0.25, +0.35] <0.001 <0.001"]
    drawn = view(report, "effects").select("svg.span")
    assert ["apart" in one["class"] for one in drawn] == [False, False, True]
    assert words(view(report, "effects:reasoning:condition").summary) == (
        "Interaction reasoning × condition on em: not significant, p (Holm) 0.300")


def test_comparisons_have_the_real_ones_first_in_words(report):
    made = view(report, "comparisons:reasoning")
    assert [words(head) for head in made.select("thead th")] == [
        "what changes", "n", "unpaired", "before", "after", "difference", "up", "down", "effect", "test", "p",
        "p (Holm)", "detectable", "verdict"]
    first, second = made.select("tbody tr")
    assert words(first) == (
        f"direct → {HOSTILE}, gold cells 3 → 4 50 2 0.50 [0.40, 0.60] 0.80 [0.65, 0.90] +0.30 [+0.20, +0.40] 9 4 "
        "odds 2.25 McNemar 0.001 0.001 0.20 significantly higher")
    assert words(second.select("td")[-1]) == "not significant"
    assert (first["class"], second.get("class")) == (["real"], None)
    assert words(made.h3) == "Reasoning: 1 of 2 pairs significant, by exact match"


def test_comparisons_are_grouped_by_factor_and_what_is_real_alone_is_said(tmp_path):
    pairs = [pair("direct/retrieved", "direct/gold", 0.3, p=0.01, factor="condition"),
             pair("direct/retrieved", f"{HOSTILE}/retrieved", -0.2, p=0.02, p_holm=0.08)]
    made = page(tmp_path, SUMMARY | {"comparisons": {"metric": "em", "pairs": pairs, "notes": []}})
    assert [words(title) for title in made.select("#comparisons h3")] == [
        "Reasoning: 0 of 1 pairs significant, 1 more before correction only, by exact match",
        "Condition: 1 of 1 pairs significant, by exact match"]
    row = made.select("#comparisons tbody tr")[0]
    assert [words(row.select_one(f'[data-label="{name}"]')) for name in ("verdict", "p", "p (Holm)")] == [
        "before correction only", "0.020", "0.080"]


def test_a_significant_test_is_never_folded_wherever_its_factor_comes(tmp_path):
    contrasts = [{"first": "a", "second": "b", "difference": 0.1, "low": 0.0, "high": 0.2, "p": p, "p_holm": p}
                 for p in (0.5,) * 12 + (0.001,)]
    factors = [{**one, "contrasts": own} for one, own in zip(
        SUMMARY["effects"]["factors"], (contrasts[:12], contrasts[12:]), strict=True)]
    shown, folded = (made := page(tmp_path, SUMMARY | {"effects": SUMMARY["effects"] | {"factors": factors}})).select(
        "#factors table")[1:3]
    assert [words(row.select("td")[-1]) for row in shown.select("tbody tr")] == ["0.001", "0.500", "0.500"]
    assert {words(row.select("td")[-1]) for row in folded.select("tbody tr")} == {"0.500"}
    assert "10 more, not significant" in [words(one) for one in made.select("#factors summary")]


def test_many_comparisons_are_folded(tmp_path):
    many = [pair("direct/retrieved", f"{HOSTILE}/retrieved", p=0.01 if at < 3 else 0.5) for at in range(40)]
    section = page(tmp_path, SUMMARY | {"comparisons": {"metric": "em", "pairs": many, "notes": []}}).select_one(
        "#comparisons")
    shown, folded = section.select("table")
    assert (len(shown.select("tbody tr")), len(folded.select("tbody tr"))) == (3, 37)
    assert words(section.summary) == "37 more, not significant"


@pytest.mark.parametrize(("fields", "said"), [
    ({"gained": 0, "lost": 0, "difference": 0.0, "low": None, "high": None}, "identical"),
    ({"n": 0, "difference": None, "low": None, "high": None}, "no common questions"),
    ({"smallest": None}, "not significant")])
def test_comparisons_that_show_nothing_say_why(tmp_path, fields, said):
    one = pair("direct/retrieved", f"{HOSTILE}/retrieved") | fields
    made = page(tmp_path, SUMMARY | {"comparisons": {"metric": "em", "pairs": [one], "notes": []}})
    assert words(made.select_one('#comparisons td[data-label="verdict"]')) == said


@pytest.mark.parametrize(("cells", "said"), [
    ([], "The run has no cells."),
    ([CELLS[0] | {"metrics": {"em": {"mean": None, "n": 0}}}], "No exact match could be computed.")])
def test_where_no_cell_has_a_figure_nothing_is_plotted(tmp_path, cells, said):
    made = page(tmp_path, {"columns": ["em"], "cells": cells})
    assert words(made.select_one(".headline")) == said
    assert "Nothing to plot" in words(made.select_one("#plot"))
    assert made.select_one("#plot svg") is None


def test_colours_and_shapes_stand_for_the_two_factors(report):
    for chart in ("#plot", "#refusals"):
        assert [words(line) for line in report.select(f"{chart} p.keys")] == [
            f"reasoning direct {HOSTILE}", "condition retrieved gold closed-book"]
    assert [spot["class"] for spot in report.select("#plot a.spot")] == [["spot", "c1"], ["spot", "c2"]] + [
        ["spot", "c1", "faded"], ["spot", "c2", "faded"]] * 2


def test_the_ideal_of_refusals_is_at_the_share_that_is_answerable(tmp_path):
    shares = {"refused_answerable": {"mean": 0.1, "n": 30}, "refusal_accuracy": {"mean": 0.5, "n": 20}}
    cells = [one | {"metrics": one["metrics"] | shares} for one in CELLS]
    made = page(tmp_path, SUMMARY | {"cells": cells}).select_one("#refusals")
    assert [words(one) for one in made.select(".goal-line")] == ["60 % are answerable"]
    assert "ideal: all answerable questions answered, none wrong" in words(made)
    dropped = [*cells[:-1], cells[-1] | {"metrics": shares | {"refusal_accuracy": {"mean": 0.5, "n": 50}}}]
    made = page(tmp_path, SUMMARY | {"cells": dropped}).select_one("#refusals")
    assert made.select(".goal-line") == []
    assert "the share of answerable questions differs between cells" in words(made)


def test_a_legend_explains_no_shape_without_a_point(tmp_path):
    made = page(tmp_path, SUMMARY | {"tradeoff": SUMMARY["tradeoff"][:2]})
    assert words(made.select("#refusals p.keys")[1]) == "condition retrieved"


def test_a_run_that_refuses_nothing_has_the_shares_alone(tmp_path):
    stored = [{"cell": CELLS[0]["id"], "answered": estimate_share(50, 50), "risk": estimate_share(10, 50)}]
    section = page(tmp_path, SUMMARY | {"tradeoff": stored}).select_one("#refusals")
    assert section.select("svg.area") == []
    assert "No cell refused anything" in words(section)
    assert len(section.select("tbody tr")) == 1


def test_metrics_are_defined_and_shares_of_one_question_are_counts(tmp_path):
    shares = {name: {"mean": mean, "low": 0.0, "high": 1.0, "n": 50}
              for name, mean in (("correct", 0.5), ("partial", 0.2), ("wrong", 0.3))}
    made = page(tmp_path, {"columns": ["correct / partial / wrong"],
                           "cells": [cell("direct", metrics=shares, judge="http://host:8000/v1#gpt-4o")]})
    heads = [words(head) for head in made.select("table.cells thead th")]
    assert heads[:2] == ["Cell", "correct / partially correct / wrong (judge: gpt-4o)"]
    assert words(made.select_one('[data-label^="correct /"]')) == "25 / 10 / 15"
    assert "http://host:8000/v1#gpt-4o" in words(made.select_one(".shared"))
    assert "partially correct partial share graded Partially Correct; over answerable questions" in [
        words(item) for item in made.select("#figures .defined div")]
