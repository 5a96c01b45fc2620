"""`ragbed compare`: cells of a run, and two runs, question by question, with gates."""
import json
import re
import shutil
from collections import Counter
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from each_case import each

from ragbed.documents import RunError, SettingsError
from ragbed.experiments.formatting import ON_INTERVALS
from ragbed.experiments.guests.run_comparison.compare import compare_runs
from ragbed.experiments.guests.run_comparison.compared_run import read_compared_run
from ragbed.experiments.guests.run_comparison.gates import Gate

SAME_INPUTS = "The compared cells have the same model, strategy, prompts, searches, questions and settings."


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return tmp_path_factory.mktemp("made") / "runs"


@pytest.fixture
def two(serve, town, ragbed, made):
    """A run of two strategies, and one whose model also knows the answer that the first gets wrong."""
    runs = town.run.parent
    if made.exists():
        shutil.copytree(made, runs)
        return town.run, runs / "better"
    server = serve(town.reply)
    assert ragbed("run", town.config(server.url, reasoning=["direct", "least_to_most"]))[0] == 0

    def better(body):
        last = body["messages"][-1]["content"]
        return "<Answer>333 people [1]</Answer>" if "in town 3?" in last else town.reply(body)

    other = serve(better)
    assert ragbed("run", town.config(other.url, file="better", name="better", reasoning="direct"))[0] == 0
    shutil.copytree(runs, made)
    return town.run, runs / "better"


def test_the_means_are_those_of_the_run(two, ragbed, town):
    found = ragbed.json("compare", two[0], "--metric", "unified", "--metric", "em", "--metric", "citation_f1")
    cells = {cell["id"]: cell["metrics"] for cell in json.loads((town.run / "summary.json").read_text())["cells"]}
    assert [row["metric"] for row in found["comparisons"]] == ["unified", "em", "citation_f1"]
    for row in found["comparisons"]:
        assert row["before"] == cells[row["first"]][row["metric"]]["mean"]
        assert row["after"] == cells[row["second"]][row["metric"]]["mean"]
        assert row["unpaired"] == 0
    assert [row["first_name"] for row in found["comparisons"]] == ["direct"] * 3
    assert [row["test"] for row in found["comparisons"]] == ["permutation", "McNemar", "permutation"]


def test_a_run_is_compared_with_the_like_cells_of_another(two, ragbed):
    row, = ragbed.json("compare", *two, "--metric", "correct", "--flips")["comparisons"]
    assert (row["first_name"], row["n"], row["gained"], row["lost"]) == ("direct", 5, 1, 0)
    assert row["flips"] == [{"question": "non_refusal-3", "before": 0.0, "after": 1.0, "before_outcome": "answered",
                             "after_outcome": "answered"}]
    assert (row["p"], row["odds"]) == (1.0, 3.0)
    assert row["verdict"] == "not significant"


@pytest.fixture
def repeated(serve, town, ragbed, made):
    """A run of two strategies under two conditions, asked twice; chain of thought is right at its second asking."""
    runs, kept = town.run.parent, made.parent / "repeated"
    if kept.exists():
        shutil.copytree(kept, runs)
        return town.run
    asked = Counter()

    def reply(body):
        last = body["messages"][-1]["content"]
        asked[json.dumps(body["messages"])] += 1
        thinks = "step" in json.dumps(body["messages"])
        right = f"<Answer>{int(re.findall(r'in town (.)', last)[-1]) * 111} people [1]</Answer>"
        return right if thinks and asked[json.dumps(body["messages"])] == 2 else town.reply(body)

    path = town.config(serve(reply).url, reasoning=["direct", "chain_of_thought"], conditions=["provided", "gold"],
                       repeats=2, concurrency=1)
    assert ragbed("run", path)[0] == 0
    shutil.copytree(runs, kept)
    return town.run


def test_the_cells_of_a_run_are_compared_as_its_summary_compares_them(repeated, ragbed):
    found = ragbed.json("compare", repeated)
    stored = json.loads((repeated / "summary.json").read_text())["comparisons"]
    beside = {"metric", "first_name", "second_name", "verdict", "differs"}
    assert [{name: value for name, value in row.items() if name not in beside} for row in found["comparisons"]] == (
        stored["pairs"])
    assert [(row["factor"], row["first_name"], row["second_name"]) for row in found["comparisons"]] == [
        ("reasoning", "direct · provided", "chain_of_thought · provided"),
        ("reasoning", "direct · gold", "chain_of_thought · gold"),
        ("condition", "direct · provided", "direct · gold"),
        ("condition", "chain_of_thought · provided", "chain_of_thought · gold")]
    assert found["comparisons"][0]["difference"] > 0
    assert stored["notes"][0] in found["notes"]
    status, out, _ = ragbed("compare", repeated)
    assert status == 0
    assert "town by condition: unified score, corrected scoring, judge lexical" in out
    assert "\ndirect → chain_of_thought, gold " in out
    assert "\nprovided → gold, direct " in out


