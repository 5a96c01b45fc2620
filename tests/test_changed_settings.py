"""Settings that change under a run's name: what is asked again, what is kept, and that the run equals a fresh one."""
import json
import signal
import sqlite3
import subprocess
import sys
import threading

import pytest

from ragbed.experiments.running.replay import Replay


@pytest.fixture
def loop(serve, town, ragbed):
    """Runs the town with settings, under the name `town`, and counts the calls that the server got."""
    server = serve(town.reply)

    def run(*options, **settings):
        before = len(server.requests)
        status, _, err = ragbed("run", town.config(server.url, **settings), *options)
        assert status == 0, err
        return len(server.requests) - before, err

    run.server = server
    return run


def made(folder):
    """What has to be equal: the summary, the hash of every result, the calls, searches and texts in the journal."""
    with sqlite3.connect(folder / "records.sqlite") as database:
        tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")]
        rows = [database.execute(query).fetchall() for query in (
            "SELECT cell, question, place, hash FROM records ORDER BY 1, 2", "SELECT * FROM calls ORDER BY key",
            "SELECT * FROM searches ORDER BY key", "SELECT * FROM texts ORDER BY hash",
            "SELECT * FROM pins WHERE name != 'seal' ORDER BY 1",  # the seal has the hash of the times
            "SELECT * FROM questions ORDER BY 1")]
    database.close()
    return (folder / "summary.json").read_text(), (folder / "config.yaml").read_text(), tables, rows


CHANGES = [  # (settings, changed settings, calls that are asked, words of the line that says what changed)
    ({}, {"reasoning": ["direct", "chain_of_thought"]}, 6, "reasoning + chain_of_thought"),
    ({"reasoning": ["direct", "chain_of_thought"]}, {"reasoning": ["chain_of_thought"]}, 0, "reasoning - direct"),
    ({}, {"conditions": ["provided", "closed-book"]}, 6, "conditions + closed-book"),
    ({}, {"scoring": "as-published"}, 0, 'scoring was "corrected", is "as-published"'),
    ({}, {"limits": {"max_tokens": 9}}, 6, "limits.max_tokens was 1024, is 9"),
    ({}, {"calls": {"prices": {"URL#m": {"prompt": 1, "completion": 2}}}}, 0, "calls.prices."),
    ({"conditions": "retrieved", "retriever": "bm25"}, {"conditions": "retrieved", "retriever": ["bm25", "dense"]}, 0,
     "retriever"),
    ({"repeats": 2}, {}, 0, "repeats was 2, is 1"),
    ({}, {"repeats": 2}, 6, "repeats was 1, is 2")]


@pytest.mark.slow
@pytest.mark.parametrize(("first", "then", "asked", "says"), CHANGES, ids=[says for *_, says in CHANGES])
def test_a_run_whose_settings_changed_asks_only_that_and_equals_a_fresh_run(
        loop, town, tmp_path, first, then, asked, says):
    then = json.loads(json.dumps(then).replace("URL", loop.server.url))
    loop(**first)
    calls, err = loop(**then)
    assert (calls, says in err, "changed since the last run" in err) == (asked, True, True)
    changed = made(town.run)
    loop("--fresh", **then)
    assert made(town.run) == changed
    assert loop(**then)[0] == 0


def test_an_edited_question_is_asked_again_and_the_other_questions_are_not(loop, town):
    loop()
    rows = [town.row(number) for number in range(6)]
    for changed, asked, says in (
            ([*rows[:5], {**rows[5], "query": "How many in town 5?"}], 1, "questions: 1 edited"),
            ([*rows[:5], {**rows[5], "query": "How many in town 5?", "answer": "Five"}], 0, "questions: 1 edited"),
            (rows[:5], 0, "questions: 1 removed"), ([*rows[:5], town.row(6)], 1, "questions: 1 added")):
        town.write(changed)
        calls, err = loop()
        assert (calls, says in err) == (asked, True)
    changed = made(town.run)
    loop("--fresh")
    assert made(town.run) == changed


