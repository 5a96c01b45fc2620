"""A run that names a benchmark's kind and folder, and nothing else of it, shows that benchmark's columns."""
from pathlib import Path

import pytest
import yaml

from experiments.benchmarks import BENCHMARKS

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize("kind", ["hotpotqa", "two_wiki", "musique", "morehopqa", "multihop_rag", "clapnq", "squad2",
                                  "rgb", "financebench", "beir", "trec"])
def test_name_and_folder_are_enough(ragbed, serve, tmp_path, kind):
    server = serve(lambda body: "<Answer>1811 [1]</Answer>")
    config = tmp_path / "run.yaml"
    config.write_text(yaml.safe_dump({"name": kind, "out": str(tmp_path), "models": f"{server.url}#m",
                                      "benchmark": {"kind": kind, "path": str(DATA / kind)}}))
    status, out, err = ragbed("run", config)
    assert status == 0, err
    table = out.split("\n\n")[0].replace("_", " ")
    names = [name for column in BENCHMARKS[kind].scheme.columns for name in column.replace("_", " ").split(" / ")]
    assert [name for name in names if name not in table] == []
    assert "answered" in table
