"""Races: verdicts that stay valid whenever one looks, cells that are asked no more, and the command as it is used."""
import contextlib
import itertools
import json
import sqlite3
import subprocess
import sys
import time
from hashlib import sha256

import numpy as np
import pytest
import yaml
from factored import cells
from scipy.stats import norm

from ragbed.documents import SettingsError
from ragbed.experiments import Gold, Question
from ragbed.experiments.guests.early_stopping.schedule import RaceSchedule
from ragbed.experiments.guests.early_stopping.sequential_test import (
    anytime_interval,
    chance_of_difference,
    early_p,
    follow_race,
    plan_looks,
)
from ragbed.experiments.statistics import cluster_questions, mcnemar

COMMAND = [sys.executable, "-m", "ragbed", "run"]
PAIRS = [(0, 1), (0, 2), (1, 2)]


def raced(scores, pairs=PAIRS, whole=lambda place: None):
    """A race over scores of units by cells."""
    changes = np.stack([scores[:, second] - scores[:, first] for first, second in pairs], axis=1)
    return follow_race(pairs, len(scores), lambda look, places: changes[:look, places], whole)


def test_of_changes_whose_signs_are_fair_coins_no_share_of_ways_has_a_smaller_p():
    sizes = np.array([1, 0, 0.5, 1, 0.25, 1, 2, 1, 1, 0.75, 1, 1])
    ways = np.array(list(itertools.product([-1, 1], repeat=12))) * sizes
    for alpha in (0.3, 0.1, 0.05, 0.01):
        assert np.mean(np.array(early_p(ways.T, 40, 1)) <= alpha) <= alpha


def test_a_pair_that_differs_in_every_question_is_settled_at_the_second_look():
    # l is (2 log(2 / 0.03) / 0.25)^(1/2) = 5.80 over the root of 100 squares: ten changes of 1 have the product
    # exp(0.580)^10 / cosh(0.580)^10 = 329.1 / 4.92 = 66.9, and with -l nothing
    p, = early_p(np.ones((10, 1)), 100, 1)
    assert 1 / p == pytest.approx(66.9 / 2, rel=0.01)
    assert plan_looks(100) == [*range(8, 100, 8), 100]
    found = raced(np.tile([0.0, 1.0], (100, 1)), [(0, 1)])
    assert (found.verdicts[0].higher, found.verdicts[0].units, found.out, found.running) == (1, 16, {0: 0}, set())


def test_a_cell_that_is_worse_than_one_is_compared_with_no_other():
    rng = np.random.default_rng(1)
    best = rng.random(400) < 0.8
    scores = np.stack([best, best & (rng.random(400) < 0.3), np.roll(best, 1)], axis=1).astype(float)
    found = raced(scores)
    assert found.out == {1: 0}
    assert found.verdicts[0].units == found.verdicts[2].units < 80
    assert found.verdicts[2].beaten or found.verdicts[2].higher == 1
    assert found.verdicts[1].chance < 1 / 3
    assert found.verdicts[1].units < 400


def test_at_the_last_question_the_test_of_the_whole_run_decides_with_two_fifths_of_the_error():
    scores = np.zeros((60, 2))
    scores[3::10, 1] = 1  # six, too few for a bet
    assert raced(scores, [(0, 1)], lambda place: 0.019).verdicts[0].higher == 1
    last = raced(scores, [(0, 1)], lambda place: 0.021).verdicts[0]
    assert (last.higher, last.units, last.chance, last.p) == (None, 60, None, pytest.approx(0.021 / 0.4))


def test_the_chance_that_the_whole_run_finds_a_difference_is_that_of_its_test():
    # 50 of 100 changes, 20 up and none down; 22 / 52 is their spread, 40 the sum to expect
    error = ((22 / 52 - 0.4**2) * 100 * 50 / 50) ** 0.5
    needed = 2.326348 * (22 / 52 * 100) ** 0.5
    changes = np.array([1.0] * 20 + [0.0] * 30)
    assert chance_of_difference(changes, 100, 1) == pytest.approx(norm.cdf((40 - needed) / error), abs=1e-6)


