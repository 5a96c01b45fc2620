"""A strategy of one's own comes from a file or from an installed package, is measured beside the others, and is
executed where the user names it alone."""
import json
import shutil
import sys

import pytest
import yaml

import ragbed
from ragbed.documents import SettingsError
from ragbed.experiments import read_settings
from ragbed.experiments.settings.file import read_runs
from ragbed.strategies import Task, parse_strategy

MINE = '''
"""Asks twice."""
from typing import Annotated
from pydantic import Field
from ragbed.strategies.answering import draft, ask_for_answer
from ragbed.strategies.types import Decision, Gathering, Recipe, Search, Task

def recipe(task: Task, *, times: Annotated[int, Field(ge=1, le=3)] = 1, words: list[str] = []) -> Recipe:
    """Searches, makes up its mind, and answers."""
    evidence = yield from task.gather(task.question)
    yield Decision("looks again", f"{times} times")
    for turn in range(times):
        evidence = yield from task.gather(f"{task.question} {turn}")
    return (yield from draft(ask_for_answer(task, "Answer as my own strategy does.", evidence), task))

def gathers(task: Task, query: str) -> Gathering:
    """Searches once."""
    return (yield Search(query))

def plain(task):
    return None

def late(task: Task, times: int = 3):
    yield

def bare(task: Task, *, times=3):
    yield

def odd(task: Task, *, json: int = 3):
    yield

async def waits(task: Task):
    yield
'''


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A file of one's own in another folder, which is the current one."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    path = folder / "mine.py"
    path.write_text(MINE)
    return path


def test_a_strategy_of_a_file_has_settings_a_label_and_the_hash_of_its_source(mine):
    found = parse_strategy("reasoning", {"kind": "mine.py:recipe", "times": "2"})
    assert (found.spec, found.label) == ({"kind": "mine.py:recipe", "times": 2}, "mine(times=2)")
    assert parse_strategy("reasoning", {"kind": "mine.py:recipe", "times": 1}).spec == "mine.py:recipe"
    assert list(found.sources) == ["mine.py:recipe"]
    recipe = found.function(Task("q", "Who?", parse_strategy("retrieval", "once").function))
    assert next(recipe).query == "Who?"


def test_a_plug_in_is_part_of_other_strategies_and_keeps_its_name_apart(mine):
    within = parse_strategy("reasoning", {"kind": "self_consistency", "of": "mine.py:recipe", "samples": 3})
    assert within.label == "self_consistency(mine, samples=3)"
    assert list(within.sources) == ["mine.py:recipe"]
    assert within.files == ("mine.py:recipe",)
    (mine.parent / "direct.py").write_text(MINE)
    assert parse_strategy("reasoning", "direct.py:recipe").label == "direct.py"
    assert parse_strategy("reasoning", "mine.py:recipe").label == "mine"


def test_settings_that_were_checked_are_taken_as_they_are_and_nothing_is_executed(mine):
    said = parse_strategy("reasoning", {"kind": "mine.py:recipe", "times": 2}).spec
    mine.write_text("raise SystemExit")
    other = mine.with_name("other.py")
    other.write_text("raise SystemExit")
    found = parse_strategy("reasoning", {**said, "kind": "other.py:recipe"}, execute=False)
    assert (found.label, found.has_plugins, found.files) == ("other(times=2)", True, ("other.py:recipe",))
    sampled = {"kind": "self_consistency", "of": "other.py:recipe", "samples": 3}
    within = parse_strategy("reasoning", sampled, execute=False)
    assert within.label == "self_consistency(other, samples=3)"
    with pytest.raises(SettingsError, match=r"other\.py: other\.py:1: SystemExit"):
        found.loaded()


