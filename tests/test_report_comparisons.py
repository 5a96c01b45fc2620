"""The report's effects and comparisons: what stands in their tables, and in which words."""
import pytest
from charted import HOSTILE, SUMMARY, page, pair, words


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return page(tmp_path_factory.mktemp("report"), SUMMARY)


def test_effects_have_means_intervals_and_words(report):
    rows = report.select_one("table.effects").select("tbody tr")
    assert [words(row) for row in rows] == [
        "reasoning no effect seen, p 0.200, p (Holm) 0.200", "direct 0.40 [0.30, 0.50] -0.02 [-0.07, +0.03]",
        f"{HOSTILE} 0.45 [0.35, 0.55] +0.02 [-0.03, +0.07]", "condition a real effect, p <0.001, p (Holm) <0.001",
        "gold 0.70 [0.60, 0.80] +0.30 [+0.25, +0.35]"]
    drawn = report.select("table.effects .drawn svg")
    assert ["apart" in one["class"] for one in drawn[:3]] == [False, False, True]
    assert words(report.select_one("#factors summary")) == (
        "Interactions: reasoning × condition not seen (p (Holm) 0.300)")


def test_comparisons_have_the_real_ones_first_in_words(report):
    heads = [words(head) for head in report.select("#comparisons thead th")]
    assert heads == ["what changes", "so", "difference", "p", "before → after", "up, down", "effect size", "n"]
    rows = [words(row) for row in report.select("#comparisons tbody tr")]
    assert rows == [
        f"direct → {HOSTILE} gold, cells 3 → 4 really higher +0.30 [+0.20, +0.40] 0.001 0.50 "
        f"[0.40, 0.60] → 0.80 [0.65, 0.90] 9 up, 4 down odds 2.25 50 2 left out",
        f"direct → {HOSTILE} retrieved, cells 1 → 2 no difference seen it would take 0.20 -0.10 [-0.20, +0.00] "
        f"0.200 0.50 [0.40, 0.60] → 0.40 [0.25, 0.50] 9 up, 4 down odds 2.25 50"]
    assert "(McNemar test)" in words(report.select_one("#comparisons .hint"))
    assert [words(title) for title in report.select("#comparisons h3")] == ["Reasoning: 1 of 2 really different"]


def test_comparisons_are_grouped_by_factor_and_what_is_real_alone_is_said(tmp_path):
    pairs = [pair("direct/retrieved", "direct/gold", 0.3, p=0.01, factor="condition"),
             pair("direct/retrieved", f"{HOSTILE}/retrieved", -0.2, p=0.02, p_holm=0.08)]
    made = page(tmp_path, SUMMARY | {"comparisons": {"metric": "em", "pairs": pairs, "notes": []}})
    assert [words(title) for title in made.select("#comparisons h3")] == [
        "Reasoning: none of 1 really different, 1 on their own", "Condition: 1 of 1 really different"]
    row = made.select("#comparisons tbody tr")[0]
    assert [words(row.select_one(f'[data-label="{name}"]')) for name in ("so", "p")] == [
        "lower on its own not after the correction", "0.020 corrected 0.080"]
    assert "over the same 50 questions" in words(made.select_one("#comparisons .hint"))


@pytest.mark.parametrize(("fields", "said"), [
    ({"gained": 0, "lost": 0, "difference": 0.0, "low": None, "high": None}, "the same score on 50 questions"),
    ({"n": 0, "difference": None, "low": None, "high": None}, "nothing to compare: no question of both cells has it"),
    ({"smallest": None}, "no difference seen too few questions for any")])
def test_comparisons_that_show_nothing_say_why(tmp_path, fields, said):
    one = pair("direct/retrieved", f"{HOSTILE}/retrieved") | fields
    made = page(tmp_path, SUMMARY | {"comparisons": {"metric": "em", "pairs": [one], "notes": []}})
    assert words(made.select_one("#comparisons .said")) == said
