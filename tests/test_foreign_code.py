"""A custom strategy may raise, print and be anything: each defect is one line, and reading a run executes none."""
import json
import os
from pathlib import Path

import pytest

from ragbed import check_strategy
from ragbed.documents import RecipeFailed, SettingsError
from ragbed.experiments.guests.conformance.checking import check_strategies, guess_family
from ragbed.experiments.settings.file import read_content
from ragbed.strategies import Task, parse_strategy

HEAD = "import os\nimport re\nfrom ragbed.strategies.types import *\nclass Odd(Exception): pass\n"
RECIPE = HEAD + "def recipe(task: Task) -> Recipe:\n    yield from task.gather(task.question)\n    "


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("line", "said"), [("raise Odd('boom')", "Odd: boom"), ("re.compile('(')", "error: missing )"),
                                            ("raise StopAsyncIteration", "StopAsyncIteration"),
                                            ("raise SystemExit", "SystemExit"),
                                            ("raise GeneratorExit", "GeneratorExit"),
                                            ("raise __import__('asyncio').CancelledError", "CancelledError"),
                                            ("raise type('Fatal', (BaseException,), {})('boom')", "Fatal: boom"),
                                            ("raise type('Mute', (Odd,), {'__str__': lambda self: 1})", "Mute: <")])
def test_an_exception_of_any_class_is_one_line_at_import_and_in_a_recipe(here, line, said):
    (here / "odd.py").write_text(f"{HEAD}{line}\n")
    with pytest.raises(SettingsError, match=r"^odd\.py: odd\.py:5: ") as refused:
        parse_strategy("reasoning", "odd.py:recipe")
    assert said in str(refused.value)
    (here / "plays.py").write_text(RECIPE + line)
    recipe = parse_strategy("reasoning", {"kind": "self_consistency", "of": "plays.py:recipe"}).function(
        Task("q", "Who?", parse_strategy("retrieval", "once").function))
    next(recipe)
    with pytest.raises(RecipeFailed, match=r"^plays\.py:recipe: plays\.py:7: ") as failed:
        recipe.send([()])
    assert said in str(failed.value)


RAISED = ("raise __import__('asyncio').CancelledError", "raise GeneratorExit", "raise BaseException",
          "yield type('Odd', (), {'__repr__': lambda self: 1 / 0})()")
STARTED = {"threading.Thread(target=time.sleep, args=(1000,)).start()": ("source", "imports subprocess; a recipe"),
           "os.fork()": ("io", "os.fork ()"),
           "subprocess.Popen(['sleep', '1000'])": ("io", "subprocess.Popen ('sleep'")}
EARLY = HEAD + "def recipe(task: Task) -> Recipe:\n    yield 5\n"


def busy(line):
    return ("from ragbed.strategies.answering import answer\nimport subprocess, threading, time\n" +
            RECIPE.replace("yield", "evidence = yield", 1) + line +
            "\n    return (yield from answer(task, 'direct', evidence, thinks=False))\n")


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """The verdicts on strategies that end, by their file and then by promise; all are played in two processes."""
    files = {**{f"odd{place}.py": RECIPE + line for place, line in enumerate(RAISED)}, "early.py": EARLY,
             **{f"busy{place}.py": busy(line) for place, line in enumerate(STARTED)}}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("checked"))
        for name, source in files.items():
            Path(name).write_text(source)
        verdicts = check_strategies([("reasoning", f"{name}:recipe") for name in files], seconds=60.0)
    return {name: {one.name: one for one in ones} for name, ones in zip(files, verdicts, strict=True)}


@pytest.mark.parametrize("file", [f"odd{place}.py" for place, _ in enumerate(RAISED)])
def test_check_strategy_reports_an_exception(checked, file):
    verdict = checked[file]["protocol"]
    assert not verdict.passed
    assert verdict.detail.startswith(f"{file}:recipe: ")


