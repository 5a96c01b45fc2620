"""`ragbed gate`: what it asks, what it says, and when it fails."""
import json

import pytest
import yaml
from gated import Branches, digit, reply_with

WORSE = reply_with(lambda text, number: digit(number) < (7 if "Think" in text else 2))


@pytest.fixture
def branches(tmp_path, ragbed, serve):
    made = Branches(tmp_path, ragbed, serve(WORSE))
    made.run_main()
    return made


@pytest.mark.slow
def test_a_branch_without_changes_makes_no_call_and_is_unchanged(branches):
    status, out, _ = branches.gate("--json")
    found = json.loads(out)
    assert (status, found["verdict"], found["spent"]) == (0, "unchanged", {"calls": 0, "tokens": 0, "price": 0.0})
    assert found["said"] == ["Unchanged: all 96 answers score the same."]
    assert len(branches.server.requests) == 96
    assert branches.gate("--fail", "not_equal")[0] == 0
    assert "**Unchanged: all 96 answers score the same.**" in branches.markdown


def test_a_loss_is_found_early_and_fails(branches):
    status, out, _ = branches.gate(reasoning="chain_of_thought")
    assert status == 1
    assert "Worse: right answers and refusals went from" in " ".join(out.split())
    assert len(branches.server.requests) == 96 + 16  # the second of the looks, which come after 8 questions each
    text = branches.markdown
    assert text.startswith("<!-- ragbed-gate -->\n### ragbed: worse\n")
    assert "| `chain_of_thought` (main: `direct`) | 16 of 96 |" in text
    assert "1 → 0, now: wrong closed-book" in text
    assert "16 new calls" in text
    assert branches.gate("--fail", "never", reasoning="chain_of_thought")[0] == 0
    assert len(branches.server.requests) == 96 + 16  # the calls of the first gate are kept


@pytest.mark.slow
def test_a_gain_passes_and_fails_only_a_policy_of_no_change(tmp_path, ragbed, serve):
    better = reply_with(lambda text, number: digit(number) < (1 if "Think" in text else 7))
    made = Branches(tmp_path, ragbed, serve(better))
    made.run_main()
    status, out, _ = made.gate("--json", reasoning="chain_of_thought")
    assert (status, json.loads(out)["verdict"]) == (0, "better")
    policy = tmp_path / "policy.yaml"
    policy.write_text("fail: not_equal\n")
    assert made.gate("--policy", policy, reasoning="chain_of_thought")[0] == 1
    assert made.gate("--policy", policy, "--fail", "worse", reasoning="chain_of_thought")[0] == 0


def test_few_questions_cannot_tell_and_the_text_says_how_many_could(tmp_path, ragbed, serve):
    made = Branches(tmp_path, ragbed, serve(reply_with(lambda text, number: "Think" in text and digit(number) < 1)),
                    questions=24)
    made.run_main()
    status, out, _ = made.gate("--no-race", "--json", reasoning="chain_of_thought")
    found = json.loads(out)
    cell, = found["cells"]
    lost = round(-24 * cell["difference"])
    # 2 of 24 lost; with 1 / 26 gains and 3 / 26 losses (Bonett and Price), the squared error is
    # (4 / 26 - (2 / 26)^2) / 26 = 0.00569; 24 x 0.00569 x ((1.645 + 0.842) / (2 / 24))^2 = 121.6
    assert (status, found["verdict"], lost, cell["needed"]) == (0, "cannot_tell", 2, 130)
    assert "These 24 questions cannot tell; about 130 could" in made.markdown
    assert made.gate("--no-race", "--fail", "cannot_tell", reasoning="chain_of_thought")[0] == 1


def test_very_few_questions_need_more_than_themselves_and_have_possible_intervals(tmp_path, ragbed, serve):
    made = Branches(tmp_path, ragbed, serve(reply_with(lambda text, number: "Think" in text)), questions=4)
    made.run_main()
    cell, = json.loads(made.gate("--no-race", "--json", reasoning="chain_of_thought")[1])["cells"]
    # 4 of 4 lost, p 0.0625; the interval begins at 1 / 6 - 5 / 6 - 1.645 x 0.304 = -1.17, and 2.3 questions would tell
    assert (cell["state"], cell["difference"], cell["low"], cell["needed"]) == ("cannot_tell", -1.0, -1.0, 5)