def test_a_gate_in_a_run_is_of_the_means_over_repeats_against_the_first_cell(repeated, ragbed):
    found = ragbed.json("compare", repeated, "--baseline", "direct · provided")
    rows = {row["second_name"]: row["difference"] for row in found["comparisons"]}
    assert list(rows) == ["chain_of_thought · provided", "direct · gold", "chain_of_thought · gold"]
    by = rows["chain_of_thought · provided"]
    only = "--cell", "provided · chain_of_thought"
    assert ragbed("compare", repeated, *only, "--fail-if", f"unified > baseline + {by - 0.01:.3f}")[0] == 1
    assert ragbed("compare", repeated, *only, "--fail-if", f"unified > baseline + {by + 0.01:.3f}")[0] == 0
    found = ragbed.json("compare", repeated, "--fail-if", "unified < baseline - 1")
    assert {row["second_name"]: row["difference"] for row in found["comparisons"]} == rows


def test_one_of_several_repeats_is_named_by_its_id_or_the_repeat(repeated, ragbed):
    rows = json.loads((repeated / "summary.json").read_text())["cells"]
    means = {row["id"]: row["metrics"]["unified"]["mean"] for row in rows}
    provided = ("chain_of_thought", "provided")
    first, again = [row["id"] for row in rows if (row["reasoning"], row["condition"]) == provided]
    alone = "chain_of_thought · provided · repeat 0"
    one, = ragbed.json("compare", repeated, "--cell", again, "--baseline", alone)["comparisons"]
    assert (one["second_name"], one["factor"]) == ("chain_of_thought · provided · repeat 1", None)
    assert (one["before"], one["after"]) == (means[first], means[again])
    assert one["after"] > one["before"]
    found = ragbed.json("compare", repeated, "--cell", "repeat 1")["comparisons"]
    assert [row["first_name"] for row in found] == ["direct · provided · repeat 1"] * 3
    both = ragbed.json("compare", repeated, repeated, "--cell", "repeat 1 · gold")["comparisons"]
    assert [(row["first_name"], row["second_name"]) for row in both] == [
        (name, name) for name in ("direct · gold · repeat 1", "chain_of_thought · gold · repeat 1")]


def test_a_cell_has_the_same_name_in_show_attribute_and_compare(repeated, ragbed):
    for name, count in (("provided · direct", 1), ("grounded", 4)):
        shown = json.loads(ragbed("show", repeated, "#2", "--cell", name, "--json")[1])["cells"]
        causes = json.loads(ragbed("diagnose", repeated, "--cell", name, "--json")[1])["cells"]
        assert len(shown) == len(causes) == 2 * count
        assert len(ragbed.json("compare", repeated, repeated, "--cell", name)["comparisons"]) == count
    for command in ("compare", "show", "diagnose"):
        rest = ["#2"] if command == "show" else []
        ragbed.refuses(command, repeated, *rest, "--cell", "cot", says=["no cell 'cot'; choose one of: direct"])


def test_a_run_is_equal_to_itself(two, ragbed):
    found = ragbed.json("compare", two[0], two[0], "--metric", "unified", "--metric", "em")
    assert [(row["first_name"], row["second_name"]) for row in found["comparisons"]] == [
        ("direct", "direct"), ("least_to_most", "least_to_most")] * 2
    assert {(row["difference"], row["unpaired"], row["p_holm"]) for row in found["comparisons"]} == {(0.0, 0, 1.0)}
    assert {row["verdict"] for row in found["comparisons"]} == {"identical"}
    assert found["notes"] == ["Both runs hold the same results.", SAME_INPUTS, ON_INTERVALS,
                              "p (Holm) is corrected for the 4 comparisons shown."]


def test_the_table_says_it_in_words(two, ragbed):
    status, out, _ = ragbed("compare", *two, "--flips")
    assert status == 0
    assert "better against town: unified score, corrected scoring, judge lexical" in out
    assert "difference [95 %]" in out
    assert re.search(r"^#4 +How many people live in town 3\? ", out, re.MULTILINE), out
    assert "The runs differ in model (" in out


