"""Cassettes: a run in one file, made again elsewhere without a model, an index or a network, or refused."""
import json
import shutil
import sqlite3
from pathlib import Path

import pytest
from offline import elsewhere

from ragbed.agents.cassette import Cassette
from ragbed.retrieval import build_index

DATA = Path(__file__).parent / "data"


@pytest.fixture
def offline(tmp_path, ragbed, monkeypatch):
    """The command in this process, in a folder and with neither models nor caches, where nothing can be connected."""
    def refuse(*details):
        raise AssertionError(f"connects: {details}")

    def run(folder: Path, *args: object) -> tuple[int, str, str]:
        with monkeypatch.context() as patch:
            for name in ("RAGBED_MODELS", "RAGBED_CACHE"):
                patch.setenv(name, str(tmp_path / "empty"))
            patch.chdir(folder)
            patch.setattr("socket.socket.connect", refuse)
            patch.setattr("socket.getaddrinfo", refuse)
            return ragbed(*args)

    return run


def rows(run: Path) -> list[tuple[str, str, str]]:
    with sqlite3.connect(run / "records.sqlite") as connection:
        found = connection.execute("SELECT cell, question, result FROM records ORDER BY cell, question").fetchall()
    connection.close()
    return found


@pytest.fixture
def taken(tmp_path, ragbed, offline):
    """Runs a settings file, exports it, closes the server, and makes the run again in another folder."""
    other = tmp_path / "other machine"
    other.mkdir()

    def take(path: Path, server, gone=(), there=offline) -> Path:
        status, _, err = ragbed("run", path)
        assert status == 0, err
        run = tmp_path / "runs" / path.stem
        assert ragbed("cassette", "export", run, "--out", other / "c.gz")[0] == 0
        server.close()
        server.close = lambda: None
        for place in gone:
            shutil.move(place, tmp_path / f"gone {Path(place).name}")
        status, _, err = there(other, "run", "--replay", "c.gz")
        assert status == 0, err
        copy = other / "runs" / path.stem
        assert (copy / "summary.json").read_bytes() == (run / "summary.json").read_bytes()
        assert rows(copy) == rows(run)
        assert "0 calls sent" in err
        assert "the results equal those recorded in c.gz" in err
        return other

    return take


@pytest.mark.slow
def test_placed_evidence_with_several_strategies_is_made_again_to_the_byte(serve, town, taken, offline, ragbed):
    server = serve(town.reply)
    other = taken(town.config(server.url, reasoning=["direct", "least_to_most"], conditions=["provided", "gold"],
                                 perturbations=["none", "negatives@2", "drop_gold"]), server)
    assert offline(other, "cassette", "export", "runs/town", "--out", "again.gz")[0] == 0
    assert (other / "again.gz").read_bytes() == (other / "c.gz").read_bytes()
    assert ragbed("verify", other / "runs" / "town")[0] == 0


def test_repeats_replay_each_their_own_reply_and_failures_fail_again(serve, town, taken):
    count = iter(range(1000))

    def moody(body):
        number = next(count)
        return {"status": 400} if number % 5 == 4 else f"<Answer>{number} [1]</Answer>"

    server = serve(moody)
    other = taken(town.config(server.url, repeats=2, concurrency=1), server)
    results = [json.loads(result) for _, _, result in rows(other / "runs" / "town")]
    assert len({one["text"] for one in results if one["outcome"] == "answered"}) == 10
    assert sorted(one["failure"]["kind"] for one in results if one["failure"]) == ["http_400"] * 2


def test_the_judge_of_a_run_is_not_asked_again(serve, town, taken):
    def reply(body):
        judging = len(body["messages"]) == 1
        return '{"grade": "Correct"}' if judging else "<Answer>111 people [1]</Answer>"

    server = serve(reply)
    other = taken(town.config(server.url, judge=f"{server.url}#judge"), server)
    results = [json.loads(result) for _, _, result in rows(other / "runs" / "town")]
    assert sum(one["judge_usage"]["calls"] for one in results) >= 5


