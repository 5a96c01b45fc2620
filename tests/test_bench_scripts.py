"""The timing scripts run; what they measure is not tested, for a test must not depend on the machine's load."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parent.parent / "bench"


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
def test_kinds_of_vector_index_stand_side_by_side():
    done = subprocess.run([sys.executable, BENCH / "stores.py", "--vectors", "600", "--dimensions", "16", "--clusters",
                           "6", "--queries", "9", "--kinds", "flat,hnsw,milvus/flat", "--json"],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    flat, graph, stored = json.loads(done.stdout)["kinds"]
    assert (flat["kind"], graph["kind"], flat["recall@10"], stored["recall@10"]) == ("flat", "hnsw", 1.0, 1.0)
    assert graph["file, MB"] > flat["file, MB"] > 600 * 16 * 4 / 1e6


@pytest.mark.slow
def test_bars_are_measured_by_the_commands_that_they_name():
    done = subprocess.run([sys.executable, BENCH / "bars.py", "--only", "`ragbed"], capture_output=True, text=True,
                          timeout=900)
    assert done.stdout.count("<= ") == 3, done.stderr
    assert "commit" in done.stdout.splitlines()[0]


@pytest.mark.parametrize("script", ["financebench_pages.py"])
def test_the_raw_data_is_where_it_is_said_to_be(script):
    asked = [sys.executable, BENCH / script]
    bare = {name: value for name, value in os.environ.items() if name != "RAGBED_DATA"}
    done = subprocess.run(asked, capture_output=True, text=True, timeout=120, env=bare)
    assert (done.returncode, done.stderr) == (1, "name the folder of the raw data with --data or RAGBED_DATA\n")