def test_a_gate_that_holds_ends_with_status_1(two, ragbed):
    worse = two[1], two[0], "--cell", "direct"
    status, _, err = ragbed("compare", *worse, "--fail-if", "correct < baseline - 0.1")
    assert status == 1
    assert "fails: correct < baseline - 0.1: direct has 0.2000, its baseline 0.4000; the difference is -0.20 [-0" in err
    assert "p 1.000, p (Holm) 1.000" in err
    assert ragbed("compare", *worse, "--fail-if", "correct.high < baseline - 0.1")[0] == 0
    assert ragbed("compare", *worse, "--fail-if", "correct.low < baseline - 0.1")[0] == 1
    assert ragbed("compare", *worse, "--fail-if", "correct < baseline - 0.2")[0] == 0
    assert ragbed("compare", *worse, "--fail-if", "correct > baseline + 0", "--fail-if", "wrong > baseline")[0] == 1
    found = json.loads(ragbed("compare", *worse, "--fail-if", "correct < baseline", "--json")[1])
    assert [one["condition"] for one in found["failed"]] == ["correct < baseline"]
    assert [row["metric"] for row in found["comparisons"]] == ["unified", "correct"]


@each("text", [
    "", "unified", "unified < baseline -", "unified < 0.5", "unified <= baseline", "unified < baseline * 2",
    "unified < baseline - 1e9", "unified < baseline - 0.1; unified > baseline", "__import__('os') < baseline",
    "unified.mean < baseline", "unified. high < baseline",
    "unified < baseline - -0.1", "unified < baseline - ٣"])
def test_a_gate_of_another_form_is_refused(text):
    with pytest.raises(SettingsError):
        Gate.parse(text)


def test_gates_are_read():
    assert Gate.parse("unified < baseline - 0.02") == Gate("unified < baseline - 0.02", "unified", True, -0.02)
    assert Gate.parse("recall@5.high<baseline") == Gate("recall@5.high<baseline", "recall@5", True, 0.0, "high")
    assert Gate.parse("recall@5>baseline+1") == Gate("recall@5>baseline+1", "recall@5", False, 1.0)
    assert Gate.parse(" em > baseline ") == Gate("em > baseline", "em", False, 0.0)


def test_what_cannot_be_compared_is_said_in_one_line(two, ragbed, tmp_path, town):
    ragbed.refuses("compare", tmp_path / "none", says=["holds no run"])
    ragbed.refuses("compare", two[1], says=["it has only one cell; give a second run"])
    ragbed.refuses("compare", two[0], "--metric", "accuracy", says=["accuracy is not a metric of both runs", "unified"])
    ragbed.refuses("compare", two[0], "--metric", "acuracy", says=["unknown metric"])
    ragbed.refuses("compare", *two, "--baseline", "grounded", says=["matches several cells"])
    ragbed.refuses("compare", *two, "--fail-if", "unified < 1", says=["expected METRIC < baseline"])
    (two[1] / "summary.json").write_text('{"name": "better", "cells": []}')
    ragbed.refuses("compare", *two, says=["better/summary.json: made by another version of ragbed; run it again"])
    (two[1] / "summary.json").unlink()
    status, out, _ = ragbed("compare", *two)
    assert status == 0
    assert "the figures cover these. The run was stopped before its end." in " ".join(out.split())


def test_runs_of_other_questions_or_scoring_are_refused(two, serve, town, ragbed):
    server = serve(town.reply)
    own = town.own({"id": "non_refusal-1", "question": "Who is the mayor?", "answer": "Ada"})
    assert ragbed("run", town.config(server.url, name="own", benchmark=own, conditions="closed-book"))[0] == 0
    ragbed.refuses("compare", town.run, town.run.parent / "own", "--baseline", "direct", says=["share no question"])
    assert ragbed("run", town.config(server.url, name="published", scoring="as-published"))[0] == 0
    ragbed.refuses("compare", town.run, town.run.parent / "published", says=["corrected scoring", "as-published"])


def test_the_same_id_is_not_the_same_question(two, serve, town, ragbed):
    rows = [town.row(number, **({"query": "What else?"} if number == 4 else {})) for number in range(5)]
    town.write(rows)
    assert ragbed("run", town.config(serve(town.reply).url, name="fewer"))[0] == 0
    found = ragbed.json("compare", town.run, town.run.parent / "fewer")
    assert "4 questions are in both runs; 1 that only one run has are left out, and 1 with the same id but " \
           "different content." in found["notes"]
    assert [row["n"] for row in found["comparisons"]] == [4]


