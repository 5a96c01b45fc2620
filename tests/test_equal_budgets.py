"""`ragbed budgets`: what every strategy reaches where all have the same budget for each question."""
import json

import pytest

from ragbed.strategies import REFUSAL


@pytest.fixture
def run(ragbed, serve, town):
    """Direct is right on the questions 1 to 3 for 100 tokens, chain of thought on all five for 300, and the first
    question is refused by both."""
    def reply(body):
        last = body["messages"][-1]["content"]
        number = int(last.partition("in town ")[2].partition("?")[0])
        thinks = "step by step" in last
        text = f"{number * 111} people [1]" if thinks or number < 4 else "nobody [1]"
        text = REFUSAL if number == 0 else text
        tokens = 300 if thinks else 100
        return {"text": f"<Answer>{text}</Answer>",
                "usage": {"prompt_tokens": tokens - 10, "completion_tokens": 10, "total_tokens": tokens}}

    path = town.config(serve(reply).url, reasoning=["direct", "chain_of_thought"], conditions="given")
    assert ragbed("run", path)[0] == 0
    return town.run


def test_an_answer_that_took_more_than_the_budget_counts_as_ended_by_it(ragbed, run):
    made = ragbed.json("budgets", run, "--at", "99,100,299,300", "--metric", "correct")
    assert [(row["label"], row["used"]) for row in made["rows"]] == [("direct", 100), ("chain_of_thought", 300)]
    shares = {row["label"]: [point["share"] for point in row["at"]] for row in made["rows"]}
    assert shares == {"direct": [0, 1, 1, 1], "chain_of_thought": [0, 0, 0, 1]}
    means = {row["label"]: [point["mean"] for point in row["at"]] for row in made["rows"]}
    assert means == {"direct": [0, 0.6, 0.6, 0.6], "chain_of_thought": [0, 0, 0, 1]}
    assert all(point["n"] == 5 for row in made["rows"] for point in row["at"])


def test_by_default_the_budgets_are_those_that_shares_of_the_records_keep(ragbed, run):
    assert ragbed.json("budgets", run)["budgets"] == [100, 300]
    assert ragbed.json("budgets", run, "--unit", "calls")["budgets"] == [1]
    assert ragbed.json("budgets", run, "--unit", "searches")["budgets"] == [1]


def test_cells_are_tested_at_every_budget_and_p_is_corrected_over_all(ragbed, run):
    tests = ragbed.json("budgets", run, "--at", "100,300", "--metric", "correct")["tests"]
    assert [(one["budget"], one["first"], one["second"], one["n"]) for one in tests] == [
        (100, "direct", "chain_of_thought", 5), (300, "direct", "chain_of_thought", 5)]
    assert [round(one["difference"], 6) for one in tests] == [-0.6, 0.4]
    # Exact McNemar: three of three lost, 2 / 2^3; two of two gained, 2 / 2^2. Holm: 2 * 0.25, then at least that.
    assert [(one["p"], one["p_holm"]) for one in tests] == [(0.25, 0.5), (0.5, 0.5)]


def test_the_table_names_what_is_really_different_or_says_that_nothing_is(ragbed, run):
    status, out, _ = ragbed("budgets", run)
    assert status == 0
    assert "tokens used" in out
    assert "At no budget are two cells really different." in out


def judged_or_answered(body):
    """Of 100 tokens: an answer of chain of thought, and of `sufficient` its judgement."""
    answers = "step by step" in body["messages"][-1]["content"]
    return {"text": "<Answer>111 people [1]</Answer>" if answers else "Sufficiency: 9",
            "usage": {"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100}}


def test_limits_end_exactly_what_the_same_budget_ends(ragbed, serve, town):
    server = serve(judged_or_answered)
    asked = {"reasoning": ["chain_of_thought", "sufficient"], "conditions": "given"}
    free = town.config(server.url, name="free", **asked)
    assert ragbed("run", free)[0] == 0
    for tokens in (99, 100, 200):
        path = town.config(server.url, name=f"of{tokens}", limits={"tokens": tokens}, **asked)
        assert ragbed("run", path)[0] == int(tokens < 100)  # 1 where the run has no answer at all
        cells = json.loads((town.run.parent / f"of{tokens}" / "summary.json").read_text())["cells"]
        shares = [1 - cell["outcomes"].get("budget", 0) / cell["n"] for cell in cells]
        rows = ragbed.json("budgets", town.run.parent / "free", "--at", str(tokens))["rows"]
        assert shares == [row["at"][0]["share"] for row in rows] == [float(tokens >= 100), float(tokens >= 200)]


def test_seconds_of_records_that_a_journal_answered_are_told_of(ragbed, town, run):
    note = "A journal answered calls of 12 of 12 records: their seconds are not what a model would take"
    assert not any(one.startswith("A journal") for one in ragbed.json("budgets", run, "--unit", "seconds")["notes"])
    assert ragbed("run", town.folder / "town.yaml", "--journal", "replay")[0] == 0
    assert any(one.startswith(note) for one in ragbed.json("budgets", run, "--unit", "seconds")["notes"])
    assert not any(one.startswith("A journal") for one in ragbed.json("budgets", run)["notes"])


def test_options_that_do_not_fit_are_one_line(ragbed, run):
    ragbed.refuses("budgets", run, "--unit", "joules", says=["tokens, calls, searches, seconds"])
    for text in ("0", "-5", "many", "1,,2", "inf", "nan"):
        ragbed.refuses("budgets", run, "--at", text, says=["numbers above 0"])
    ragbed.refuses("budgets", run, "--metric", "beauty", says=["beauty"])
    ragbed.refuses("budgets", run, "--metric", "support_f1", says=["support_f1 is no metric of the cells"])


def test_a_record_that_was_cut_short_is_within_no_budget_and_said_to_be(ragbed, serve, town):
    server = serve(lambda body: {"status": 400, "error": {"message": "no"}}
                   if "in town 5" in body["messages"][-1]["content"] else judged_or_answered(body))
    path = town.config(server.url, reasoning=["chain_of_thought", "sufficient"], conditions="given",
                       limits={"tokens": 150})
    assert ragbed("run", path)[0] == 0
    made = ragbed.json("budgets", town.run, "--at", "100,100000")
    assert [[point["share"] for point in row["at"]] for row in made["rows"]] == [[5 / 6, 5 / 6], [0, 0]]
    assert made["notes"][0].startswith("7 of 12 records were ended by a limit of the run, a timeout or an error")
    assert ragbed.json("budgets", town.run)["budgets"] == [100]
