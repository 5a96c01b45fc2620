"""A run that names a benchmark's kind and folder, and nothing else of it, shows that benchmark's columns."""
import json
from pathlib import Path

import pytest
import yaml

from ragbed.experiments import BENCHMARKS
from ragbed.experiments.terminal.run_tables import run_table

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize("kind", ["hotpotqa", "two_wiki", "musique", "morehopqa", "multihop_rag", "clapnq", "squad2",
                                  "rgb", "financebench", "korean_rag", "beir", "trec"])
def test_name_and_folder_are_enough(ragbed, serve, tmp_path, kind):
    server = serve(lambda body: "<Answer>1811 [1]</Answer>")
    config = tmp_path / "run.yaml"
    config.write_text(yaml.safe_dump({"name": kind, "out": str(tmp_path), "models": f"{server.url}#m",
                                      "benchmark": {"kind": kind, "path": str(DATA / kind)}}))
    status, out, err = ragbed("run", config)
    assert status == 0, err
    assert ("scores only searches, so the model's answers have no score" in err) == (kind in ("beir", "trec"))
    summary = json.loads((tmp_path / kind / "summary.json").read_text())
    columns = list(BENCHMARKS[kind].scheme.columns)
    assert summary["columns"] == columns
    named = {name for column in columns for name in column.split(" / ")}
    assert all(named <= set(cell["metrics"]) for cell in summary["cells"])
    header = [cell.removesuffix(" (lexical)") for cell in run_table(summary["cells"], columns)[0]]
    assert {column.replace("_", " ") for column in columns} <= set(header)
    assert "score [95 % CI]" in out