@pytest.mark.parametrize(("kind", "said"), [
    ("none.py:recipe", "none.py: no such file; a path is relative to the current folder"),
    ("mine.py:absent", "the file has no function 'absent'; its reasoning strategies: recipe, bare, odd"),
    ("mine.py", "name its function too, as in mine.py:recipe"),
    ("mine.py:plain", "plain is a function without a yield; a recipe yields what it asks for"),
    ("mine.py:MINE_TOO", "no function 'MINE_TOO'"),
    ("mine.py:Field", "Field is a function without a yield"),
    ("mine.py:waits", "it is async; a recipe must be a plain generator"),
    ("mine.py:gathers", "it takes task and query, as retrieval strategies do; name it under retrieval"),
    ("mine.py:late", "expected def late(task, *, ...), its settings after the star, not (task, times)"),
    ("mine.py:bare", "annotate its parameter times, as in `times: int = 3`"),
    ("mine.py:odd", "a parameter cannot be called json; give it another name"),
    ({"kind": "mine.py:recipe", "times": 4}, "times: Input should be less than or equal to 3"),
    ({"kind": "mine.py:recipe", "tmies": 4}, "unknown parameter tmies; did you mean 'times'? choose from: times"),
    ("mien", "unknown reasoning strategy 'mien'; choose from: direct, ")])
def test_what_does_not_fit_is_one_line(mine, kind, said):
    with pytest.raises(SettingsError) as refused:
        parse_strategy("reasoning", kind)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("source", "said"), [
    ("def recipe(task:\n    pass", "bad.py:1: '(' was never closed"),
    ("import no_such_package", "bad.py: bad.py:1: ModuleNotFoundError: No module named 'no_such_package'"),
    ("from ragbed.strategies.types import Nothing", "ImportError: cannot import name 'Nothing'"),
    ("\n1 / 0", "bad.py: bad.py:2: ZeroDivisionError: division by zero"),
    ("import helper", "bad.py:1: imports helper.py from its own folder, but a run records"),
    ("from helper import x", "bad.py:1: imports helper.py from its own folder"),
    ("from . import helper", "bad.py:1: imports . from its own folder"),
    (b"\xff\xfe\x00", "bad.py: not valid Python source"), ("\0", "bad.py"),
    ("def recipe(task: 'Nowhere', *, x: 'Nowhere' = 1):\n    yield", "its annotations cannot be read: name 'Nowhere'")])
def test_a_file_that_cannot_be_taken_is_one_line_that_names_the_place(mine, source, said):
    mine.with_name("helper.py").write_text("x = 1")
    path = mine.with_name("bad.py")
    path.write_bytes(source if isinstance(source, bytes) else source.encode())
    with pytest.raises(SettingsError) as refused:
        parse_strategy("reasoning", "bad.py:recipe")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not (mine.parent / "__pycache__").exists()


def test_a_file_in_a_clone_of_the_repository_imports_ragbed(mine, monkeypatch):
    (mine.parent / "ragbed").mkdir()
    monkeypatch.setattr(ragbed.__spec__, "origin", str(mine.parent / "ragbed" / "__init__.py"))
    mine.with_name("clean.py").write_text(f"import ragbed.strategies.types\n{mine.read_text()}")
    assert parse_strategy("reasoning", "clean.py:recipe").spec == "clean.py:recipe"


def test_a_sweep_over_a_plug_in_leaves_its_lists_alone(mine, town):
    reasoning = [{"kind": "mine.py:recipe", "times": [1, 2], "words": ["a", "b"]}]
    run, = read_runs(town.config("http://127.0.0.1:9/v1", reasoning=reasoning))
    assert [one.spec for one in run.reasoning] == [
        {"kind": "mine.py:recipe", "words": ["a", "b"]}, {"kind": "mine.py:recipe", "times": 2, "words": ["a", "b"]}]
    kept = town.folder / "config.yaml"
    kept.write_text(run.to_yaml())
    assert [one.spec for one in read_settings(kept).reasoning] == [one.spec for one in run.reasoning]


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """An installed package that offers strategies."""
    site = tmp_path / "site"
    about = site / "my_strategies-1.2.dist-info"
    about.mkdir(parents=True)
    (site / "my_strategies.py").write_text(MINE)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-strategies\nVersion: 1.2\n")
    (about / "entry_points.txt").write_text(
        "[ragbed.reasoning]\nasks_twice = my_strategies:recipe\ndirect = my_strategies:recipe\n"
        "broken = my_strategies:absent\nwrong = my_strategies:gathers\n"
        "[ragbed.retrieval]\nfinds_nothing = my_strategies:gathers\n")
    monkeypatch.syspath_prepend(str(site))
    yield site
    sys.modules.pop("my_strategies", None)


