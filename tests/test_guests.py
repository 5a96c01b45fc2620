"""An installed distribution extends ragbed by one entry point; one that cannot be used does not stop anything."""
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from scripted_server import ScriptedServer

# What a stranger writes: a module of about thirty lines, and one line of entry points.
FERRIES = '''
from typing import Literal
import typer
from ragbed.experiments.analysis.view import View
from ragbed.experiments.benchmarks.base import About, Selection
from ragbed.experiments.metrics.metric import Metric, MetricGroup
from ragbed.experiments.question import Benchmark, Question
from ragbed.guests import Guest

class Ferries(Selection):
    """Ask when two ferries leave."""
    about = About(paper="none", licence="CC0", size="2 questions", get="this package")
    kind: Literal["ferries"] = "ferries"
    path: str = "here"

    def whole(self):
        return Benchmark("ferries", tuple(Question(port, f"When does the ferry leave {port}?", ("noon",), True)
                                          for port in ("Oslo", "Bergen")), {})

def next_ferry(port: str) -> str:
    """Return when the next ferry leaves a port."""
    return f"{port}: noon"

def show(port: str) -> None:
    """Show when the next ferry leaves a port."""
    typer.echo(next_ferry(port))

def check_knots(value: object) -> int:
    if not isinstance(value, int):
        raise ValueError("expected a number of knots")
    return value

def parse(data, source):
    return f"<p>{data.decode()}</p>"

def longest(run):
    return [View("longest", "Longest answers", ("cell", "characters"), tuple(
        (row["id"], max(len(result.text) for result in run.results[row["id"]])) for row in run.cells))]

LENGTH = MetricGroup((Metric("length", "characters of the answer", high=None),),
                     lambda item, scoring: {"length": float(len(item.text))}, material=lambda result, is_right: True)
GUEST = Guest("ferries", {
    "command": {"ferry": "ferries:show"}, "benchmark": {"ferries": "ferries:Ferries"},
    "metric": {"length": "ferries:LENGTH"}, "analysis": {"longest": "ferries:longest"},
    "parser": {".ferry": "ferries:parse"}, "tool": {"next_ferry": "ferries:next_ferry"},
    "setting": {"knots": "ferries:check_knots"}})
'''
# Guests with a defect, each in a distribution of its own.
BROKEN = {"absent": "from ragbed.guests import Guest\nimport no_such_module\n",
          "untrue": "GUEST = 7\n",
          "slotless": "from ragbed.guests import Guest\nGUEST = Guest('slotless', {'commands': {}})\n",
          "late": "from ragbed.guests import Guest\nGUEST = Guest('late', {slot: {'late': 'late:gone'} for slot in ("
                  "'command', 'metric', 'analysis', 'benchmark', 'pipeline', 'setting')})\n",
          "rival": "from ragbed.guests import Guest\nGUEST = Guest('rival', {'command': {'run': 'rival:GUEST'}})\n"}
# Runs several commands in one process, and prints what each wrote and its exit status as one line of JSON.
SCRIPT = """
import contextlib, io, json, sys
from ragbed.experiments.cli import main
for argv in json.loads(sys.argv[1]):
    out, sys.argv = io.StringIO(), ["ragbed", *argv]
    with contextlib.redirect_stdout(out):
        try:
            status = main() or 0
        except SystemExit as end:
            status = end.code or 0
    print(json.dumps([status, out.getvalue()]))
"""


def install(folder, **modules):
    """Install each module as a distribution with one entry point."""
    for name, text in modules.items():
        info = folder / f"{name}-1.dist-info"
        info.mkdir(parents=True)
        (folder / f"{name}.py").write_text(text)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[ragbed.guests]\n{name} = {name}:GUEST\n")