def test_a_gate_does_not_pass_over_what_one_run_has_alone(two, serve, town, ragbed, tmp_path):
    town.write([town.row(number) for number in range(4)])
    config = town.config(serve(town.reply).url, name="few", reasoning=["direct", "chain_of_thought"])
    assert ragbed("run", config)[0] == 0
    few, gate, path = town.run.parent / "few", ("--fail-if", "unified < baseline - 1"), tmp_path / "gates.xml"
    ragbed.refuses("compare", two[0], few, *gate, "--junit", path, says=[
        "--fail-if cannot be checked", "4 questions are in both runs; 2 that only one run has are left out; use",
        "Cells without a counterpart in the other run: 2; name the cells with --cell"])
    suite, = ElementTree.parse(path).getroot()
    assert [(test.get("name"), [child.tag for child in test]) for test in suite] == [
        ("direct", []), ("questions", ["error"]), ("cells", ["error"])]
    ragbed.refuses("compare", two[0], few, *gate, "--shared", says=["name the cells with --cell"])
    ragbed.refuses("compare", two[0], few, *gate, "--cell", "direct", says=["use --shared to check"])
    named = "--shared", "--cell", "direct"
    assert ragbed("compare", two[0], few, *gate, *named)[0] == 0
    ragbed.refuses("compare", two[0], few, *gate, *named, "--cell", "chain_of_thought", says=["run: 1; name the cells"])
    assert ragbed("compare", two[0], few)[0] == 0


def test_a_gate_on_a_bound_is_of_the_interval_of_the_difference(two):
    finding, = compare_runs(read_compared_run(two[0]), read_compared_run(two[1])).found
    made = replace(finding.comparison, before=0.5, after=0.4, difference=-0.1, low=-0.18, high=-0.02)
    assert [Gate.parse(f"unified.{said}").holds(made) for said in (
        "high < baseline - 0.01", "high < baseline - 0.02", "low < baseline - 0.17", "low > baseline - 0.2",
        "low > baseline")] == [True, False, True, True, False]
    with pytest.raises(RunError, match="has no interval"):
        Gate.parse("unified.high < baseline").holds(replace(made, low=None, high=None))


def test_gates_are_written_as_tests_for_continuous_integration(two, ragbed, tmp_path):
    path = tmp_path / "gates.xml"
    gates = "--fail-if", "correct < baseline - 0.1", "--fail-if", "correct < baseline - 0.9"
    status, _, _ = ragbed("compare", two[1], two[0], "--cell", "direct", *gates, "--junit", path)
    assert status == 1
    suites = list(ElementTree.parse(path).getroot())
    assert [(suite.get("name"), suite.get("tests"), suite.get("failures")) for suite in suites] == [
        ("correct < baseline - 0.1", "1", "1"), ("correct < baseline - 0.9", "1", "0")]
    failure, = suites[0].iter("failure")
    assert failure.get("message").startswith("correct < baseline - 0.1: direct has ")
    assert ragbed("compare", two[1], two[0], "--cell", "direct", *gates, "--junit", path)[0] == 1  # replaces its own
    ragbed.refuses("compare", *two, "--junit", path, says=["--junit writes the conditions of --fail-if"])
    path.write_text("<testsuites/>")
    ragbed.refuses("compare", *two, *gates, "--junit", path, says=["gates.xml exists", "name another file"])
    ragbed.refuses("compare", *two, *gates, "--junit", "/dev/null", says=["a device or a pipe"])


def test_no_two_comparisons_have_one_name(serve, town, ragbed):
    path = town.config(serve(town.reply).url, conditions=["provided", "closed-book"], perturbations=["none", "shuffle"])
    assert ragbed("run", path)[0] == 0
    status, out, _ = ragbed("compare", town.run)
    assert status == 0
    for named in ("provided → closed-book", "provided · shuffle → closed-book", "none → shuffle, provided"):
        assert f"\n{named}  " in out


def test_cells_that_differ_in_several_factors_are_compared_where_one_is_named(serve, town, ragbed):
    path = town.config(serve(town.reply).url, include=[{"reasoning": "least_to_most", "conditions": "closed-book"}])
    assert ragbed("run", path)[0] == 0
    ragbed.refuses("compare", town.run, says=[
        "no two cells differ in exactly one factor", "choose a --baseline: direct"])
    row, = json.loads(ragbed("compare", town.run, "--baseline", "direct", "--json")[1])["comparisons"]
    assert (row["factor"], row["second_name"]) == (None, "least_to_most · closed-book")
