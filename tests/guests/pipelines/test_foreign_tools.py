"""Inspect, ragas, RAGChecker and the writer of TREC RAG's runs read what ragbed exports, and Inspect reads its logs for
ragbed. They pull much, so they have an environment of their own: RAGBED_TOOLS names the Python of that, made as
`bench/foreign_predictions.py` says."""
import json
import os
import subprocess
import sys

import pytest
from test_predictions import BY_HAND, FILES, OUTCOMES, TWELVE, figures, outcomes

PYTHON = os.environ.get("RAGBED_TOOLS")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(
    not PYTHON, reason="no tools: RAGBED_TOOLS names a Python with inspect-ai, ragas, ragchecker and pyragnarok")]
# ragbed with the packages of that environment behind its own
BEHIND = "import sys; sys.path.append(sys.argv.pop(1)); from ragbed.experiments.cli import main; main()"


def python(interpreter, code, *args):
    done = subprocess.run([interpreter, "-c", code, *map(str, args)], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join([os.getcwd(), "bench"])})
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def packages():
    return python(PYTHON, "import sysconfig; print(sysconfig.get_path('purelib'))").strip()


@pytest.fixture(scope="module")
def ragbed_with(packages):
    return lambda *args: python(sys.executable, BEHIND, packages, *args)


def cells(ragbed_with, folder, file, name):
    said = ragbed_with("import", "inspect", file, "--benchmark", *TWELVE, "--out", folder, "--name", name, "--json")
    return json.loads(said)["cells"]


@pytest.mark.parametrize("ending", ["eval", "json"])
def test_a_log_of_inspect_gives_the_figures_counted_by_hand_and_comes_back(ragbed_with, tmp_path, ending):
    first, *more = cells(ragbed_with, tmp_path, FILES / f"inspect.{ending}", "theirs")
    assert (figures(first), outcomes(first)) == (pytest.approx(BY_HAND), OUTCOMES)
    assert first["usage"]["prompt_tokens"] == 800
    assert [outcomes(cell) for cell in more] == ([{"refused": 8, "error": 4}] if ending == "eval" else [])
    log = tmp_path / f"ours.{ending}"
    ragbed_with("export", tmp_path / "theirs", log, "--as", "inspect", *(["--cell", "repeat 0"] if more else []))
    again, = cells(ragbed_with, tmp_path, log, "again")
    assert (figures(again), outcomes(again)) == (pytest.approx(BY_HAND), OUTCOMES)
    assert again["usage"]["prompt_tokens"] == 800


TELLS = """
import sys
sys.path.append(sys.argv.pop(1))
from pathlib import Path
from ragbed.experiments.guests.pipelines.predictions import read_predictions
from ragbed.documents import BenchmarkError
for file in map(Path, sys.argv[1:]):
    try:
        print(list(read_predictions("inspect", file)))
    except BenchmarkError as error:
        print(error)
"""


def test_a_damaged_log_is_a_one_line_error(packages, tmp_path):
    whole = (FILES / "inspect.eval").read_bytes()
    logs = {"0.eval": b"", "1.eval": b"PK", "2.eval": whole[:5_000],
            "3.eval": whole[:9_000] + b"0" * 500 + whole[9_500:], "4.json": b"[]", "5.json": b"{}",
            "6.json": b'{"version": 2, "samples": 3}', "7.json": b"[" * 5_000}
    for name, content in logs.items():
        (tmp_path / name).write_bytes(content)
    said = python(sys.executable, TELLS, packages, *(tmp_path / name for name in logs)).splitlines()
    assert [line.partition(": not a readable Inspect log: ")[0] for line in said] == [
        str(tmp_path / name) for name in logs]


READS = {
    "ragas": "from ragas import EvaluationDataset; made = EvaluationDataset.from_jsonl(sys.argv[1]);"
             "print([made[0].response, made[0].retrieved_context_ids, len(made)])",
    "ragchecker": "from foreign_predictions import ragchecker_container; from pathlib import Path;"
                  "made = ragchecker_container().RAGResults.from_json(Path(sys.argv[1]).read_text()).results;"
                  "print([made[0].response, [one.doc_id for one in made[0].retrieved_context], len(made)])",
    "trec_rag": "from ragnarok.data import read_results_from_file; made = read_results_from_file(sys.argv[1]);"
                "print([f'{made[0].answer[0].text} {[n + 1 for n in made[0].answer[0].citations]}',"
                " made[0].references, len(made)])"}


@pytest.mark.parametrize(("tool", "ending"), [("ragas", "jsonl"), ("ragchecker", "json"), ("trec_rag", "jsonl")])
def test_a_tool_reads_what_is_exported_for_it(ragbed, tmp_path, tool, ending):
    ragbed("import", "trec_rag", FILES / "trec_rag.jsonl", "--benchmark", *TWELVE, "--out", tmp_path,
           "--name", "theirs")
    ragbed("export", tmp_path / "theirs", tmp_path / f"out.{ending}", "--as", tool)
    said = python(PYTHON, f"import sys; {READS[tool]}", tmp_path / f"out.{ending}").splitlines()[-1]
    assert said == "['Raffaella Reggi [1, 2]', ['raffaella-reggi.html', 'lucie-hradecka.html'], 12]"