def test_its_output_is_not_mixed_into_the_json_on_standard_output(here, serve, ragbed):
    (here / "page.txt").write_text("Town 2 has 222 people.")
    (here / "loud.py").write_text("print('at import')\nfrom ragbed.strategies.answering import answer\n" + RECIPE +
                                  "print('as it is played')\n"
                                  "    return (yield from answer(task, 'direct', (), thinks=False))\n")
    assert ragbed("index", "page.txt", "--out", "i")[0] == 0
    status, out, err = ragbed("ask", "How many?", "--index", "i", "--retriever", "bm25", "--reasoning",
                              "loud.py:recipe", "--model", f"{serve(lambda body: '<Answer>222</Answer>').url}#m",
                              "--json")
    assert (status, json.loads(out)["answer"]) == (0, "222")
    assert "at import" in err
    assert "as it is played" in err


@pytest.mark.slow
@pytest.mark.parametrize(("line", "said"), [
    ("os._exit(0)", "ends its process: without output"),
    ("while True: pass", "yields nothing and does not end: stuck.py:5, in <module>")])
def test_a_file_that_exits_or_hangs_on_import_is_reported(here, line, said):
    (here / "stuck.py").write_text(f"{HEAD}{line}\n")
    verdict, = check_strategy("stuck.py:recipe", seconds=0.3)
    assert (verdict.name, verdict.passed, verdict.detail) == ("ends", False, said)


def test_threads_and_processes_do_not_block_the_check(checked):
    for place, (promise, said) in enumerate(STARTED.values()):
        verdict = checked[f"busy{place}.py"][promise]
        assert said in verdict.detail
        assert verdict.passed is False


@pytest.mark.slow
@pytest.mark.parametrize(("line", "promise", "said"), [
    ("time.sleep(1000)", "ends", "yields nothing and does not end: busy.py:9, in recipe"),
    pytest.param("for n in range(300_000): print(n)", "io", "prints '0", marks=pytest.mark.slow)])
def test_waiting_and_endless_output_do_not_block_the_check(here, line, promise, said):
    (here / "busy.py").write_text(busy(line))
    verdicts = {one.name: one for one in check_strategy("busy.py:recipe", seconds=0.5 if promise != "io" else 60.0)}
    assert said in verdicts[promise].detail
    assert verdicts[promise].passed is False


def test_the_family_of_a_file_is_read_and_not_executed(here):
    (here / "both.py").write_text("raise SystemExit\ndef one(task): yield\ndef two(task, query, *, k=3): yield\n"
                                  "def three(task: Task) -> types.Standalone: yield\n")
    assert [guess_family(f"both.py:{name}") for name in ("one", "two", "three", "absent")] == [
        "reasoning", "retrieval", "history", "reasoning"]


def test_promises_that_a_broken_strategy_ends_too_early_for_are_not_tested(checked):
    assert checked["early.py"]["protocol"].passed is False
    assert [one.name for one in checked["early.py"].values() if one.passed is None] == [
        "limits", "answers", "shown", "gold"]


@pytest.mark.parametrize(("kind", "said"), [
    ("loop.py:recipe", "cannot be read"), ("\0.py:recipe", "cannot be read"),
    ("\ud800.py:recipe", "cannot be read"), ("x" * 300 + ".py:recipe", "cannot be read"),
    ("pipe.py:recipe", "not a file; a strategy is a file of Python source"),
    ("zero.py:recipe", "not a file; a strategy is a file of Python source"),
    ("folder.py:recipe", "not a file; a strategy is a file of Python source"),
    ("huge.py:recipe", "larger than 1,000,000 bytes")])
def test_a_path_without_source_is_a_one_line_error(here, kind, said):
    (here / "loop.py").symlink_to(here / "loop.py")
    (here / "zero.py").symlink_to("/dev/zero")
    (here / "folder.py").mkdir()
    (here / "huge.py").write_text("#" * 1_000_001)
    os.mkfifo(here / "pipe.py")
    for refuses in (lambda: parse_strategy("reasoning", kind), lambda: guess_family(kind)):
        with pytest.raises(SettingsError) as refused:
            refuses()
        assert said in str(refused.value)
        assert str(refused.value).isprintable()


def test_a_huge_settings_file_is_refused_before_it_is_parsed(here):
    (here / "huge.yaml").write_text("reasoning:\n" + "- direct\n" * 200_000)
    with pytest.raises(SettingsError, match=r"huge\.yaml: larger than 1,000,000 bytes"):
        read_content(here / "huge.yaml")