def test_a_strategy_of_an_installed_package_is_named_like_ours_and_listed_with_its_package(installed, ragbed):
    found = parse_strategy("reasoning", {"kind": "asks_twice", "times": 2})
    assert (found.label, list(found.sources)) == ("asks_twice(times=2)", ["asks_twice"])
    assert parse_strategy("retrieval", "finds_nothing").label == "finds_nothing"
    assert parse_strategy("reasoning", "direct").function.__module__ == "ragbed.strategies.reasoning.direct"
    with pytest.raises(SettingsError, match=r"broken, of my-strategies 1\.2: my_strategies:absent: AttributeError"):
        parse_strategy("reasoning", "broken")
    status, out, _ = ragbed("list", "strategies", "--json")
    rows = {(row["kind"], row["name"], row["from"]): row["does"] for row in json.loads(out)["strategies"]}
    assert status == 0
    assert rows["reasoning", "asks_twice", "my-strategies 1.2"] == "Searches, makes up its mind, and answers."
    assert rows["retrieval", "finds_nothing", "my-strategies 1.2"] == "Searches once."
    assert rows["reasoning", "direct", "my-strategies 1.2"].startswith("not used: direct is ragbed's own")
    assert rows["reasoning", "broken", "my-strategies 1.2"].startswith("cannot be used: ")
    assert "as retrieval strategies do" in rows["reasoning", "wrong", "my-strategies 1.2"]


def reply(body):
    last = body["messages"][-1]["content"]
    return "<Answer>222 people [1]</Answer>" if "my own strategy" in last else "<Answer>7 [1]</Answer>"


def test_a_guest_of_an_installed_package_adds_a_strategy_and_its_prompts(tmp_path, monkeypatch):
    from ragbed import guests
    from ragbed.strategies import template

    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "twice.md").write_text("Answer twice.")
    (tmp_path / "twice.py").write_text(MINE + "from pathlib import Path\nPROMPTS = Path(__file__).parent / 'prompts'\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(guests, "installed", lambda: (guests.Guest("twice", {
        "reasoning": {"twice": "twice:recipe"}, "prompts": {"twice": "twice:PROMPTS"}}),))
    found = parse_strategy("reasoning", {"kind": "twice", "times": 2})
    assert (found.label, found.has_plugins, list(found.sources)) == ("twice(times=2)", True, ["twice"])
    assert template("twice") == "Answer twice."


@pytest.fixture
def run(mine, town, serve, ragbed):
    """A finished run that compares `mine.py:recipe` with ours, made in a folder outside the project."""
    server = serve(reply)
    config = town.config(server.url, reasoning=["direct", {"kind": "mine.py:recipe", "times": [1, 2]}])
    status, _, err = ragbed("run", config)
    assert status == 0, err
    return config, town.run


def test_a_strategy_of_ones_own_is_measured_beside_the_built_in_ones(run):
    _, folder = run
    cells = {row["reasoning"]: row for row in json.loads((folder / "summary.json").read_text())["cells"]}
    assert list(cells) == ["direct", "mine", "mine(times=2)"]
    assert [row["outcomes"]["answered"] for row in cells.values()] == [6, 6, 6]
    assert cells["mine"]["metrics"]["unified"]["mean"] > cells["direct"]["metrics"]["unified"]["mean"]
    assert list(json.loads((folder / "manifest.json").read_text())["sources"]) == ["mine.py:recipe"]


def test_a_changed_file_has_its_strategy_asked_again_and_says_so(run, mine, ragbed, monkeypatch):
    config, _ = run
    other = mine.parent.parent / "changed"
    other.mkdir()
    (other / "mine.py").write_text(MINE + "\n# changed\n")
    monkeypatch.chdir(other)
    ragbed.refuses("run", config, "--journal", "replay",
                   says=["another version of mine.py:recipe"])


