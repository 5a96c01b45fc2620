"""The main job with the real local model: index, answers, report; again from the journal; nothing left behind."""
import json
import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
import yaml

from ragbed.experiments.guests.local_models import model_catalogue
from ragbed.strategies import CRESTS

pytestmark = [pytest.mark.slow, pytest.mark.skipif(
    model_catalogue.find_model_files(model_catalogue.entry_named("smollm2-135m")) is None,
    reason="smollm2-135m is not on this machine; run: ragbed models pull smollm2-135m")]


def run(config: Path, mark: str, *options: str) -> tuple[dict, str]:
    done = subprocess.run([sys.executable, "-m", "ragbed", "run", str(config), "--json", *options],
                          capture_output=True, text=True, env={**os.environ, "RAGBED_TEST_MARK": mark}, timeout=280)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def left_of(mark: str) -> list[str]:
    """The processes that inherited the mark and still run."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text())
        except OSError:
            continue  # ended meanwhile, or somebody else's
    return found


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for left processes in /proc")
def test_the_local_model_answers_over_real_pages_and_the_journal_answers_again(tmp_path):
    config, mark = tmp_path / "demo.yaml", uuid.uuid4().hex
    config.write_text(yaml.safe_dump({
        "out": str(tmp_path), "benchmark": {"kind": "demo", "limit": 1}, "reasoning": list(CRESTS),
        "conditions": "retrieved", "retriever": {"kind": "bm25", "k": 2, "build": {"embedder": "none"}},
        "limits": {"max_tokens": 32}}))
    first, _ = run(config, mark)
    assert [cell["reasoning"] for cell in first["cells"]] == list(CRESTS)
    assert {cell["model"] for cell in first["cells"]} == {"smollm2-135m"}
    assert all(cell["n"] == 1 for cell in first["cells"])
    assert all(cell["usage"]["completion_tokens"] > 0 for cell in first["cells"])
    assert all(not cell["outcomes"]["error"] for cell in first["cells"])
    assert any("135 million parameters" in note for note in first["notes"])
    assert "smollm2-135m" in (tmp_path / "demo" / "report.html").read_text()
    assert left_of(mark) == []
    before = (tmp_path / "demo" / "summary.json").read_bytes()
    again, told = run(config, mark, "--journal", "replay")
    assert again == first
    assert (tmp_path / "demo" / "summary.json").read_bytes() == before
    assert left_of(mark) == []
    assert "Traceback" not in told
