"""A run replayed from its journal, or run again: the same figures; what cannot begin leaves the old run as it is."""
import contextlib
import json
import shutil
import sqlite3

import pytest

from ragbed.strategies import CRESTS, REASONING, Draft, Generate, Message


def test_replay_makes_no_request_and_gives_the_same_summary(serve, town, ragbed):
    server = serve(lambda body: {"status": 500} if "town 3" in body["messages"][1]["content"] else town.reply(body))
    path = town.config(server.url, reasoning=list(CRESTS))
    assert ragbed("run", path)[0] == 0
    before, made, hashes = (town.run / "summary.json").read_bytes(), len(server.requests), town.hashes()
    timings = [record["timing"] for record in town.records()]
    status, _, err = ragbed("run", path, "--journal", "replay")
    assert status == 0
    assert " new records, 0 calls sent and " in err
    assert len(server.requests) == made
    assert (town.run / "summary.json").read_bytes() == before
    assert town.hashes() == hashes
    replayed = [record["timing"] for record in town.records()]
    assert all(one.pop("replayed") for one in replayed)
    assert replayed == [{name: value for name, value in one.items() if name != "replayed"} for one in timings]
    assert all(one["attempts"] and one["seconds"] for one in replayed)
    assert ragbed("run", path)[0] == 0  # finished: nothing is asked again
    assert len(server.requests) == made
    assert (town.run / "summary.json").read_bytes() == before


@pytest.mark.parametrize("gone", ["gguf:gone.gguf", "hf:owner/repo/gone.gguf"])
def test_a_run_of_a_local_model_is_replayed_where_its_weights_are_not(serve, town, ragbed, gone):
    """As if the journal came from another machine: its model stands under a file's name."""
    url = serve(town.reply).url
    assert ragbed("run", town.config(url))[0] == 0
    for name in ("config.yaml", "manifest.json"):
        made = town.run / name
        made.write_text(made.read_text().replace(f"{url}#m", gone))
    path = town.config(url, models=gone)
    assert ragbed("run", path, "--journal", "replay")[0] == 0
    assert [record["timing"]["replayed"] for record in town.records()] == [1] * 6
    assert ragbed("run", path)[0] == 0  # finished: shown again
    ragbed.refuses("run", path, "--fresh", says=["gone.gguf"])
    assert len(town.records()) == 6


def test_equal_calls_of_two_cells_are_made_once_so_that_a_replay_is_equal_whatever_the_server_says(serve, town, ragbed):
    rows = [town.row(number) for number in range(6)]
    for row in rows:  # with one document each, `provided` and `gold` send the same prompts
        row["documents"] = json.dumps(json.loads(row["documents"])[:1])
    town.write(rows)
    count = iter(range(1000))

    def moody(body):
        number = next(count)
        return {"status": 400} if number % 5 == 0 else {"text": f"<Answer>{number}</Answer>", "delay": 0.02}

    server = serve(moody)
    path = town.config(server.url, conditions=["provided", "gold"], reasoning=["direct", "chain_of_draft"])
    assert ragbed("run", path)[0] == 0
    before = (town.run / "summary.json").read_bytes()
    assert len(server.requests) == 12
    assert ragbed("run", path, "--journal", "replay")[0] == 0
    assert (town.run / "summary.json").read_bytes() == before


def test_a_replay_that_misses_a_call_names_the_nearest_prompt(serve, town, ragbed):
    server = serve(town.reply)
    path = town.config(server.url)
    assert ragbed("run", path)[0] == 0
    with sqlite3.connect(town.run / "records.sqlite") as connection:
        connection.execute("DELETE FROM calls WHERE key = (SELECT min(key) FROM calls)")
    connection.close()
    status, out, err = ragbed("run", path, "--journal", "replay", "--json")
    (cell,) = json.loads(out)["cells"]
    assert (status, cell["n"], cell["outcomes"]["error"], len(server.requests)) == (1, 6, 1, 6)
    assert "1 calls or searches are not in the journal" in err
    (missed,) = [one["result"]["failure"] for one in town.records() if one["result"]["failure"]]
    assert missed["kind"] == "replay_miss"
    assert "the nearest recorded prompt differs from character" in missed["message"]


def test_a_strategy_draws_otherwise_in_every_cell_and_alike_in_a_replay(serve, town, ragbed, monkeypatch):
    def drawing(task):
        reply = yield Generate((Message("user", (f"{task.rng().random()}",)),), "answer")
        return Draft.from_reply(reply)

    monkeypatch.setitem(REASONING, "drawing", drawing)
    server = serve(lambda _: "x")
    path = town.config(server.url, reasoning="drawing", conditions=["provided", "closed-book"], repeats=2)
    assert ragbed("run", path)[0] == 0
    assert len({body["messages"][0]["content"] for body, _ in server.requests}) == len(server.requests) == 6 * 4
    hashes = town.hashes()
    assert ragbed("run", path, "--journal", "replay")[0] == 0
    assert town.hashes() == hashes


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
                   says=["--fresh deletes the journal"])


@pytest.mark.parametrize("judged", [False, True])
@pytest.mark.parametrize("options", [["--fresh"], ["--retry"], ["--journal", "live"]])
def test_a_key_that_was_forgotten_leaves_the_old_run_as_it_is(serve, town, ragbed, monkeypatch, options, judged):
    server = serve(town.reply)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-0123456789")
    path = town.config(server.url, **({"judge": "openai:m"} if judged else {"models": "openai:m"}))
    assert ragbed("run", path)[0] == judged  # its replies grade nothing
    before = left(town)
    monkeypatch.delenv("OPENAI_API_KEY")
    ragbed.refuses("run", path, *options, says=["OPENAI_API_KEY is not set"])
    assert left(town) == before
    assert ragbed("run", path)[0] == judged  # finished: shown again


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
    status, _, err = ragbed("run", town.config(server.url))
    assert (status, len(server.requests)) == (0, 7)  # one question is another
    assert "changed since the last run: benchmark.path was " in err
    assert "/moved/crest" in err
    assert "questions: 1 edited" in err


def test_settings_that_differ_are_named_down_to_the_key(serve, town, ragbed):
    server, long = serve(town.reply), "x" * 100
    retriever = {"kind": "dense", "name": f"{long}-a"}
    assert ragbed("run", town.config(server.url, retriever=[retriever]))[0] == 0
    for settings, says in (
            ({"limits": {"max_tokens": 9}}, "different settings: limits.max_tokens was "),
            ({"retriever": [{**retriever, "name": f"{long}-b"}]},
             f'different settings: retriever dense: name was ...{"x" * 19}-a", is ...{"x" * 19}-b"'),
            ({"benchmark": {"kind": "crest", "path": str(town.crest), "seed": 3}}, "benchmark.seed was 0, is 3")):
        ragbed.refuses("run", town.config(server.url, **{"retriever": [retriever], **settings}), "--journal", "replay",
                       says=[says, "use another name, or omit --journal replay"])
