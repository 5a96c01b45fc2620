"""Shards of a run and of an index, merged: the bytes of what was never divided; what is amiss is named, and nothing is
joined."""
import asyncio
import os
import signal
import threading
from itertools import chain
from pathlib import Path

import pytest
from embedders import Lengths
from test_local_server import LINUX, gone
from test_run import started

from ragbed.documents.errors import IndexFolderError
from ragbed.documents.shards import Shard
from ragbed.experiments.guests.cluster.merge_shards import merge_indexes
from ragbed.retrieval import Index, IndexSettings, build_index

pytestmark = pytest.mark.usefixtures("own_cache")


def test_every_id_is_in_one_shard_by_its_hash_alone():
    ids = [f"question-{number}" for number in range(1000)]
    shards = [Shard(number, 16) for number in range(1, 17)]
    parts = [[id for id in ids if id in shard] for shard in shards]
    assert sorted(chain.from_iterable(parts)) == sorted(ids)
    assert min(map(len, parts)) > 40
    assert "question-0" in Shard.parse("14/16")


def divided(town, url):
    """The settings of a run whose cells draw negatives, and search what all questions bring."""
    town.write([town.row(number) for number in range(12)])
    return town.config(url, conditions=["provided", "retrieved"], seed=[1, 2], perturbations="negatives@2+shuffle",
                       retriever={"kind": "bm25", "over": "all", "k": 3})


@pytest.mark.slow
def test_a_merged_run_has_the_summary_of_the_run_that_was_never_divided(serve, town, ragbed):
    path = divided(town, serve(town.reply).url)
    for number in range(1, 4):
        status, out, err = ragbed("run", path, "--shard", f"{number}/3")
        assert (status, "records; when all shards are complete, run: ragbed merge" in out) == (0, True), err
    assert not (town.run / "summary.json").exists()
    assert ragbed("merge", f"{town.run}.shards")[0] == 0
    merged, hashes = (town.run / "summary.json").read_bytes(), town.hashes()
    assert len(hashes) == 12 * 4
    assert ragbed("verify", town.run)[0] == 0
    assert ragbed("run", path, "--journal", "replay")[0] == 0  # every call and search is there
    assert (town.run / "summary.json").read_bytes() == merged
    assert ragbed("run", path, "--fresh")[0] == 0
    assert (town.run / "summary.json").read_bytes() == merged


@pytest.mark.slow
def test_a_killed_shard_is_continued_and_lost_or_other_ones_are_named(serve, town, ragbed):
    waiting = threading.Event()
    server = serve(lambda body: {"text": town.reply(body), **({} if len(server.requests) < 4 else {"hold": waiting})})
    town.write([town.row(number) for number in range(12)])
    path = town.config(server.url, concurrency=2)
    child = started(path, server, 4, "--shard", "1/2")
    child.send_signal(signal.SIGKILL)
    child.communicate()
    waiting.set()
    shards = Shard(1, 2).folder(town.run), Shard(2, 2).folder(town.run)
    ragbed.refuses("merge", shards[0], says=["shard 2/2 missing"])
    assert ragbed("run", path, "--shard", "2/2")[0] == 0
    ragbed.refuses("merge", *shards, says=[str(shards[0]), "lacks"])
    assert not (town.run / "summary.json").exists()
    assert ragbed("run", path, "--shard", "1/2")[0] == 0
    assert ragbed("merge", *shards)[0] == 0
    other = town.config(server.url, seed=7, out=str(town.folder / "elsewhere"))
    assert ragbed("run", other, "--shard", "2/2")[0] == 0
    strange = Shard(2, 2).folder(town.folder / "elsewhere" / "town")
    ragbed.refuses("merge", shards[0], strange, says=[str(strange), "seed was 0, is 7"])
    ragbed.refuses("merge", *shards, strange, says=["are both shard 2/2"])
    town.write([town.row(number) for number in range(11)])
    fewer = town.config(server.url, out=str(town.folder / "fewer"))
    assert ragbed("run", fewer, "--shard", "2/2")[0] == 0
    ragbed.refuses("merge", shards[0], Shard(2, 2).folder(town.folder / "fewer" / "town"), says=["different questions"])
    ragbed.refuses("run", path, "--shard", "3/2", says=["--shard 3/2", "1/16"])
    ragbed.refuses("run", path, "--shard", "1/2", "--race", says=["race"])
    ragbed.refuses("run", path, "--shard", "1/2", "--dry-run", says=["--dry-run"])


