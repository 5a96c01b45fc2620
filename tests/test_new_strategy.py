"""`ragbed new strategy` writes a strategy that keeps every promise and runs, and the page on strategies knows all."""
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ragbed.strategies import HISTORY, REASONING, RETRIEVAL

DOCS = (Path(__file__).parent.parent / "docs" / "strategies.md").read_text(encoding="utf-8")


@pytest.fixture
def empty(tmp_path, monkeypatch):
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def reply(body):
    return "NOTHING" if "missing" in body["messages"][-1]["content"] else "<Answer>7 [1]</Answer>"


@pytest.mark.slow
def test_a_new_strategy_keeps_every_promise_and_is_run_by_the_commands_that_are_printed(empty, ragbed, serve):
    status, out, _ = ragbed("new", "strategy", "look_twice")
    assert status == 0
    assert sorted(path.name for path in empty.iterdir()) == ["look_twice.py", "test_look_twice.py"]
    check, run, report = [line.split()[1:] for line in out.splitlines() if line.startswith("  ragbed ")]
    status, told, _ = ragbed(*check, "--json")
    assert (status, json.loads(told)["passed"]) == (0, True)
    status, out, err = ragbed(*run, "--condition", "closed-book", "--model", f"{serve(reply).url}#m")
    assert status == 0, err
    assert ragbed(*report)[0] == 0
    found = json.loads((empty / "runs" / "look_twice" / "summary.json").read_text())["cells"]
    assert [row["reasoning"] for row in found] == ["look_twice", "direct"]


@pytest.mark.slow
@pytest.mark.parametrize("options", [
    pytest.param([], id="reasoning"), pytest.param(["--retrieval"], id="retrieval", marks=pytest.mark.slow)])
def test_a_new_strategy_is_tested_by_the_tests_that_come_with_it(empty, ragbed, options):
    assert ragbed("new", "strategy", "look_wide", *options)[0] == 0
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "test_look_wide.py", "-p", "no:cacheprovider"],
                          capture_output=True, text=True, check=False,
                          env={"PYTHONPATH": str(Path(__file__).parent.parent), "PYTHONDONTWRITEBYTECODE": "1",
                               "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
    assert "2 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(("name", "said"), [
    ("Look", "lower-case"), ("look-twice", "lower-case"), ("../x", "lower-case"), ("test_x", "is not a strategy name"),
    ("direct", "a built-in strategy"), ("hyde", "a built-in strategy"), ("json", "a Python module"),
    ("there", "there.py exists")])
def test_a_name_that_will_not_do_is_refused_and_nothing_is_written(empty, ragbed, name, said):
    (empty / "there.py").write_text("mine")
    ragbed.refuses("new", "strategy", name, says=[said])
    assert [path.name for path in empty.iterdir()] == ["there.py"]
    assert (empty / "there.py").read_text() == "mine"


@pytest.mark.slow
def test_a_strategy_that_breaks_a_promise_is_told_where_with_status_1(empty, ragbed):
    (empty / "bad.py").write_text("from ragbed import Task\n\ndef recipe(task: Task):\n    yield task.id\n")
    status, out, _ = ragbed("check", "strategy", "bad.py:recipe")
    assert status == 1
    assert "protocol: bad.py:recipe: the strategy yielded 'goldhush-question'; yield searches" in out
    ragbed.refuses("check", "strategy", "none.py:recipe", says=["none.py: no such file"])
    ragbed.refuses("check", "strategy", "[a]", says=["expected a name from `ragbed list strategies`"])


def test_the_page_on_strategies_has_every_strategy_and_no_other():
    parts = re.split(r"^### (?:Retrieval|History)$", DOCS.partition("### The rules")[0], flags=re.MULTILINE)
    row = re.compile(r"^\| `(\w+)`(?: \([^|]*\))? \|", re.MULTILINE)  # a name, and the strategy inside by default
    named = [sorted(row.findall(part.partition("### Agents")[0])) for part in parts]
    assert named == [sorted(REASONING), sorted(RETRIEVAL), sorted(HISTORY)]


def test_the_settings_on_the_page_are_settings(tmp_path):
    import yaml

    from ragbed.experiments.settings.file import read_runs
    text = re.search(r"```yaml\n# compare.yaml\n(.*?)```", DOCS, re.DOTALL).group(1)
    path = tmp_path / "compare.yaml"
    path.write_text(text)
    run, = read_runs(path)
    assert len(run.reasoning) == 2 + 3 + 1
    assert {"kind": "corrective", "over": "hyde"} in [one.spec for one in run.retrieval]
    assert yaml.safe_load(text)["answer_formats"] == run.answer_formats


def test_the_schema_says_what_each_strategy_may_be_given(ragbed):
    schema = json.loads(ragbed("schema")[1])
    strategies = schema["$defs"]["reasoning_strategy"]["anyOf"]
    assert strategies[0]["enum"] == list(REASONING)
    sampled = next(one for one in strategies if one.get("properties", {}).get("kind", {}).get("const") ==
                   "self_consistency")
    assert sampled["properties"]["of"]["anyOf"][0] == {"$ref": "#/$defs/reasoning_strategy"}
    assert sampled["properties"]["samples"]["anyOf"][0] == {"default": 5, "maximum": 100, "minimum": 1,
                                                            "type": "integer"}
    assert {"$ref": "#/$defs/reasoning_strategy"} in schema["properties"]["reasoning"]["anyOf"]
