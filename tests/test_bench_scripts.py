"""The timing scripts run; what they measure is not tested, for a test must not depend on the machine's load."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ragbed.agents import catalogue
from ragbed.strategies import CRESTS

BENCH = Path(__file__).parent.parent / "bench"
WEIGHTS = (entry := catalogue.entry_named("smollm2-135m")) and catalogue.find(entry)


@pytest.mark.slow
def test_overhead_sets_ragbed_beside_its_peers():
    done = subprocess.run([sys.executable, BENCH / "overhead.py", "--questions", "20", "--rounds", "1", "--json"],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    figures = report["contestants"]
    assert {"openai_client", "langgraph_loop", "ragbed", "ragbed_replay"} <= figures.keys()
    assert figures["langgraph_loop"]["ratio"] == 1.0
    assert all(one["processor_ms"] > 0 and one["questions_per_second"] > 0 for one in figures.values())
    assert report["machine"]["cores"] >= 1


@pytest.mark.slow
def test_scoring_times_every_record():
    done = subprocess.run([sys.executable, BENCH / "scoring.py", "--records", "30", "--json"], capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["records"] == 30
    for taken in (report["processor_seconds"], report["clock_seconds"]):
        assert taken["both"] >= taken["aggregating"] >= 0


@pytest.mark.slow
def test_kinds_of_vector_index_stand_side_by_side():
    done = subprocess.run([sys.executable, BENCH / "stores.py", "--vectors", "600", "--dimensions", "16", "--clusters",
                           "6", "--queries", "9", "--kinds", "flat,ivf,milvus/flat", "--json"],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    flat, lists, stored = json.loads(done.stdout)["kinds"]
    assert (flat["kind"], lists["kind"], flat["recall@10"], stored["recall@10"]) == ("flat", "ivf", 1.0, 1.0)
    assert lists["file, MB"] > flat["file, MB"] > 600 * 16 * 4 / 1e6


@pytest.mark.parametrize("script", ["financebench_pages.py", "reading.py"])
def test_the_raw_data_is_where_it_is_said_to_be(script):
    asked = [sys.executable, BENCH / script]
    bare = {name: value for name, value in os.environ.items() if name != "RAGBED_DATA"}
    done = subprocess.run(asked, capture_output=True, text=True, timeout=120, env=bare)
    assert (done.returncode, done.stderr) == (1, "name the folder of the raw data with --data or RAGBED_DATA\n")


@pytest.mark.slow
@pytest.mark.skipif(not WEIGHTS, reason="the local model is not here; run: ragbed models pull smollm2-135m")
def test_strategies_after_the_first_have_only_what_follows_the_shared_prefix_computed():
    done = subprocess.run([sys.executable, BENCH / "prefix.py", "--chunks", "1", "--max-tokens", "4", "--json"],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    first, *others = json.loads(done.stdout)
    assert (first["strategy"], first["calls"], first["computed"]) == ("direct", 1, first["sent"])
    assert [row["strategy"] for row in others] == list(CRESTS)[1:]
    assert all(0 < row["computed"] <= row["after"] < row["sent"] for row in others)


@pytest.mark.slow
def test_a_matrix_of_strategies_and_pipelines_is_killed_and_continued_to_the_same_bytes():
    questions = BENCH.parent / "tests" / "data" / "hotpotqa_195" / "hotpot_dev_distractor_v1.jsonl"
    done = subprocess.run([sys.executable, BENCH / "pipeline_matrix.py", questions, "--questions", "6", "--kills", "1",
                           "--json"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["same bytes from the journal"]
    assert report["same bytes as never killed"]
    assert report["cells"] == 6
    assert 30 <= report["calls"] < 60  # those under way when it was killed are asked twice
    assert "none really different" in report["output"]


@pytest.mark.slow
def test_growth_measures_each_step_by_itself_at_each_size():
    done = subprocess.run([sys.executable, BENCH / "scaling.py", "--sizes", "100", "300", "--json"],
                          capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    texts, more = (row for row in rows if row["step"] == "texts")
    assert (texts["size"], texts["disk_mb"], more["disk_mb"]) == (100, 0.1, 0.2)  # 60,000 and 180,000 bytes
    assert {row["step"] for row in rows} >= {"index: merge of 16 shards", "bm25: build", "run", "report", "compare"}
    assert all(row["processor_s"] > 0 and row["memory_mb"] > 0 for row in rows)
