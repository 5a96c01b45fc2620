"""The cache of calls: what runs share, what they never share, and what happens to a damaged or full cache."""
import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from ragbed.agents.database import row_hash
from ragbed.experiments.guests.call_cache.cached_calls import CacheSettings, ReplyCache
from ragbed.strategies.types import Reply, Usage

ROOT = Path(__file__).parents[3]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of the cache, which the tests otherwise turn off."""
    monkeypatch.setenv("RAGBED_CALL_CACHE", str(tmp_path / "calls"))
    return tmp_path / "calls"


@pytest.fixture
def file(folder):
    return folder / "replies.sqlite"


@pytest.fixture
def run(serve, town, ragbed, folder):
    """Runs the town under a name; the calls that the server got, and what stderr says."""
    server = serve(town.reply)

    def go(name, *options, **settings):
        before = len(server.requests)
        status, _, err = ragbed("run", town.config(server.url, name=name, **settings), *options)
        assert status == 0, err
        return len(server.requests) - before, err

    go.server = server
    return go


def reply(text="Yes", **changes):
    return Reply(text, "", (), None, Usage(10, 2, 0, 1, 0.5), "stop", **changes)


def change(file, statement, *values):
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as database:
        return database.execute(statement, values).fetchall()


def summary(town, name):
    return json.loads((town.folder / "runs" / name / "summary.json").read_text())


def test_a_call_that_any_run_has_made_is_not_sent_again(run, town, ragbed, tmp_path):
    assert run("one")[0] == 6
    calls, err = run("two", reasoning=["direct", "chain_of_thought"])
    assert (calls, "calls: 6 sent, 6 taken from the cache" in err) == (6, True)
    calls, err = run("three")
    assert (calls, "calls: 0 sent, 6 taken from the cache" in err) == (0, True)
    one, three = summary(town, "one"), summary(town, "three")
    assert three["results"] == one["results"]
    assert {**three, "name": "one"} == one
    cassette = tmp_path / "three.cassette.jsonl.gz"
    assert ragbed("cassette", "export", town.folder / "runs" / "three", "--out", cassette)[0] == 0
    assert "equal those recorded" in ragbed("run", "--replay", cassette, "--out", tmp_path)[2]


def test_a_changed_run_takes_from_the_cache_what_its_journal_has_dropped(run):
    run("one", reasoning=["direct", "chain_of_thought"])
    run("one")
    calls, err = run("one", reasoning=["direct", "chain_of_thought"])
    assert (calls, "6 kept from the earlier settings, 6 taken from the cache" in err) == (0, True)


@pytest.mark.slow
@pytest.mark.parametrize("options", [["--fresh"], ["--journal", "live"]])
def test_asking_again_stores_the_new_replies(run, options):
    run("one")
    assert run("one", *options)[0] == 6
    assert run("two", *options)[0] == 6
    assert run("three")[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("cache", ["off", False, {"size": 0}])
def test_the_cache_can_be_turned_off(run, file, cache):
    assert run("one", cache=cache)[0] == 6
    assert run("two", cache=cache)[0] == 6
    assert not file.exists()
    assert run("two")[0] == 0  # the cache is no part of what a run is


def test_a_model_of_another_server_or_another_sample_is_another_call(run, serve, town, ragbed):
    run("one")
    other = serve(lambda body: "<Answer>Other weights [1]</Answer>")
    assert ragbed("run", town.config(other.url, name="two"))[0] == 0
    assert len(other.requests) == 6
    assert run("three", repeats=2)[0] == 6  # the first repeat is known
    assert run("four", calls={"temperature": 1.0})[0] == 6


def test_other_headers_or_fields_of_the_request_are_another_call(run):
    def named(**changes):
        return {"models": [{"name": "mine", "model": f"{run.server.url}#m", **changes}]}

    assert run("one", **named(headers={"X-Team": "red"}))[0] == 6
    assert run("two", **named(headers={"X-Team": "red"}))[0] == 0
    assert run("three", **named(headers={"X-Team": "blue"}))[0] == 6
    assert run("four", **named(headers={"X-Team": "red"}, extra_body={"top_p": 0.5}))[0] == 6


def test_the_price_is_that_of_the_run_and_only_calls_that_are_sent_are_paid(run, town):
    run("one")
    calls, err = run("two", calls={"prices": {f"{run.server.url}#m": {"prompt": 1e6, "completion": 0}}},
                     budget={"dollars": 5000})
    assert (calls, "price $0" in err) == (0, True)
    (cell,) = summary(town, "two")["cells"]
    assert cell["usage"]["price"] == cell["usage"]["prompt_tokens"] == 4200


def test_failures_and_cut_prompts_are_never_shared(serve, town, ragbed, folder):
    lines = [{"status": 400, "error": {"message": "no"}}, {"text": "<Answer>7</Answer>", "usage": {
        "prompt_tokens": 3, "completion_tokens": 1}}, *["<Answer>So [1]</Answer>"] * 12]
    server = serve(lines)
    assert ragbed("run", town.config(server.url, name="one", concurrency=1))[0] == 0
    assert ragbed("run", town.config(server.url, name="two", concurrency=1))[0] == 0
    assert len(server.requests) == 6 + 2


def test_a_pipeline_is_asked_by_every_run(town, ragbed, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("def ask(question):\n    with open('asked', 'a') as file:\n"
                                      "        file.write('x')\n    return 'So'\n")
    mine = {"kind": "python", "name": "mine", "factory": "mine.py:ask"}
    for name in ("one", "two"):
        path = town.config("http://127.0.0.1:9/v1", name=name, models=[], pipelines=mine)
        status, _, err = ragbed("run", path)
        assert status == 0, err
    assert len((tmp_path / "asked").read_text()) == 12


def test_the_file_is_private_and_holds_no_prompt_address_or_key(run, folder, file, monkeypatch):
    monkeypatch.setenv("RAGBED_API_KEY", "sk-secret-of-mine")
    run("one")
    content = b"".join(path.read_bytes() for path in folder.iterdir())
    assert b"555 people" in content  # a reply
    for absent in (b"How many people", b"127.0.0.1", b"sk-secret"):
        assert absent not in content
    assert [path.stat().st_mode & 0o777 for path in (folder, file)] == [0o700, 0o600]


DAMAGE = ["UPDATE replies SET reply = replace(reply, '555 people', '999 people')",
          "UPDATE replies SET key = CASE key WHEN (SELECT min(key) FROM replies) THEN 'x' ELSE key END",
          "UPDATE replies SET hash = NULL", "UPDATE replies SET reply = x'00ff'", "UPDATE replies SET reply = NULL"]


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_reply_is_never_used_and_is_replaced(run, town, file, damage):
    run("one")
    change(file, damage)
    calls, _ = run("two")
    assert 1 <= calls <= 6
    assert summary(town, "two")["results"] == summary(town, "one")["results"]
    assert run("three")[0] == 0


def test_a_reply_of_another_shape_is_removed_even_if_its_hash_is_right(file):
    with ReplyCache(file, 10**6) as cache:
        cache.keep("k", "s", reply())
        ((name,),) = change(file, "SELECT key FROM replies")
        for text in ('{"text": 5}', "[]", "", '{"text": "x", "usage": {"prompt_tokens": "many"}}'):
            change(file, "INSERT OR REPLACE INTO replies VALUES (?, 0, ?, ?)", name, row_hash(name, text), text)
            assert cache.find("k", "s") is None
            assert change(file, "SELECT count(*) FROM replies") == [(0,)]


def test_a_file_that_is_no_database_is_removed_with_one_note(run, file):
    file.parent.mkdir(mode=0o700)
    file.write_bytes(b"no database" * 500)
    calls, err = run("one")
    assert (calls, err.count("the cache of calls")) == (6, 1)
    assert "it was damaged and is removed" in err
    assert (run("two")[0], run("three")[0]) == (6, 0)


def test_without_a_usable_folder_the_run_goes_on_with_one_note(run, town, tmp_path, folder, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RAGBED_CALL_CACHE", str(tmp_path / "file" / "calls"))
    calls, err = run("one")
    assert (calls, err.count("the cache of calls"), "set RAGBED_CALL_CACHE" in err) == (6, 1, True)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs owners and modes of files")
def test_a_cache_that_other_users_could_change_is_not_used(run, file, folder):
    run("one")
    file.chmod(0o666)
    calls, err = run("two")
    assert (calls, "other users could change it; run chmod go-w" in err) == (6, True)


def test_a_full_disk_ends_the_use_of_the_cache_and_nothing_else(file):
    script = ("import resource, sys; from pathlib import Path; from test_call_cache import ReplyCache, reply\n"
              "cache = ReplyCache(Path(sys.argv[1]), 10**9)\n"
              "resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))\n"
              "for number in range(100): cache.keep(str(number), 's', reply('x' * 9000))\n"
              "print(cache.find('0', 's'), cache.close())")
    done = subprocess.run([sys.executable, "-c", script, str(file)], capture_output=True, text=True, cwd=ROOT,
                          env={**os.environ, "PYTHONPATH": f"{ROOT}:{Path(__file__).parent}"})
    assert done.stdout.startswith("None the cache of calls"), done.stderr
    assert "free space" in done.stdout


def test_replies_that_were_not_used_for_the_longest_time_are_removed_first(file):
    with ReplyCache(file, 400_000) as cache:
        for number in range(30):
            cache.keep(str(number), "s", reply("x" * 9_000))
    change(file, "UPDATE replies SET used = used - 90000")
    with ReplyCache(file, 400_000) as cache:
        assert cache.find("0", "s") == reply("x" * 9_000)  # and is used now
        for number in range(30, 60):
            cache.keep(str(number), "s", reply("x" * 9_000))
    with ReplyCache(file, 400_000) as cache:
        found = {number for number in range(60) if cache.find(str(number), "s")}
    assert found >= {0, 59}
    assert not found & set(range(1, 20))
    assert len(found) > 15
    assert file.stat().st_size < 450_000
    with ReplyCache(file, 100_000):
        pass
    assert file.stat().st_size < 150_000


def test_two_processes_share_one_file(file):
    script = ("import sys; from pathlib import Path; from test_call_cache import ReplyCache, reply\n"
              "with ReplyCache(Path(sys.argv[1]), 10**9) as cache:\n"
              "    for number in range(300):\n"
              "        cache.keep(str(number), 's', reply(f'{number}'))\n"
              "        cache.keep(sys.argv[2] + str(number), 's', reply('own'))\n"
              "        assert cache.find(str(number), 's') == reply(f'{number}')\n"
              "    print(cache.close())")
    env = {**os.environ, "PYTHONPATH": f"{ROOT}:{Path(__file__).parent}"}
    children = [subprocess.Popen([sys.executable, "-c", script, str(file), name], cwd=ROOT, env=env, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE) for name in "ab"]
    assert [child.communicate() for child in children] == [("\n", "")] * 2
    assert change(file, "SELECT count(*) FROM replies") == [(900,)]
    assert change(file, "PRAGMA integrity_check") == [("ok",)]


@pytest.mark.parametrize(("given", "size"), [
    ("500 MB", 500_000_000), ("1GiB", 1 << 30), (1000, 1000), (0, 0)])
def test_sizes_are_read_with_their_units(given, size):
    assert CacheSettings(size=given).size == size


def test_asking_one_question_leaves_the_cache_alone(serve, capitals, ragbed, folder):
    server = serve(lambda body: "<Answer>Norway [1]</Answer>")
    for _ in range(2):
        assert ragbed("ask", "Where is Oslo?", "--index", capitals, "--model", f"{server.url}#m")[0] == 0
    assert len(server.requests) == 2
    assert not folder.exists()