@pytest.mark.slow
def test_a_change_without_effect_is_equal_if_there_are_enough_questions(tmp_path, ragbed, serve):
    made = Branches(tmp_path, ragbed, serve(reply_with(lambda text, number: "Think" in text and number == 1003)))
    made.run_main()
    status, out, _ = made.gate("--json", "--margin", "0.06", reasoning="chain_of_thought")
    found = json.loads(out)
    assert (status, found["verdict"], found["cells"][0]["n"]) == (0, "equal", 96)
    assert found["said"][0].startswith("No difference larger than 0.06: right answers and refusals -0.01 [")
    assert made.gate("--fail", "not_equal", "--margin", "0.06", reasoning="chain_of_thought")[0] == 0


@pytest.mark.slow
def test_a_verdict_after_few_questions_shows_its_own_interval_and_the_p_of_the_test(tmp_path, ragbed, serve):
    made = Branches(tmp_path, ragbed, serve(reply_with(lambda text, number: "Think" in text and digit(number) < 2)))
    made.run_main()
    found = json.loads(made.gate("--json", reasoning="chain_of_thought")[1])
    cell, = found["cells"]
    # 7 of 40 lost and none gained: the test rejects, while the interval that holds at any time includes 0
    assert (cell["state"], cell["n"], cell["difference"]) == ("worse", 40, pytest.approx(-7 / 40))
    assert cell["low"] < 0 < cell["high"]
    assert found["said"] == ["Worse: right answers and refusals went from 1.00 to 0.82, -0.18 [-0.35, +0.02], "
                             "one-sided p 0.017 after 40 of 96 questions."]


def test_several_cells_are_named_before_their_verdicts(tmp_path, ragbed, serve):
    made = Branches(tmp_path, ragbed, serve(reply_with(lambda text, number: False)), questions=8,
                    reasoning=["direct", "chain_of_thought"])
    made.run_main()
    _, out, _ = made.gate(reasoning=["direct", "chain_of_thought"])
    assert "\ndirect – Unchanged: all 8 answers score the same.\n" in out
    assert "\n- `direct` – Unchanged: all 8 answers score the same.\n" in made.markdown


def test_without_calls_it_says_what_was_not_asked(branches):
    status, _, _ = branches.gate("--replay-only", reasoning="chain_of_thought")
    assert (status, len(branches.server.requests)) == (0, 96)
    assert "**Cannot tell: 96 of 96 questions need calls that BASE did not make.**" in branches.markdown
    assert branches.gate("--replay-only", "--fail", "cannot_tell", reasoning="chain_of_thought")[0] == 1
    assert branches.gate("--replay-only", "--fail", "not_equal")[0] == 0


def test_cells_and_questions_of_one_side_only_are_named(branches):
    rows = [*branches.rows[1:], {"id": "new", "question": "Which number is 7?", "answer": "7"}]
    rows[0] = {**rows[0], "answer": "1001.0"}
    branches.write_questions(rows)
    status, _, _ = branches.gate(reasoning=["direct", "chain_of_thought"])
    assert (status, len(branches.server.requests)) == (0, 96)
    assert "Unchanged: all 94 answers" in branches.markdown
    for note in ("- Not compared: 1 question that only this branch has.",
                 "- Not compared: 1 question that only the main branch has.",
                 "- Not compared: 1 question whose text or gold was edited.",
                 "- Not compared: 1 cell that only this branch has: `chain_of_thought`."):
        assert note in branches.markdown


@pytest.mark.slow
def test_a_cassette_is_as_good_a_base_as_a_run(branches, tmp_path):
    cassette = tmp_path / "main.cassette.jsonl.gz"
    assert branches.ragbed("cassette", "export", branches.base, "--out", cassette)[0] == 0
    assert branches.gate(base=cassette)[0] == 0
    assert branches.gate(base=cassette, reasoning="chain_of_thought")[0] == 1
    assert len(branches.server.requests) == 96 + 16
    status, out, _ = branches.ragbed("gate", cassette, branches.base, "--json")
    assert (status, json.loads(out)["verdict"]) == (0, "unchanged")