def test_compare_says_which_inputs_changed_between_two_runs(run, tmp_path, ragbed, monkeypatch):
    config, folder = run
    (tmp_path / "mine.py").write_text(MINE + "\n# changed\n")
    monkeypatch.chdir(tmp_path)
    later = config.with_name("later.yaml")
    later.write_text(yaml.safe_dump({**yaml.safe_load(config.read_text()), "name": "later",
                                     "limits": {"max_tokens": 99}}))
    assert ragbed("run", later)[0] == 0
    notes = ragbed.json("compare", folder, folder.parent / "later")["notes"]
    assert [note for note in notes if note.startswith("The second run has")] == [
        "The second run has another version of mine.py:recipe.",
        "The second run has other settings: limits.max_tokens was 1024, is 99."]
    assert not [note for note in ragbed.json("compare", folder, folder)["notes"] if "The second run has" in note]


def test_reading_a_run_needs_and_executes_no_file_of_its_strategies(run, mine, ragbed, tmp_path):
    _, folder = run
    mine.unlink()
    mine.write_text("open('executed', 'w').write('x')\nraise SystemExit")
    for command in (["report", folder], ["show", folder, "1"], ["compare", folder], ["verify", folder],
                    ["rescore", folder], ["diagnose", folder], ["export", folder, tmp_path / "x.csv"],
                    ["judge", folder, "--judge", "lexical"],
                    ["cassette", "export", folder, "--out", tmp_path / "run.cassette"],
                    ["cassette", "show", tmp_path / "run.cassette"]):
        status, _, err = ragbed(*command)
        assert status == 0, (command, err)
        assert not (mine.parent / "executed").exists(), command


def test_rescore_reads_the_replies_of_a_file_again_where_it_is_named_and_the_same(run, mine, ragbed):
    _, folder = run
    status, _, err = ragbed("rescore", folder)
    assert status == 0
    assert "not read again: mine.py:recipe is code that came with the run; read it, then give --plugin" in err
    status, out, _ = ragbed("rescore", folder, "--plugin", "mine.py:recipe", "--json")
    assert (status, json.loads(out)["read"]) == (0, {"same": 18, "changed": 0, "skipped": 0})
    mine.write_text(MINE + "\nopen('executed', 'w')\n")
    status, _, err = ragbed("rescore", folder, "--plugin", "mine.py:recipe")
    assert status == 0
    assert "mine.py:recipe has changed since the run" in err
    assert not (mine.parent / "executed").exists()
    mine.unlink()
    assert "mine.py: no such file" in ragbed("rescore", folder, "--plugin", "mine.py:recipe")[2]


def test_a_cassette_makes_no_file_run_that_the_user_does_not_name(run, mine, ragbed, tmp_path):
    _, folder = run
    tape = tmp_path / "run.cassette"
    status, _, err = ragbed("cassette", "export", folder, "--out", tape)
    assert status == 0, err
    shutil.rmtree(folder)
    ragbed.refuses("run", "--replay", tape, says=["its run used the strategy mine.py:recipe, which is code", "--set"])
    again = '["direct", "mine.py:recipe", {kind: "mine.py:recipe", times: 2}]'
    status, _, err = ragbed("run", "--replay", tape, "--set", f"reasoning={again}")
    assert status == 0, err


def test_options_of_the_command_line_take_files_and_settings(mine, serve, ragbed):
    server = serve(reply)
    status, out, err = ragbed("run", "demo", "--limit", "1", "--condition", "closed-book", "--model", f"{server.url}#m",
                              "--reasoning", "{kind: mine.py:recipe, times: 2}", "--reasoning", "direct", "--json")
    assert status == 0, err
    assert [row["reasoning"] for row in json.loads(out)["cells"]] == ["mine(times=2)", "direct"]
    ragbed.refuses("run", "demo", "--reasoning", "[direct]", says=["--reasoning '[direct]'", "expected a name"])


def test_a_strategy_within_itself_is_one_line():
    said = {"kind": "self_consistency"}
    said["of"] = said
    for execute in (True, False):
        with pytest.raises(SettingsError, match="strategies are nested too deeply"):
            parse_strategy("reasoning", said, execute)
