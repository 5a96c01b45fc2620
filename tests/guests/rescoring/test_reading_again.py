"""`ragbed rescore` reads the replies of a finished run anew, and judges what is read differently."""
import hashlib

import pytest

from ragbed.experiments import RunFolder

STORED = "UPDATE records SET result = json_set(result, '$.text', ?, '$.outcome', 'answered') WHERE question = ?"


@pytest.fixture
def finished(town):
    return town.run


def alter(run, statement, *values):
    """As if an earlier ragbed had written it."""
    folder = RunFolder.existing(run)
    folder.database.put(statement, values)
    for cell, question, result in folder.database.read("SELECT cell, question, result FROM records"):
        folder.database.put("UPDATE records SET hash = ? WHERE cell = ? AND question = ?", (
            hashlib.sha256(result.encode()).hexdigest(), cell, question))
    folder.seal((run / "summary.json").read_text())
    folder.close()


def test_replies_are_read_as_they_were_where_reading_has_not_changed(finished, ragbed):
    assert ragbed.json("rescore", finished)["read"] == {"same": 12, "changed": 0, "skipped": 0}
    assert ragbed.json("rescore", finished)["changed"] == []


def test_an_answer_that_an_earlier_reading_had_wrong_is_read_judged_and_scored_anew(finished, ragbed):
    questions = RunFolder.existing(finished).questions()
    right = next(id for id, question in questions.items() if "in town 5" in question.text)
    cells = ragbed.json("rescore", finished)["cells"]
    before = {cell["reasoning"]: cell["metrics"]["correct"]["mean"] for cell in cells}
    alter(finished, STORED, "the reply with all its tags", right)
    alter(finished, "UPDATE records SET result = json_set(result, '$.verdict.grade', 'Wrong') WHERE question = ?",
          right)
    found = ragbed.json("rescore", finished)
    assert found["read"] == {"same": 10, "changed": 2, "skipped": 0}
    assert {cell["reasoning"]: cell["metrics"]["correct"]["mean"] for cell in found["cells"]} == before


def test_a_strategy_that_asks_otherwise_now_leaves_its_answers_as_they_were(finished, ragbed):
    asked = list(RunFolder.existing(finished).questions())[1]
    alter(finished, "UPDATE records SET result = json_set(result, '$.trace[1].messages[0].parts[0]', 'else')"
                    " WHERE question = ?", asked)
    status, out, err = ragbed("rescore", finished)
    assert status == 0
    assert "2 of 12 replies were not read again, because their strategy now sends different requests" in err
    assert "No figure differs" in out


def test_another_judge_is_asked_of_every_answer_and_the_run_stays_as_it_is(finished, serve, ragbed, town):
    judge = serve(lambda body: "Grade: Wrong")
    before = town.hashes(), (finished / "summary.json").read_bytes()
    found = ragbed.json("rescore", finished, "--judge", f"{judge.url}#stern")
    assert found["judge"].endswith("#stern")
    assert {cell["metrics"]["correct"]["mean"] for cell in found["cells"]} == {0.0}
    assert judge.requests
    assert (town.hashes(), (finished / "summary.json").read_bytes()) == before
    asked = len(judge.requests)
    ragbed.json("rescore", finished, "--judge", f"{judge.url}#stern")
    assert len(judge.requests) == asked


def test_where_a_model_judged_an_answer_read_otherwise_is_unjudged_until_it_is_asked(serve, town, ragbed):
    judge = serve(lambda body: "Grade: Correct")
    config, run = town.config(serve(town.reply).url, "judged", judge=f"{judge.url}#kind"), town.run.parent / "judged"
    assert ragbed("run", config)[0] == 0
    asked = list(RunFolder.existing(run).questions())[5]
    alter(run, STORED, "another text", asked)
    status, _, err = ragbed("rescore", run)
    assert status == 0
    assert "1 of 6 replies are parsed differently than in the run" in err
    before, after = (ragbed.json("rescore", run, *options)["cells"][0]["metrics"]["unjudged"]["mean"]
                     for options in ((), ("--judge", f"{judge.url}#kind")))
    assert before > after == 0


def test_a_judge_that_cannot_be_reached_is_said_and_ends_with_status_1(finished, serve, ragbed):
    broken = f"{serve(lambda _: {'status': 400, 'error': {'message': 'no judge here'}}).url}#judge"
    for options in ((), ("--json",)):
        status, _, err = ragbed("rescore", finished, "--judge", broken, *options)
        assert status == 1
        assert f"{broken}: " in err
        assert "answers are unjudged: " in err
        assert "http_400" in err
