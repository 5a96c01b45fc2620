"""A finished run that is run again: what cannot begin leaves the old run as it is."""
import contextlib
import shutil
import sqlite3

import pytest


def left(town) -> tuple[object, ...]:
    """What a run left: its records, its calls, its summary and its report."""
    with contextlib.closing(sqlite3.connect(town.run / "records.sqlite")) as connection:
        calls = connection.execute("SELECT count(*) FROM calls").fetchone()
    assert calls != (0,)
    return town.hashes(), calls, *((town.run / name).read_bytes() for name in ("summary.json", "report.html"))


def test_live_asks_what_the_journal_knows_and_makes_the_records_anew(serve, town, ragbed):
    said = ["7 [1]"]
    server = serve(lambda _: f"<Answer>{said[0]}</Answer>")
    path = town.config(server.url)
    assert ragbed("run", path)[0] == 0
    said[0] = "8 [1]"
    assert ragbed("run", path, "--journal", "live")[0] == 0
    assert len(server.requests) == 12
    assert {record["result"]["text"] for record in town.records()} == {"8 [1]"}
    assert ragbed("run", path, "--journal", "live", "--fresh")[0] == 0
    assert len(server.requests) == 18


def test_a_replay_does_not_go_with_the_removal_of_what_it_reads(town, ragbed):
    ragbed.refuses("run", town.config("http://127.0.0.1:9/v1"), "--fresh", "--journal", "replay",
                   says=["--fresh removes the journal", "one of the two"])


def test_a_fresh_run_that_cannot_begin_leaves_the_old_one(serve, town, ragbed):
    path = town.config(serve(town.reply).url)
    assert ragbed("run", path)[0] == 0
    shutil.rmtree(town.crest)
    ragbed.refuses("run", path, "--fresh", says=["no such file or folder"])
    assert len(town.hashes()) == 6


@pytest.mark.parametrize("judged", [False, True])
@pytest.mark.parametrize("options", [["--fresh"], ["--retry"], ["--journal", "live"]])
def test_a_key_that_was_forgotten_leaves_the_old_run_as_it_is(serve, town, ragbed, monkeypatch, options, judged):
    server = serve(town.reply)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-0123456789")
    path = town.config(server.url, **({"judge": "openai:m"} if judged else {"models": "openai:m"}))
    assert ragbed("run", path)[0] == 0
    before = left(town)
    monkeypatch.delenv("OPENAI_API_KEY")
    ragbed.refuses("run", path, *options, says=["set OPENAI_API_KEY"])
    assert left(town) == before
    assert ragbed("run", path)[0] == 0  # finished: shown again


def test_a_benchmark_that_was_moved_is_replayed_from_its_new_place(serve, town, ragbed):
    server = serve(town.reply)
    assert ragbed("run", town.config(server.url))[0] == 0
    before = town.hashes()
    moved = town.folder / "moved" / "crest"
    shutil.copytree(town.crest, moved)
    path = town.config(server.url, benchmark={"kind": "crest", "path": str(moved)})
    assert ragbed("run", path, "--journal", "replay")[0] == 0
    assert (town.hashes(), len(server.requests)) == (before, 6)
    (town.crest / "refusal.jsonl").write_text((town.crest / "refusal.jsonl").read_text().replace("How many", "How few"))
    ragbed.refuses("run", town.config(server.url), says=["other settings: benchmark.path was ", "/moved/crest"])


def test_settings_that_differ_are_named_down_to_the_key(serve, town, ragbed):
    server, long = serve(town.reply), "x" * 100
    retriever = {"kind": "dense", "name": f"{long}-a"}
    assert ragbed("run", town.config(server.url, retriever=[retriever]))[0] == 0
    for settings, says in (
            ({"limits": {"max_tokens": 9}}, "other settings: limits.max_tokens was "),
            ({"retriever": [{**retriever, "name": f"{long}-b"}]},
             f'other settings: retriever.0.name was ...{"x" * 19}-a", is ...{"x" * 19}-b"'),
            ({"benchmark": {"kind": "crest", "path": str(town.crest), "seed": 3}}, "benchmark.seed was 0, is 3")):
        ragbed.refuses("run", town.config(server.url, **{"retriever": [retriever], **settings}), says=[says])