def test_another_run_makes_way_for_a_merged_one_only_where_that_is_said(serve, town, ragbed, monkeypatch):
    server = serve(town.reply)
    assert ragbed("run", town.config(server.url))[0] == 0
    other = town.config(server.url, seed=7)
    for number in (1, 2):
        assert ragbed("run", other, "--shard", f"{number}/2")[0] == 0
    monkeypatch.chdir(f"{town.run}.shards")
    ragbed.refuses("merge", "1-of-2", "2-of-2", says=["seed was 0, is 7", "--fresh"])
    assert "seed: 0" in (town.run / "config.yaml").read_text()
    assert ragbed("merge", ".", "--fresh")[0] == 0
    assert ragbed("run", other)[0] == 0
    assert len(server.requests) == 6 + 6


def test_each_shard_has_its_share_of_budget_and_calls(serve, town, ragbed):
    server = serve(lambda body: {"text": town.reply(body), "delay": 0.01})
    town.write([town.row(number) for number in range(12)])
    path = town.config(server.url, concurrency=4, budget={"tokens": 12 * 712})
    for number in (1, 2):
        assert ragbed("run", path, "--shard", f"{number}/2")[0] == 0
        assert server.busiest == 2
    small = town.config(server.url, "small", concurrency=1, budget={"tokens": 6 * 712})
    ragbed.refuses("run", small, "--shard", "1/2", says=["the share of shard 1/2,", "records are kept", "tokens="])


@pytest.fixture
def pages(tmp_path):
    """Sixteen pages, some of equal text, and one that cannot be read."""
    folder = tmp_path / "pages"
    (folder / "more").mkdir(parents=True)
    for number in range(16):
        (folder / ("more" if number % 3 else "") / f"page-{number}.txt").write_text("word " * (number % 7 + 1) * 60)
    (folder / "broken.pdf").write_text("no PDF")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["hnsw", "rabitq"])
def test_a_merged_index_is_the_index_that_one_build_makes(pages, tmp_path, kind):
    settings = IndexSettings(vectors={"kind": kind}, chunker={"kind": "fixed", "size": 200, "overlap": 20})
    fields = {"page-0.txt": {"year": 1999}, "more/page-1.txt": {"year": 2000}}
    shards = [Shard(number, 3) for number in range(1, 4)]
    for shard in shards:
        build_index([pages], tmp_path / "idx", settings, embedder=Lengths(), metadata=fields, shard=shard)
    folders = [shard.folder(tmp_path / "idx") for shard in shards]
    report = merge_indexes(folders, tmp_path / "idx")
    assert (report.documents, report.embedded_now, len(report.skipped)) == (16, 0, 1)
    build_index([pages], tmp_path / "whole", settings, embedder=Lengths(), metadata=fields)
    merged, whole = ({path.name: path.read_bytes() for path in (tmp_path / one).iterdir()} for one in ("idx", "whole"))
    assert merged == whole


def test_a_shard_without_a_document_is_merged_too(tmp_path):
    page = tmp_path / "page.txt"
    page.write_text("one page")
    for number in (1, 2):
        build_index([page], tmp_path / "idx", embedder=Lengths(), shard=Shard(number, 2))
    folders = [Shard(number, 2).folder(tmp_path / "idx") for number in (1, 2)]
    assert sorted(Index.open(folder, Lengths()).manifest.chunks for folder in folders) == [0, 1]
    assert merge_indexes(folders, tmp_path / "idx").chunks == 1
    (hits,) = Index.open(tmp_path / "idx", Lengths()).search(["page"], 3)
    assert [hit.chunk.content for hit in hits] == ["one page"]