@pytest.mark.slow
def test_searches_of_a_pool_are_given_again_without_its_embedder(serve, town, taken):
    server = serve(lambda _: "<Answer>Oslo [1]</Answer>")
    other = taken(town.config(
        server.url, benchmark={"kind": "hotpotqa", "path": str(DATA / "hotpotqa/hotpot_dev_distractor_v1.json")},
        conditions="retrieved", perturbations=["none", "negatives@2"], reasoning=["direct", "chain_of_thought"],
        retriever=[{"k": 4}, {"k": 3, "over": "all", "name": "all@3"}]), server, there=elsewhere)
    searches = Cassette.open(other / "c.gz").counts["searches"]
    questions = json.loads((DATA / "hotpotqa/hotpot_dev_distractor_v1.json").read_text())
    assert searches == 2 * len(questions)  # one for each retriever, whatever the strategies and perturbations


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for number in range(8):
        (folder / f"town{number}.md").write_text(f"# Town {number}\n\nTown {number} has {number * 111} people.\n")
    build_index([folder], folder / "index")
    return folder / "index"


def own(town):
    return town.own(*({"id": str(number), "question": f"How many people live in town {number}?",
                       "answer": f"{number * 111} people", "gold_documents": [f"town{number}.md"]}
                      for number in range(4)))


@pytest.mark.slow
def test_a_run_over_an_index_is_made_again_without_the_index(serve, town, taken, index):
    copy = Path(shutil.copytree(index, town.folder / "index"))
    server = serve(town.reply)
    other = taken(town.config(
        server.url, benchmark=own(town), conditions=["retrieved", "gold", "full"],
        retriever={"index": str(copy), "k": 2}, perturbations=["none", "negatives@2", "gold_at@2", "shuffle"]),
        server, gone=[copy])
    results = [json.loads(result) for _, _, result in rows(other / "runs" / "town")]
    sources = {passage["source"] for one in results for passage in one["evidence"]}
    assert sources >= {f"town{number}.md" for number in range(4)}
    assert {one["gold_in_view"] for one in results} == {True}


# What does not match is missed, and ends with exit status 1.

@pytest.fixture
def exported(serve, town, ragbed):
    """Runs a settings file and exports it; returns the cassette and the server."""

    def export(**settings):
        server = serve(town.reply)
        status, _, err = ragbed("run", town.config(server.url, **settings))
        assert status == 0, err
        assert ragbed("cassette", "export", town.run, "--out", town.folder / "c.gz")[0] == 0
        return town.folder / "c.gz", server

    return export


def test_settings_of_a_target_replay_what_they_have_in_common_with_the_recorded_run(town, ragbed, exported):
    file, server = exported(reasoning=["direct", "chain_of_draft"])
    asked = len(server.requests)
    part = town.config("http://elsewhere.invalid/v1", file="part")  # another host, and one strategy of the two
    assert ragbed("run", part, "--limit", 3, "--replay", file)[0] == 0
    town.run = town.folder / "runs" / "part-limit-3"
    assert len(town.hashes()) == 3
    other = town.config(server.url, file="other", brief=True)
    status, out, err = ragbed("run", other, "--replay", file, "--json")
    assert (status, len(server.requests)) == (1, asked)
    (cell,) = json.loads(out)["cells"]
    assert (cell["n"], cell["outcomes"]["error"]) == (6, 6)
    assert f"6 calls or searches are not in {file}" in err
    assert "6 failed with replay_miss, the first: no recorded reply to call" in err
    assert "the nearest recorded prompt differs from character" in err
    assert f"`ragbed run {other} --retry` asks them again" in err


def test_a_search_that_was_not_recorded_is_missed_whatever_is_there_now(town, ragbed, exported, index):
    over = {"benchmark": own(town), "conditions": "retrieved"}
    file, server = exported(**over, retriever={"index": str(index), "k": 2, "name": "found"})
    asked = len(server.requests)
    for name, retriever in (("more", {"index": str(index), "k": 3, "name": "found"}),
                            ("elsewhere", {"index": str(town.folder / "none"), "k": 2, "name": "found"}),
                            ("unknown", {"index": str(index), "k": 2, "name": "unknown"})):
        path = town.config(server.url, file=name, **over, retriever=retriever)
        status, _, err = ragbed("run", path, "--replay", file)
        missed = name != "unknown"  # another name for the index that was recorded, which is there
        assert (status, "4 failed with replay_miss" in err) == (int(missed), missed), err
        assert ("for 'How many people live in town" in err) == missed
    assert len(server.requests) == asked