def test_failures_are_counted_and_a_dead_server_is_not_a_worse_prompt(branches):
    branches.server._script = lambda body: {"status": 400, "error": {"message": "no such parameter"}}
    status, out, _ = branches.gate("--json", reasoning="chain_of_thought")
    found = json.loads(out)
    assert (status, found["verdict"]) == (1, "not_compared")
    assert found["said"][0].startswith("Not compared: no answer of HEAD came: error, http_400")


@pytest.mark.parametrize(("changes", "options", "words"), [
    ({"scoring": "as-published"}, (), "BASE has corrected scoring and HEAD as-published"),
    ({"judge": {"kind": "model", "model": "openai:j"}}, ("--metric", "right"), "is not comparable"),
    ({}, ("--metric", "f2"), "f2"), ({}, ("--cell", "cot"), "no cell 'cot'; choose one of: direct"),
    ({}, ("--margin", "0"), "margin"), ({}, ("--report-url", "javascript:x"), "begins with https://")])
def test_what_cannot_be_compared_is_refused_before_a_call_and_said_in_the_comment(branches, changes, options, words):
    status, _, err = branches.gate(*options, **changes)
    assert (status, len(branches.server.requests)) == (2, 96)
    assert words in err.splitlines()[-1]
    assert branches.markdown.startswith("<!-- ragbed-gate -->\n### ragbed: not compared\n\n`")


def test_a_base_that_has_not_finished_or_was_raced_is_refused(branches):
    (branches.base / "summary.json").rename(branches.folder / "kept.json")
    assert "not finished" in branches.gate()[2]
    (branches.folder / "kept.json").rename(branches.base / "summary.json")
    assert branches.gate("--json", reasoning="chain_of_thought")[0] == 1
    raced, = (branches.folder / "runs").glob("numbers-gate-*")
    status, _, err = branches.gate(base=raced)
    assert status == 2
    assert "how many questions were asked" in err


@pytest.mark.slow
def test_repeats_are_one_cell_and_a_policy_file_with_an_unknown_key_is_refused(tmp_path, ragbed, serve):
    made = Branches(tmp_path, ragbed, serve(WORSE), repeats=2)
    made.run_main()
    status, out, _ = made.gate("--json", reasoning="chain_of_thought")
    cell, = json.loads(out)["cells"]
    assert (status, cell["state"], cell["n"]) == (1, "worse", 96)  # means of repeats are tested from 100 questions on
    policy = tmp_path / "policy.yaml"
    policy.write_text(yaml.safe_dump({"fails": "worse"}))
    status, _, err = made.gate("--policy", policy)
    assert status == 2
    assert "fails: Extra inputs are not permitted; the keys are fail, margin, metric, cells, race" in err


@pytest.mark.slow
def test_a_changed_strategy_among_others_is_compared_with_the_one_it_replaces(tmp_path, ragbed, serve):
    made = Branches(tmp_path, ragbed, serve(WORSE), reasoning=["direct", "chain_of_thought"])
    made.run_main()
    changed = {"kind": "direct", "instruction": "Think of one word."}
    status, out, _ = made.gate("--json", reasoning=[changed, "chain_of_thought"])
    found = [(cell["base"], cell["head"], cell["state"]) for cell in json.loads(out)["cells"]]
    assert status == 1
    assert found == [("direct", "direct(instruction=Think of one word.)", "worse"),
                     ("chain_of_thought", "chain_of_thought", "unchanged")]


def test_questions_without_a_score_do_not_keep_a_branch_from_being_unchanged(tmp_path, ragbed, serve):
    made = Branches(tmp_path, ragbed, serve(WORSE), questions=8)  # closed-book, where a refusal is not scored
    made.write_questions([*made.rows, {"id": "no", "question": "Which number is 5?", "answerable": False}])
    made.run_main()
    assert made.gate("--fail", "not_equal")[0] == 0
    assert "**Unchanged: all 8 answers score the same.**" in made.markdown
