"""Every kind is killed at each of its stages, goes on to the same bytes, and asks no more than its dry run says."""
import json
import subprocess
import sys
import threading

import pytest
import test_computed
import test_construct
import test_construct_detectiveqa
import test_construct_mdbench
import test_construct_mrceval
import test_construct_mrke


def crest(folder):
    for town in test_construct.TOWNS:
        (folder / f"{town}.txt").write_text(test_construct.page(town))
    return test_construct.writer, "--n", "3"


def mdbench(folder):
    for coast in ("Arno", "Bute"):
        rows = [("name", "height", "lit", "rank"), *test_construct_mdbench.table(coast)]
        (folder / f"{coast} coast.csv").write_text("".join(f"{','.join(row)}\n" for row in rows))
    return test_construct_mdbench.reply, "--n", "2", "--set", "retriever=dense"


def mrke(folder):
    for flaw in ("sound", "unneeded"):
        (folder / f"{flaw}.txt").write_text(test_construct_mrke.page(flaw))
    return test_construct_mrke.reply, "--n", "9"


def mrceval(folder):
    for town in ("Arlen", "Gower"):
        (folder / f"{town}.txt").write_text(test_construct_mrceval.page(town))
    return (test_construct_mrceval.reply, "--n", "2", "--set", "options.subtasks=[temporal]", "--set",
            "options.select=all")


def detectiveqa(folder):
    for place in ("Ostra", "Nordra"):
        (folder / f"{place}.txt").write_text(test_construct_detectiveqa.STORY.format(place=place))
    return test_construct_detectiveqa.reply, "--n", "9", "--set", "options.section=500"


def computed(folder):
    (folder / "depots.csv").write_text(test_computed.DEPOTS)
    return test_computed.writer(), "--n", "3", "--set", "options.operations=[difference]"


@pytest.fixture(params=[crest, computed, *(pytest.param(kind, marks=pytest.mark.slow)
                                           for kind in (mdbench, mrke, mrceval, detectiveqa))])
def made(request, ragbed, tmp_path):
    """A kind's scripted writer, and what stands in its command before the folder of the set."""
    (folder := tmp_path / "pages").mkdir()
    reply, *more = request.param(folder)
    command = ("construct", request.param.__name__, str(folder), *more)
    if request.param is computed:
        assert ragbed(*command, "--out", tmp_path / "plain")[0] == 0
        items = [json.loads(line)["item"] for line in (tmp_path / "plain/items.jsonl").read_text("utf-8").splitlines()]
        reply.plans.update((item["question"], item["made"]["plan"]) for item in items if item["question"])
    return reply, command


def sort_of(body):
    """Which stage a call may be of: by the fields of its reply, or by whether a solver is shown documents."""
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema", {})
    return len(body["messages"]), *(schema.get("properties") or ["documents" in body["messages"][-1]["content"]])


@pytest.mark.slow
def test_killed_at_every_stage_it_goes_on_to_the_same_bytes(made, serve, ragbed, tmp_path):
    reply, command = made
    asked, sorts, held = [], set(), []

    def stalls(body):
        asked.append(json.dumps(body))
        new = sort_of(body) not in sorts
        sorts.add(sort_of(body))
        if not new:
            return reply(body)
        held.append(threading.Event())
        return {"text": reply(body), "hold": held[-1]}

    arguments = (*command, "--writer", f"{serve(stalls).url}#m", "--set", "calls.calls.concurrency=1", "--out")
    for kill in range(20):
        process = subprocess.Popen([sys.executable, "-m", "ragbed", *arguments, tmp_path / "killed"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while len(held) == kill and process.poll() is None:
            threading.Event().wait(0.01)
        if len(held) == kill:
            break
        process.kill()
        process.wait()
        held[kill].set()
    assert process.returncode == 0
    assert len(held) >= 2
    assert sorted(map(asked.count, set(asked))) == [1] * (len(set(asked)) - len(held)) + [2] * len(held)
    ragbed.json(*arguments, tmp_path / "whole")
    assert test_construct.files(tmp_path / "killed") == test_construct.files(tmp_path / "whole")


@pytest.mark.slow
def test_no_kind_asks_more_than_its_dry_run_says(made, serve, ragbed, tmp_path):
    """Of a writer whose first replies never fit."""
    reply, command = made

    def mended(body):
        if "response_format" not in body:
            return reply(body)
        repaired = "does not fit" in body["messages"][-1]["content"]
        return reply({**body, "messages": body["messages"][:-2]}) if repaired else "It is so."

    server = serve(mended)
    arguments = (*command, "--writer", f"{server.url}#m", "--out", tmp_path / "set")
    (bound,) = ragbed.json(*arguments, "--dry-run")["models"]
    ragbed.json(*arguments)
    assert 0 < len(server.requests) <= bound["calls"]


def test_a_dry_run_bounds_by_their_limits_the_steps_that_its_replies_do_not_reach(ragbed, tmp_path):
    """A text without a name, of which no table of names is made: 2 calls, and 62 at most for each of 3 questions, by
    the writer or by the solver."""
    (tmp_path / "a.txt").write_text("nothing in here has a name, and nobody says why it is so.")
    (bound,) = ragbed.json("construct", "mrke", tmp_path / "a.txt", "--n", 1, "--writer", "http://127.0.0.1:9/v1#m",
                           "--out", tmp_path / "set", "--dry-run")["models"]
    assert bound["calls"] == 2 + 2 * 62 * 3
