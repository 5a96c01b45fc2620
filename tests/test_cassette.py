"""Cassettes: a run in one file, made again elsewhere without a model, an index or a network, or refused."""
from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from agents.cassette import FREE, Cassette
from documents.errors import RunError
from retrieval.build import build_index

DATA = Path(__file__).parent / "data"
ROOT = Path(__file__).parent.parent


def elsewhere(folder: Path, *args: object) -> subprocess.CompletedProcess[str]:
    """The command in a folder of its own, with neither models nor caches nor a network's names."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("RAGBED", "OPENAI", "HF_"))}
    empty = folder / "empty"
    empty.mkdir(exist_ok=True)
    bare |= {"RAGBED_MODELS": str(empty), "RAGBED_CACHE": str(folder / "cache"), "HF_HUB_OFFLINE": "1",
             "HOME": str(empty), "PYTHONPATH": str(ROOT), "http_proxy": "http://127.0.0.1:9",
             "https_proxy": "http://127.0.0.1:9"}
    return subprocess.run([sys.executable, "-m", "experiments.cli", *map(str, args)], cwd=folder, env=bare,
                          capture_output=True, text=True)


def rows(run: Path) -> list[tuple[str, str, str]]:
    with sqlite3.connect(run / "records.sqlite") as connection:
        found = connection.execute("SELECT cell, question, result FROM records ORDER BY cell, question").fetchall()
    connection.close()
    return found


@pytest.fixture
def taken(tmp_path, ragbed):
    """Runs a settings file, exports it, closes the server, and makes the run again in another folder."""
    other = tmp_path / "other machine"
    other.mkdir()

    def take(path: Path, server, gone=()) -> tuple[Path, subprocess.CompletedProcess[str]]:
        status, _, err = ragbed("run", path)
        assert status == 0, err
        run = tmp_path / "runs" / path.stem
        assert ragbed("cassette", "export", run, "--out", other / "c.gz")[0] == 0
        server.close()
        server.close = lambda: None
        for place in gone:
            shutil.move(place, tmp_path / f"gone {Path(place).name}")
        done = elsewhere(other, "run", "--replay", "c.gz")
        assert done.returncode == 0, done.stderr
        copy = other / "runs" / path.stem
        assert (copy / "summary.json").read_bytes() == (run / "summary.json").read_bytes()
        assert rows(copy) == rows(run)
        assert "0 calls sent" in done.stderr
        assert "the results are those of c.gz" in done.stderr
        return other, done

    return take


def test_placed_evidence_with_several_strategies_is_made_again_to_the_byte(serve, town, taken, ragbed):
    server = serve(town.reply)
    other, _ = taken(town.config(server.url, reasoning=["direct", "least_to_most"], conditions=["given", "evidence"],
                                 perturbations=["none", "negatives@2", "drop_gold"]), server)
    again = elsewhere(other, "cassette", "export", "runs/town", "--out", "again.gz")
    assert again.returncode == 0, again.stderr
    assert (other / "again.gz").read_bytes() == (other / "c.gz").read_bytes()
    assert ragbed("verify", other / "runs" / "town")[0] == 0


def test_repeats_replay_each_their_own_reply_and_failures_fail_again(serve, town, taken):
    count = iter(range(1000))

    def moody(body):
        number = next(count)
        return {"status": 400} if number % 5 == 4 else f"<Answer>{number} [1]</Answer>"

    server = serve(moody)
    other, _ = taken(town.config(server.url, repeats=2, concurrency=1), server)
    results = [json.loads(result) for _, _, result in rows(other / "runs" / "town")]
    assert len({one["text"] for one in results if one["outcome"] == "answered"}) == 10
    assert sorted(one["failure"]["kind"] for one in results if one["failure"]) == ["http_400"] * 2


def test_the_judge_of_a_run_is_not_asked_again(serve, town, taken):
    def reply(body):
        judging = len(body["messages"]) == 1
        return '{"grade": "Correct"}' if judging else "<Answer>111 people [1]</Answer>"

    server = serve(reply)
    other, _ = taken(town.config(server.url, judge=f"{server.url}#judge"), server)
    results = [json.loads(result) for _, _, result in rows(other / "runs" / "town")]
    assert sum(one["judge_usage"]["calls"] for one in results) >= 5


def test_searches_of_a_pool_are_given_again_without_its_embedder(serve, town, taken):
    server = serve(lambda _: "<Answer>Oslo [1]</Answer>")
    other, done = taken(town.config(
        server.url, benchmark={"kind": "hotpotqa", "path": str(DATA / "hotpotqa/hotpot_dev_distractor_v1.json")},
        conditions="retrieved", perturbations=["none", "negatives@2"], reasoning=["direct", "chain_of_thought"],
        retriever=[{"k": 4}, {"k": 3, "over": "all", "name": "all@3"}]), server)
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


def test_a_run_over_an_index_is_made_again_without_the_index(serve, town, taken, index):
    copy = Path(shutil.copytree(index, town.folder / "index"))
    server = serve(town.reply)
    other, _ = taken(town.config(
        server.url, benchmark=own(town), conditions=["retrieved", "evidence", "full"], retriever={"index": str(copy), "k": 2},
        perturbations=["none", "negatives@2", "gold_at@2", "shuffle"]), server, gone=[copy])
    results = [json.loads(result) for _, _, result in rows(other / "runs" / "town")]
    sources = {passage["source"] for one in results for passage in one["evidence"]}
    assert sources >= {f"town{number}.md" for number in range(4)}
    assert {one["gold_in_view"] for one in results} == {True}


def test_a_benchmark_with_a_corpus_is_made_again_without_the_corpus(serve, town, taken, index):
    corpus = town.folder / "corpus"
    corpus.mkdir()
    (corpus / "town1.md").write_text("Town 1 has 111 people.")
    server = serve(town.reply)
    taken(town.config(server.url, benchmark={**own(town), "corpus": str(corpus)}, conditions="retrieved"), server)