def carry_out(folder, site, *commands):
    """Run commands with the installed guests; return status and output of each, and what was written to stderr."""
    path = os.pathsep.join([str(site), str(Path(__file__).parent.parent)])
    done = subprocess.run([sys.executable, "-c", SCRIPT, json.dumps([[*map(str, one)] for one in commands])],
                          capture_output=True, text=True, cwd=folder, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """What the commands write with the guest `ferries` installed, by name."""
    folder = tmp_path_factory.mktemp("ferries")
    install(folder / "site", ferries=FERRIES)
    (folder / "first.ferry").write_text("Ferries leave Oslo at noon.")
    (folder / "slow.yaml").write_text("benchmark: {kind: ferries}\nmodels: openai:m\nknots: fast\n")
    server = ScriptedServer(lambda body: "<Answer>noon</Answer>")
    commands = {"help": ["help", "all"], "guests": ["list", "guests", "--json"], "command": ["ferry", "Oslo"],
                "schema": ["schema"],
                "benchmarks": ["list", "benchmarks", "--json"], "metrics": ["list", "metrics", "--json"],
                "index": ["index", "first.ferry", "--out", "idx", "--embedder", "none", "--json"],
                "run": ["run", "ferries", "--model", f"{server.url}#m", "--condition", "closed-book",
                        "--set", "knots=12", "--json"], "wrong": ["run", "slow.yaml"],
                "report": ["report", "runs/ferries"]}
    found, stderr = carry_out(folder, folder / "site", *commands.values())
    server.close()
    return {**dict(zip(commands, found, strict=True)), "stderr": stderr,
            "page": (folder / "runs" / "ferries" / "report.html").read_text(encoding="utf-8"),
            "config": (folder / "runs" / "ferries" / "config.yaml").read_text()}


def test_it_is_listed_with_what_it_adds(outputs):
    row, = (row for row in json.loads(outputs["guests"][1])["guests"] if row["name"] == "ferries")
    assert row["from"] == "ferries"
    assert row["adds"].startswith("command: ferry; benchmark: ferries; metric: length; ")


def test_its_command_runs_and_is_in_the_help(outputs):
    assert outputs["command"] == [0, "Oslo: noon\n"]
    assert "Show when the next ferry leaves a port." in outputs["help"][1]


def test_its_benchmark_and_metric_are_listed_and_in_the_schema(outputs):
    benchmark, = (row for row in json.loads(outputs["benchmarks"][1])["benchmarks"] if row["name"] == "ferries")
    assert benchmark["is"] == "Ask when two ferries leave."
    assert "length" in {row["name"] for row in json.loads(outputs["metrics"][1])["metrics"]}
    schema = json.loads(outputs["schema"][1])
    assert "Ferries" in schema["$defs"]
    assert "knots" in schema["properties"]


def test_its_questions_are_asked_scored_by_its_metric_and_shown_by_its_analysis(outputs):
    summary = json.loads(outputs["run"][1])
    cell, = summary["cells"]
    assert (cell["n"], cell["metrics"]["em"]["mean"], cell["metrics"]["length"]["mean"]) == (2, 1.0, 4.0)
    assert [view["rows"][0][1] for view in summary["views"] if view["name"] == "longest"] == [4]
    assert "Longest answers" in outputs["page"]


def test_its_setting_is_kept_with_the_run_and_checked(outputs):
    assert "knots: 12" in outputs["config"].splitlines()
    assert outputs["wrong"][0] == 2
    assert "ragbed: slow.yaml: knots: expected a number of knots" in outputs["stderr"]


def test_its_parser_reads_files_for_an_index(outputs):
    assert json.loads(outputs["index"][1])["documents"] == 1


async def test_its_tool_is_offered_to_mcp_clients(tmp_path, monkeypatch):
    pytest.importorskip("mcp")
    from ragbed import guests
    from ragbed.experiments.guests.access.access import Access
    from ragbed.experiments.guests.serving.mcp_server import create_mcp_server
    from ragbed.experiments.guests.serving.state import ServerState

    (tmp_path / "ferries.py").write_text(FERRIES)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(guests, "installed", lambda: (guests.Guest("ferries", {
        "tool": {"next_ferry": "ferries:next_ferry"}}),))
    sessions = SimpleNamespace(access=Access((), lambda owner: {}))
    server = create_mcp_server(ServerState({}, sessions, None, None))
    assert "next_ferry" in {tool.name for tool in await server.list_tools()}


@pytest.mark.slow
def test_a_broken_guest_is_one_line_and_everything_else_works(tmp_path):
    install(tmp_path / "site", ferries=FERRIES, **BROKEN)
    (ferry, metrics, schema, late, run), stderr = carry_out(
        tmp_path, tmp_path / "site", ["ferry", "Oslo"], ["list", "metrics", "--json"], ["schema"], ["late"], ["run"])
    assert (ferry, metrics[0], schema[0], late[0], run[0]) == ([0, "Oslo: noon\n"], 0, 0, 2, 2)
    assert "late" not in json.loads(schema[1])["properties"]
    lines = [line for line in stderr.splitlines() if "is left out" in line]
    assert "guest absent of absent is left out: " in lines[0]
    assert "ModuleNotFoundError: No module named 'no_such_module'" in lines[0]
    for said in ("guest untrue of untrue is left out: untrue:GUEST is not a ragbed.guests.Guest",
                 "guest slotless of slotless is left out: there is no slot 'commands'; the slots are command, ",
                 "command 'run' of a guest is left out: ragbed has a command of this name",
                 "metric 'late' is left out: guest late:gone: AttributeError", "pipeline 'late' is left out: ",
                 "benchmark 'late' is left out: ", "setting 'late' is left out: "):
        assert sum(said in line for line in lines) == 1, said
    assert "ragbed: guest late:gone: AttributeError" in stderr  # the command `late` itself


def test_a_guest_cannot_replace_a_metric_of_ragbed(tmp_path, monkeypatch, caplog):
    from ragbed import guests
    from ragbed.experiments.metrics.scoring import GROUPS, collect_groups

    (tmp_path / "takeover.py").write_text(
        "from ragbed.experiments.metrics.metric import Metric, MetricGroup\n"
        "def score(item, scoring):\n    return {'em': 0.5}\n"
        "OWN = MetricGroup((Metric('own_length', 'length', 'all questions'),), score)\n"
        "EM = MetricGroup((Metric('em', 'always a half', 'all questions'),), score)\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(guests, "installed", lambda: (guests.Guest("takeover", {"metric": {
        "overlap": "takeover:OWN", "halves": "takeover:EM", "pi": "math:pi", "lengths": "takeover:OWN"}}),))
    groups = collect_groups()
    assert groups["overlap"] is GROUPS["overlap"]
    assert {"halves", "pi"} & groups.keys() == set()
    assert [metric.name for metric in groups["lengths"].metrics] == ["own_length"]
    assert [message.partition(" is left out: ")[0] for message in caplog.messages] == [
        "metric 'overlap'", "metric 'halves'", "metric 'pi'"]
