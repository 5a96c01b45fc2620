"""Sixteen shards against one: an index over the 5,183 abstracts of SciFact, a run of 1,000 questions in five cells."""
import json
import shutil
import signal

import pytest
from embedders import Words
from test_run import FIVE, started

from ragbed.documents.shards import Shard
from ragbed.experiments.guests.cluster.merge_shards import merge_indexes
from ragbed.retrieval import Index, IndexSettings, build_index

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_cache")]
SHARDS = [Shard(number, 16) for number in range(1, 17)]


def test_sixteen_shards_of_an_index_find_what_one_build_finds(data, tmp_path, monkeypatch):
    (tmp_path / "pages").mkdir()
    rows = [json.loads(line) for line in (data / "scifact" / "corpus.jsonl").read_text().splitlines()]
    for row in rows:
        (tmp_path / "pages" / f"{row['_id']}.txt").write_text(f"{row['title']}\n\n{row['text']}")
    settings = IndexSettings(titled=False)
    for shard in SHARDS:
        monkeypatch.setenv("RAGBED_CACHE", str(tmp_path / f"cache-{shard.number}"))  # as on machines of their own
        build_index([tmp_path / "pages"], tmp_path / "idx", settings, embedder=Words(10_000), shard=shard)
    merged = merge_indexes([shard.folder(tmp_path / "idx") for shard in SHARDS], tmp_path / "idx")
    assert (merged.documents, merged.embedded_now) == (len(rows), 0)
    build_index([tmp_path / "pages"], tmp_path / "whole", settings, embedder=Words(10_000))
    queries = [json.loads(line)["text"] for line in (data / "scifact" / "queries.jsonl").read_text().splitlines()[:300]]
    found = [[[(hit.chunk.id, hit.score) for hit in hits] for hits in Index.open(tmp_path / name, Words(10_000)).search(
        queries, 10)] for name in ("idx", "whole")]
    assert found[0] == found[1]


def test_sixteen_shards_of_a_run_one_killed_one_lost_one_of_other_settings_have_the_summary_of_one_run(
        serve, town, ragbed):
    town.write([town.row(number) for number in range(1000)])
    server = serve(town.reply)
    path = town.config(server.url, reasoning=FIVE, concurrency=64)
    child = started(path, server, 100, "--shard", "4/16")
    child.send_signal(signal.SIGKILL)
    child.communicate()
    folders = [shard.folder(town.run) for shard in SHARDS]
    for shard in SHARDS:
        if shard.number != 4:
            assert ragbed("run", path, "--shard", shard)[0] == 0
    ragbed.refuses("merge", *folders, says=[str(folders[3]), "lacks"])
    assert ragbed("run", path, "--shard", SHARDS[3])[0] == 0
    shutil.move(folders[8], town.folder / "lost")
    ragbed.refuses("merge", *folders[:8], *folders[9:], says=["shard 9/16 missing"])
    assert ragbed("run", town.config(server.url, reasoning=FIVE, seed=1), "--shard", "9/16")[0] == 0
    ragbed.refuses("merge", *folders, says=[str(folders[8]), "seed was 0, is 1"])
    shutil.rmtree(folders[8])
    shutil.move(town.folder / "lost", folders[8])
    assert ragbed("merge", f"{town.run}.shards")[0] == 0
    merged, hashes = (town.run / "summary.json").read_bytes(), town.hashes()
    assert len(hashes) == 5000
    assert ragbed("run", town.config(server.url, reasoning=FIVE, concurrency=64), "--fresh")[0] == 0
    assert (town.run / "summary.json").read_bytes() == merged
    assert town.hashes() == hashes
