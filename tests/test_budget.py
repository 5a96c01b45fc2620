"""Budgets of a run, which stop it in one line, and of a cell, whose other questions end with the outcome `budget`."""
import json
import subprocess
import sys
import threading
import time

import pytest
import yaml

A_CALL = 712  # tokens that the scripted server says each call used
PRICED = {"calls": {"attempts": 2, "seconds": 60}}


def priced(url, **prices):
    """Settings of calls in which the model has a price: a dollar for each call."""
    return {**PRICED, "prices": {f"{url}#m": {"prompt": 1e6 / 700, "completion": 0, **prices}}}


def stopped(ragbed, *args, says=()):
    ragbed.refuses("run", *args, says=["the budget of ", *says])


def test_tokens_stop_a_run_and_a_larger_budget_makes_it_the_run_that_was_never_stopped(serve, town, ragbed):
    server = serve(town.reply)
    path = town.config(server.url, concurrency=1, budget={"tokens": 1500})
    stopped(ragbed, path, says=["1,500 tokens is spent (2,136 tokens); 3 of 6 records are kept",
                                "as in --budget tokens=4272"])
    assert (len(server.requests), len(town.hashes())) == (3, 3)
    assert not (town.run / "summary.json").exists()
    assert "3 of 6 answers" in ragbed("report", town.run)[2]
    stopped(ragbed, path, says=["3 of 6 records are kept"])  # over all sessions: nothing more is asked
    stopped(ragbed, path, "--budget", "tokens=3000", says=["(3,560 tokens); 5 of 6"])
    assert len(server.requests) == 5
    assert yaml.safe_load((town.run / "config.yaml").read_text())["budget"]["tokens"] == 3000
    assert ragbed("run", path, "--budget", "tokens=none")[0] == 0
    assert len(server.requests) == 6
    summary, hashes = (town.run / "summary.json").read_bytes(), town.hashes()
    assert ragbed("run", town.config(server.url), "--fresh")[0] == 0
    assert ((town.run / "summary.json").read_bytes(), town.hashes()) == (summary, hashes)


def test_a_budget_is_passed_by_the_questions_under_way_at_most(serve, town, ragbed):
    town.write([town.row(number) for number in range(40)])
    server = serve(lambda body: {"text": town.reply(body), "delay": 0.02})
    path = town.config(server.url, concurrency=4, reasoning="least_to_most", budget={"tokens": 20 * A_CALL})
    stopped(ragbed, path)
    assert 20 <= len(server.requests) <= 20 + 4 * 5  # a question takes up to five calls
    assert len(town.hashes()) * 5 >= len(server.requests) - 4


def test_dollars_are_counted_by_the_price_of_the_settings(serve, town, ragbed):
    server = serve(town.reply)
    path = town.config(server.url, concurrency=1, calls=priced(server.url), budget={"dollars": 2})
    stopped(ragbed, path, says=["$2.00 is spent ($2.00); 2 of 6 records", "--budget dollars=4"])
    stopped(ragbed, path, "--budget", "dollars=3.5", says=["$3.50 is spent ($4.00)"])
    assert len(server.requests) == 4


def test_a_budget_in_dollars_needs_every_price_before_the_first_call(serve, town, ragbed):
    server = serve(town.reply)
    path = town.config(server.url, budget={"dollars": 2})
    for options in ([], ["--dry-run"]):
        ragbed.refuses("run", path, *options, says=["the price of", f"{server.url}#m", "calls.prices"])
    path = town.config(server.url, calls=priced(server.url), judge="http://127.0.0.1:9/v1#judge",
                       budget={"dollars": 2})
    ragbed.refuses("run", path, says=["the price of http://127.0.0.1:9/v1#judge", "calls.prices"])
    assert (server.requests, town.run.exists()) == ([], False)


def test_the_judge_spends_too(serve, town, ragbed):
    server = serve(lambda body: '{"grade": "Wrong"}' if body["model"] == "judge" else "<Answer>7 [1]</Answer>")
    path = town.config(server.url, concurrency=1, judge=f"{server.url}#judge", budget={"tokens": 3 * A_CALL})
    stopped(ragbed, path)
    models = [body["model"] for body, _ in server.requests]
    assert models.count("judge") >= 1
    assert len(models) <= 3 + 2