def test_shards_of_other_sources_or_settings_make_no_index(pages, tmp_path):
    def built(number, sources, settings=None):
        build_index(sources, tmp_path / "idx", settings, embedder=Lengths(), shard=Shard(number, 2))
        return Shard(number, 2).folder(tmp_path / "idx")

    folders = built(1, [pages]), built(2, [pages / "more"])
    with pytest.raises(IndexFolderError, match="made with different sources"):
        merge_indexes(folders, tmp_path / "idx")
    built(2, [pages], IndexSettings(titled=False))
    with pytest.raises(IndexFolderError, match="made with different settings"):
        merge_indexes(folders, tmp_path / "idx")
    with pytest.raises(IndexFolderError, match="shard 2/2 missing"):
        merge_indexes(folders[:1], tmp_path / "idx")
    build_index([pages], tmp_path / "whole", embedder=Lengths())
    with pytest.raises(IndexFolderError, match="whole is not a shard"):
        merge_indexes([folders[0], tmp_path / "whole"], tmp_path / "idx")
    assert not (tmp_path / "idx").exists()


@pytest.mark.slow
def test_the_local_launcher_makes_shards_in_processes_and_merges_them(serve, town, ragbed):
    server = serve(town.reply)
    path = town.config(server.url)
    run = ragbed.json("run", path, "--launcher", "local:2")
    assert [cell["n"] for cell in run["cells"]] == [6]
    assert len(server.requests) == 6
    assert (town.run / "report.html").is_file()
    broken = town.config(serve(lambda body: {"status": 401, "error": {"message": "no"}}).url, "broken")
    status, _, err = ragbed("run", broken, "--launcher", "local:2")
    assert (status, err.count("ragbed: "), "shards 1/2, 2/2 failed; finished work" in err) == (2, 2, True)
    ragbed.refuses("run", path, "--launcher", "slurm", says=["local:4"])


@LINUX
@pytest.mark.slow
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="a second process needs a second core")
def test_a_run_with_a_thousand_questions_in_flight_divides_itself_and_equals_an_undivided_one(serve, town, ragbed):
    town.write([town.row(number) for number in range(12)])
    path = town.config(serve(town.reply).url, concurrency=1024)
    status, _, err = ragbed("run", path, "--launcher", "local:1")
    assert (status, "processes ask" in err) == (0, False)
    summary = (town.run / "summary.json").read_bytes()
    assert "processes ask" not in ragbed("run", path)[2]
    status, _, err = ragbed("run", path, "--fresh")
    assert (status, "2 processes ask the questions" in err) == (0, True), err
    assert (town.run / "summary.json").read_bytes() == summary
    assert not town.run.with_name(f"{town.run.name}.shards").exists()
    assert "processes ask" not in ragbed("run", path, "--retry")[2]
    assert "processes ask" not in ragbed("run", path, "--limit", 10)[2]
    assert "processes ask" not in ragbed("run", path, "--fresh", "--budget", "seconds=600")[2]


@LINUX
@pytest.mark.slow
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="a second process needs a second core")
def test_a_divided_run_that_was_left_replaces_no_undivided_one(serve, town, ragbed):
    path = town.config(serve(town.reply).url, concurrency=1024)
    assert ragbed("run", path, "--shard", "1/2")[0] == 0
    assert ragbed("run", path, "--launcher", "local:1")[0] == 0
    assert "processes ask" not in ragbed("run", path)[2]
    assert town.run.with_name(f"{town.run.name}.shards").exists()


@pytest.mark.slow
@LINUX
@pytest.mark.parametrize(("ends", "status"), [
    (signal.SIGKILL, -9), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow)])
def test_a_launcher_that_is_ended_leaves_no_process(ends, status, serve, town):
    waiting = threading.Event()
    server = serve(lambda body: {"text": town.reply(body), "hold": waiting})
    launcher = started(town.config(server.url), server, 3, "--launcher", "local:2")
    shards = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
    launcher.send_signal(ends)
    launcher.communicate()
    assert (launcher.returncode, len(shards)) == (status, 2)
    assert all(asyncio.run(gone(int(pid))) for pid in shards)
    waiting.set()