def test_a_judge_that_is_missed_counts_too(serve, town, ragbed, exported):
    file, server = exported()
    path = town.config(server.url, file="judged", judge=f"{server.url}#judge")
    status, _, err = ragbed("run", path, "--replay", file)
    assert status == 1
    assert f"3 calls or searches are not in {file}" in err


def test_the_benchmark_may_be_moved_and_has_to_be_the_same(town, ragbed, exported):
    file, _ = exported()
    before = (town.run / "summary.json").read_bytes()
    moved = town.folder / "moved"
    town.crest.rename(moved)
    replay = ["run", "--replay", file, "--out", town.folder / "again"]
    ragbed.refuses(*replay, says=["no such file or folder", f"that is where {file} has them", "--set benchmark.path="])
    assert ragbed(*replay, "--set", f"benchmark.path={moved}")[0] == 0
    assert (town.folder / "again" / "town" / "summary.json").read_bytes() == before
    text = (moved / "refusal.jsonl").read_text()
    (moved / "refusal.jsonl").write_text(text.replace("How many", "How few"))
    ragbed.refuses(*replay, "--fresh", "--set", f"benchmark.path={moved}",
                   says=["the questions at ", "moved differ from the recorded ones of", "c.gz; name the files"])
    assert (town.folder / "again" / "town" / "summary.json").read_bytes() == before


def test_a_benchmark_of_the_hub_is_not_fetched_by_a_replay(town, exported, offline):
    file, _ = exported()
    status, _, err = offline(town.folder, "run", "--replay", file, "--name", "hub", "--set",
                             "benchmark.path=hub:no/such")
    assert (status, err.count("\n")) == (2, 1)
    assert "hub:no/such: not in the hub's cache and is not fetched by a replay; give the path of" in err


@pytest.mark.slow
def test_a_run_of_another_origin_is_refused_and_a_replay_continues(town, ragbed, exported):
    file, server = exported()
    before = town.hashes()
    ragbed.refuses("run", "--replay", file, "--out", town.folder / "runs",
                   says=["holds a run that is not a replay of", "--name", "--fresh"])
    assert town.hashes() == before
    again = ["run", "--replay", file, "--out", town.folder / "again"]
    for _ in range(2):
        assert ragbed(*again)[0] == 0
    assert ragbed("run", town.folder / "again" / "town" / "config.yaml", "--journal", "replay")[0] == 0
    town.run = town.folder / "again" / "town"
    assert town.hashes() == before
    assert len(server.requests) == 6
    assert ragbed("run", "--replay", file, "--out", town.folder / "runs", "--fresh")[0] == 0


def test_what_does_not_go_together_is_one_line(town, ragbed, exported):
    file, _ = exported()
    ragbed.refuses("run", "--replay", file, "--retry", says=["it sends no calls"])
    ragbed.refuses("run", "--replay", file, "--journal", "live", says=["it sends no calls"])
    ragbed.refuses("run", "--replay", file, "--model", "openai:x", says=["--model needs a TARGET"])
    ragbed.refuses("run", "--replay", file, "--set", "nonsense=1", says=["nonsense"])
    ragbed.refuses("run", "--replay", file, "--set", "a.b=1", says=["unknown setting 'a'"])
    ragbed.refuses("run", says=["TARGET"])
    ragbed.refuses("cassette", "export", town.folder, says=["holds no run"])
    ragbed.refuses("cassette", "export", town.run, "--out", town.folder / "town.yaml",
                   says=["is not a cassette", "--out"])
    ragbed.refuses("cassette", "export", town.run, "--out", town.folder / "none" / "c.gz", says=["No such file"])
    (town.run / "summary.json").unlink()
    ragbed.refuses("cassette", "export", town.run, "--out", file, says=["has not finished"])