@pytest.mark.parametrize("runs", [200, pytest.param(4_000, marks=pytest.mark.slow)])
def test_of_races_between_equals_at_most_one_in_twenty_finds_a_difference(runs):
    wrong = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        scores = (rng.normal(size=(120, 1)) + rng.normal(size=(120, 3)) > 0).astype(float)

        def whole(place, scores=scores):
            change = scores[:, PAIRS[place][1]] - scores[:, PAIRS[place][0]]
            return mcnemar(int((change > 0).sum()), int((change < 0).sum()))

        wrong += bool(raced(scores, whole=whole).out)
    assert wrong / runs <= 0.05


def test_the_interval_holds_the_mean_at_all_times_and_narrows():
    missed = 0
    for seed in range(40):
        changes = np.random.default_rng(seed).choice([-1.0, 0.0, 1.0], 150, p=[0.1, 0.6, 0.3])
        found = [anytime_interval(changes[:n], -1, 1) for n in (10, 40, 80, 150)]
        missed += not all(low <= 0.2 <= high for low, high in found)
        assert found[-1].high - found[-1].low < 0.45
    assert missed <= 4
    assert anytime_interval([], -1, 1) == (None, None)


def reply(body):
    """As `chain_of_thought` it is right in one of eight questions; else in six of eight, not always in the same."""
    text = body["messages"][-1]["content"]
    number = int(text.rpartition("Which number is ")[2].split("?")[0])
    digit = sha256(f"{number}".encode()).digest()[0] % 8
    right = {"Thinking" in text: digit == 3, "plan" in text: digit not in (1, 2)}.get(True, digit not in (0, 1))
    return f"<Thinking>So.</Thinking><Answer>{number if right else 'none'}</Answer>"


@pytest.fixture
def settings(serve, tmp_path):
    server = serve(reply)
    rows = [{"question": f"Which number is {number}?", "answer": str(number)} for number in range(1000, 1096)]
    (tmp_path / "numbers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = tmp_path / "numbers.yaml"
    path.write_text(yaml.safe_dump({
        "out": str(tmp_path / "runs"), "benchmark": {"kind": "jsonl", "path": str(tmp_path / "numbers.jsonl")},
        "models": f"{server.url}#m", "reasoning": ["direct", "chain_of_thought", "plan_and_solve"],
        "conditions": "closed-book", "concurrency": 4}))
    return server, path


def hashes(run):
    with contextlib.closing(sqlite3.connect(run / "records.sqlite")) as connection:
        return connection.execute("SELECT cell, question, hash FROM records ORDER BY cell, question").fetchall()


@pytest.mark.slow
def test_a_race_drops_what_is_worse_and_is_the_same_after_a_kill(settings, tmp_path, ragbed):
    server, path = settings
    run = tmp_path / "runs" / "numbers-race"
    child = subprocess.Popen([*COMMAND, str(path), "--race"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while len(server.requests) < 40:
        assert child.poll() is None
        time.sleep(0.002)
    child.kill()
    child.wait()
    assert not (run / "summary.json").exists()
    status, out, err = ragbed("run", path, "--race", "--full")
    assert status == 0, err
    out = " ".join(out.split())
    assert "64 of 288 answers were needed. Not worse than any cell they were compared with: direct and plan" in out
    assert "chain_of_thought is worse than direct, after 16 of 96 questions." in out
    assert "n is the number of the 96 questions that a cell was asked" in out
    summary = json.loads((run / "summary.json").read_text())
    assert [row["n"] for row in summary["cells"]] == [24, 16, 24]
    assert len(hashes(run)) == 64 <= len(server.requests) <= 64 + 4
    pairs = {(one["n"], one["test"], one["said"]): one for one in summary["comparisons"]["pairs"]}
    assert set(pairs) == {(16, "race", None), (24, "race", (
        "stopped: the chance that the remaining questions show a difference is 20%"))}
    assert pairs[16, "race", None]["p_holm"] < 0.05 < summary["comparisons"]["pairs"][1]["p_holm"]
    assert all(one["low"] < one["difference"] < one["high"] for one in summary["comparisons"]["pairs"])
    assert summary["effects"] is None

    made, asked = (hashes(run), (run / "summary.json").read_bytes()), len(server.requests)
    assert ragbed("run", path, "--race")[0] == 0  # nothing is left to do
    assert ragbed("run", path, "--race", "--journal", "replay")[0] == 0
    assert ragbed("run", path, "--race", "--retry")[0] == 0
    assert (hashes(run), (run / "summary.json").read_bytes()) == made
    assert len(server.requests) == asked
    status, out, _ = ragbed("verify", run)
    assert status == 0
    assert "3 cells of 96 questions, of which the race asked 64 answers" in out
    assert "the chance that the remaining questions show a difference" in (run / "report.html").read_text()
    for command in ("compare", "effects", "dose"):
        status, _, err = ragbed(command, run)
        assert (command, status) == (command, 2)
        assert "run it without --race" in err
    assert ragbed("rescore", run)[0] == 0


@pytest.mark.slow
def test_repeats_run_together_and_a_dry_run_says_that_it_is_the_most(settings, tmp_path, ragbed):
    server, path = settings
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), "repeats": 2}))
    planned = "".join(ragbed("run", path, "--race", "--dry-run")[1:])
    assert "With --race this is an upper bound: cells stop early." in planned
    assert server.requests == []
    status, out, err = ragbed("run", path, "--race")
    assert status == 0, err
    out = " ".join(out.split())
    assert "128 of 576 answers were needed." in out
    assert "chain_of_thought is worse than direct, after 16 of 96 questions." in out
    summary = json.loads((tmp_path / "runs" / "numbers-race" / "summary.json").read_text())
    assert sorted(row["n"] for row in summary["cells"]) == [16, 16, 24, 24, 24, 24]


