"""What the comparisons of a run's cells are called, where their conditions have different factors."""
import json


def test_no_two_comparisons_have_one_name(serve, town, ragbed):
    path = town.config(serve(town.reply).url, conditions=["given", "closed-book"], perturbations=["none", "shuffle"])
    assert ragbed("run", path)[0] == 0
    status, out, _ = ragbed("compare", town.run)
    assert status == 0
    for named in ("given → closed-book", "given · shuffle → closed-book", "none → shuffle, given"):
        assert f"\n{named}  " in out


def test_cells_that_differ_in_several_factors_are_compared_where_one_is_named(serve, town, ragbed):
    path = town.config(serve(town.reply).url, include=[{"reasoning": "least_to_most", "conditions": "closed-book"}])
    assert ragbed("run", path)[0] == 0
    ragbed.refuses("compare", town.run, says=["no two cells differ in one factor alone", "--baseline, out of: direct"])
    row, = json.loads(ragbed("compare", town.run, "--baseline", "direct", "--json")[1])["comparisons"]
    assert (row["factor"], row["second_name"]) == (None, "least_to_most · closed-book")