def test_a_word_in_a_strategys_file_asks_that_strategy_again_and_nothing_else(loop, town, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mine.py"
    file.write_text("from ragbed.strategies import Draft, Generate, Message\n\n\ndef recipe(task):\n"
                    "    reply = yield Generate((Message('user', ('Answer: ' + task.question,)),), 'answer')\n"
                    "    return Draft.from_reply(reply)\n")
    settings = {"reasoning": ["direct", "mine.py:recipe"]}
    assert loop(**settings)[0] == 12
    file.write_text(file.read_text().replace("Answer: ", "Please answer: "))
    calls, err = loop(**settings)
    assert (calls, "another version of mine.py:recipe" in err) == (6, True)
    file.write_text(file.read_text() + "# a comment\n")
    assert loop(**settings)[0] == 0


def test_another_judge_asks_for_judgements_alone(serve, town, ragbed):
    server = serve(lambda body: "Grade: 1" if body["model"] == "judge" else town.reply(body))
    assert ragbed("run", town.config(server.url))[0] == 0
    path = town.config(server.url, judge=f"{server.url}#judge")
    status, _, err = ragbed("run", path)
    assert {body["model"] for body, _ in server.requests[6:]} == {"judge"}
    assert f"calls: {len(server.requests) - 6} sent, 6 kept from the earlier settings" in err
    changed = made(town.run)
    assert ragbed("run", path, "--fresh")[0] == status
    assert made(town.run) == changed


def test_a_server_with_another_address_answers_anew(loop, serve, town, ragbed):
    loop()
    other = serve(lambda body: "<Answer>Other weights [1]</Answer>")
    assert ragbed("run", town.config(other.url))[0] == 0
    assert len(other.requests) == 6
    assert {record["result"]["text"] for record in town.records()} == {"Other weights [1]"}


def test_calls_that_failed_are_asked_again_when_settings_change(serve, town, ragbed):
    failing = [{"status": 400, "error": {"message": "no"}}]
    server = serve(lambda body: failing[0] if failing and "in town 3?" in body["messages"][-1]["content"] else
                   town.reply(body))
    assert ragbed("run", town.config(server.url))[0] == 0
    failing.clear()
    assert ragbed("run", town.config(server.url, scoring="as-published"))[0] == 0
    assert len(server.requests) == 6 + 1
    assert {record["result"]["failure"] for record in town.records()} == {None}


@pytest.mark.slow
@pytest.mark.parametrize("twice", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_killed_run_with_changed_settings_goes_on_and_equals_a_fresh_one(serve, town, ragbed, twice):
    held = threading.Event()
    server = serve(lambda body: {"hold": held, "text": town.reply(body)} if "step by step" in str(body["messages"])
                   and len(server.requests) > 9 and not held.is_set() else town.reply(body))
    assert ragbed("run", town.config(server.url))[0] == 0
    path = town.config(server.url, reasoning=["direct", "chain_of_thought"], concurrency=1)
    child = subprocess.Popen([sys.executable, "-m", "ragbed", "run", str(path)], stderr=subprocess.DEVNULL)
    while len(server.requests) < 10:
        assert child.poll() is None
    child.send_signal(signal.SIGKILL)
    child.wait()
    held.set()
    if twice:  # the settings change again before the run has ended
        path = town.config(server.url, reasoning=["direct", "chain_of_thought"], scoring="as-published")
    asked = len(server.requests)
    status, _, err = ragbed("run", path)
    assert (status, ("changed since" in err)) == (0, twice)
    assert len(server.requests) - asked == 12 - 9
    changed = made(town.run)
    assert ragbed("run", path, "--fresh")[0] == 0
    assert made(town.run) == changed


def test_a_budget_counts_only_calls_that_are_sent(loop, town):
    loop()
    spent = sum(reply["usage"]["prompt_tokens"] + reply["usage"]["completion_tokens"] for reply in (
        step for record in town.records() for step in record["result"]["trace"] if step["kind"] == "generate"))
    calls, _ = loop(reasoning=["direct", "chain_of_thought"], budget={"tokens": int(spent * 1.5)})
    assert calls == 6


def test_a_run_with_changed_settings_has_a_complete_cassette(loop, town, ragbed, tmp_path):
    loop()
    loop(reasoning=["direct", "chain_of_thought"])
    cassette = tmp_path / "town.cassette.jsonl.gz"
    assert ragbed("cassette", "export", town.run, "--out", cassette)[0] == 0
    assert Replay.open(cassette).cassette.counts["calls"] == 12
    status, _, err = ragbed("run", "--replay", cassette, "--out", tmp_path)
    assert (status, "the results equal those recorded" in err) == (0, True)