@pytest.mark.slow
def test_when_the_seconds_are_over_the_questions_under_way_are_given_up(serve, town, ragbed):
    never, answered = threading.Event(), 4

    def reply(body):
        return {"text": town.reply(body)} | ({"hold": never} if len(server.requests) > answered else {})

    server = serve(reply)
    path = town.config(server.url, concurrency=2, calls={"calls": {"seconds": 600}}, budget={"seconds": 1.5})
    while len(server.requests) < 6:  # on a slow machine a session may end before it comes so far
        stopped(ragbed, path, says=["1.5 seconds is spent", " of 6 records", "rerun the command to continue"])
    assert not (town.run / "summary.json").exists()
    assert len(town.hashes()) <= 4
    answered = 1000
    while ragbed("run", path)[0]:  # each session has its own seconds
        pass
    assert len(town.hashes()) == 6


@pytest.mark.slow
def test_the_building_of_an_index_counts_among_the_seconds(serve, town, ragbed):
    own = town.own({"question": "Where?"}, pages={"oslo.txt": "Oslo"})
    server = serve(town.reply)
    path = town.config(server.url, benchmark=own, conditions="retrieved", budget={"seconds": 0.001})
    stopped(ragbed, path, says=["0.001 seconds is spent", "0 of 1 records"])
    assert server.requests == []
    assert ragbed("run", path, "--budget", "seconds=none")[0] == 0
    for options in (["--retry"], ["--journal", "live"]):
        stopped(ragbed, path, *options, says=["1 of 1 records"])


def test_a_replay_spends_nothing(serve, town, ragbed):
    server = serve(town.reply)
    assert ragbed("run", town.config(server.url))[0] == 0
    before, made = (town.run / "summary.json").read_bytes(), len(server.requests)
    path = town.config(server.url, budget={"tokens": 1, "dollars": 0.01, "seconds": 0.001})
    assert ragbed("run", path, "--journal", "replay")[0] == 0
    assert ((town.run / "summary.json").read_bytes(), len(server.requests)) == (before, made)


def test_a_finished_run_whose_budget_is_spent_stays_finished(serve, town, ragbed):
    server = serve(town.reply)
    assert ragbed("run", town.config(server.url))[0] == 0
    before = (town.run / "summary.json").read_bytes()
    path = town.config(server.url, budget={"tokens": 100})
    for options in ([], ["--json"]):
        assert ragbed("run", path, *options)[0] == 0
    planned = ragbed("run", path, "--dry-run")[2]
    assert "budget" not in planned
    assert "holds this finished run" in planned
    for options in (["--retry"], ["--journal", "live"]):
        stopped(ragbed, path, *options, says=["6 of 6 records are kept"])
    assert ((town.run / "summary.json").read_bytes(), len(server.requests)) == (before, 6)


def test_pace_and_budget_are_no_part_of_what_a_run_is(serve, town, ragbed):
    server = serve(town.reply)
    stopped(ragbed, town.config(server.url, concurrency=1, budget={"tokens": 1500}))
    path = town.config(server.url, concurrency=3, calls={"calls": {"attempts": 4, "seconds": 9, "concurrency": 2}},
                       budget={"seconds": 60})
    assert ragbed("run", path)[0] == 0
    assert len(server.requests) == 6
    stored = yaml.safe_load((town.run / "config.yaml").read_text())
    assert (stored["concurrency"], stored["calls"]["calls"]["attempts"]) == (3, 4)
    assert stored["budget"] == {"dollars": None, "tokens": None, "seconds": 60.0}
    assert ragbed("verify", town.run)[0] == 0
    path = town.config(server.url, calls={"temperature": 1.0, "calls": {"attempts": 4}})
    assert "calls.temperature was 0.0, is 1.0" in ragbed("run", path)[2]
    assert len(server.requests) == 12