def test_what_cannot_race_is_refused_in_a_line(settings, ragbed):
    server, path = settings
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), "reasoning": "direct"}))
    status, _, err = ragbed("run", path, "--race")
    assert (status, server.requests) == (2, [])
    assert err == ("ragbed: race: direct competes with no other cell: no other cell differs from it in exactly one "
                   "factor (benchmark, condition, perturbation, show, variation do not count); run without --race\n")
    questions = {"q": Question("q", "Why?", ("x",), True)}
    grouped = cluster_questions(questions.values())
    with pytest.raises(SettingsError, match="provided competes with no other cell"):
        RaceSchedule(cells(condition=["provided", "full"]), questions, grouped, "f1", "corrected", 0)
    with pytest.raises(SettingsError, match="citation_f1 is computed over all questions together"):
        RaceSchedule(cells(reasoning=["a", "b"]), questions, grouped, "citation_f1", "corrected", 0)
    with pytest.raises(SettingsError, match="invalid_citations cannot decide a race"):  # less is better
        RaceSchedule(cells(reasoning=["a", "b"]), questions, grouped, "invalid_citations", "corrected", 0)


def test_questions_over_one_document_are_asked_together_in_an_order_by_the_seed():
    questions = {f"q{place}": Question(f"q{place}", "Why?", ("x",), True, gold=(Gold(f"d{place % 12}"),))
                 for place in range(60)}
    made = [RaceSchedule(cells(reasoning=["a", "b"]), questions, cluster_questions(questions.values(), "document"),
                         "f1", "corrected", seed)
            for seed in (1, 1, 2)]
    assert made[0].order == made[1].order != made[2].order
    assert sorted(made[0].order) == sorted(questions)
    documents = [int(name[1:]) % 12 for name in made[0].order]
    assert [document for document, _ in itertools.groupby(documents)] == documents[::5]
    asked = made[0].due({})
    assert asked == {(cell, name) for cell in ("0", "1") for name in made[0].order[:40]}  # eight documents