@pytest.mark.parametrize(("texts", "says"), [
    (["5"], "--budget '5': expected dollars=N, tokens=N or seconds=N"),
    (["euros=5"], "--budget 'euros=5': expected dollars=N"), (["dollars="], "--budget dollars=: "),
    (["dollars=-1"], "--budget dollars=-1: Input should be greater than 0"),
    (["tokens=many"], "--budget tokens=many: "), (["dollars=inf"], "--budget dollars=inf: "),
    (["seconds=30m"], "--budget seconds=30m: "), (["tokens=5", "tokens=6"], "gives tokens twice")])
def test_an_amount_that_is_none_or_given_twice_is_one_line(town, ragbed, texts, says):
    options = [word for text in texts for word in ("--budget", text)]
    ragbed.refuses("run", town.config("http://127.0.0.1:9/v1"), *options, says=[says])


@pytest.mark.parametrize(("settings", "says"), [
    ({"budget": {"euros": 5}}, ["unknown setting 'budget.euros'", "dollars, tokens, seconds"]),
    ({"budget": {"tokens": 0}}, ["budget.tokens"])])
def test_a_budget_that_is_none_is_one_line(town, ragbed, settings, says):
    ragbed.refuses("run", town.config("http://127.0.0.1:9/v1", **settings), says=says)


def test_a_dry_run_says_how_its_bounds_stand_to_the_budget(town, ragbed):
    url = "http://127.0.0.1:9/v1"
    plan = json.loads(ragbed("run", town.config(url), "--dry-run", "--json")[1])
    least = plan["total"]["prompt_tokens"]["least"]
    most = plan["total"]["prompt_tokens"]["most"] + plan["total"]["completion_tokens"]["most"]
    for tokens, says in ((least - 1, f"is too small: the run needs at least {least:,} tokens to finish."),
                         (least, f"may be too small: the run needs up to {most:,} tokens."),
                         (most, f"is enough: the run needs up to {most:,} tokens.")):
        err = ragbed("run", town.config(url, budget={"tokens": tokens}), "--dry-run")[2]
        assert f"The budget of {tokens:,} tokens {says}" in err
    err = ragbed("run", town.config(url, calls=priced(url), budget={"dollars": 0.01, "seconds": 90}), "--dry-run")[2]
    assert "The budget of $0.01 is too small: the run needs at least $" in err
    assert "The budget of 90 seconds may stop the run" in err


@pytest.mark.parametrize("usage", [None, {"prompt_tokens": 0, "completion_tokens": 0}])
def test_a_budget_holds_where_the_server_does_not_say_what_was_used(usage, serve, town, ragbed):
    body = {"choices": [{"message": {"content": "five words are said here"}, "finish_reason": "stop"}]}
    server = serve(lambda asked: {"body": json.dumps(body | ({} if usage is None else {"usage": usage})).encode()})
    path = town.config(server.url, concurrency=1, calls=priced(server.url, prompt=1e4), budget={"dollars": 2})
    stopped(ragbed, path, says=["an estimate, as the server does not report the tokens of calls"])
    asked = len(server.requests)
    assert 0 < asked < 6
    stopped(ragbed, path)  # what was estimated counts for later sessions too
    assert len(server.requests) == asked
    status, _, err = ragbed("run", path, "--budget", "dollars=none")
    assert (status, len(server.requests)) == (0, 6)
    assert f"estimated: the server did not report the tokens of {6 - asked} calls" in err


@pytest.mark.slow
def test_calls_under_way_at_a_kill_are_counted_as_what_they_might_use(serve, town, ragbed):
    server = serve(lambda body: {"text": town.reply(body), "delay": 30})
    path = town.config(server.url, concurrency=4, limits={"max_tokens": 500}, budget={"tokens": 2500})
    process = subprocess.Popen([sys.executable, "-m", "ragbed", "run", path], stderr=subprocess.DEVNULL)
    while len(server.requests) < 4:
        time.sleep(0.05)
    process.kill()
    process.wait()
    stopped(ragbed, path, says=["0 of 6 records are kept"])
    assert len(server.requests) == 4
