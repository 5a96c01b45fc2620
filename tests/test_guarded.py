"""A strategy of one's own that breaks the protocol ends its question and no more, inside whatever strategy it is."""
import sqlite3
import subprocess
import sys

import pytest
from gathering import Scene

from ragbed.strategies import REASONING
from ragbed.strategies.settings.parameters import parameter_hints
from ragbed.strategies.settings.strategy_config import reasoning

SOURCE = '''
from ragbed.strategies.types import Decision, Draft, Gathering, Generate, Passage, Recipe, Search, Task

def text(task: Task) -> Recipe:
    yield "text"
    return Draft("x", (), False, True, None)

def no_draft(task: Task) -> Recipe:
    yield from task.gather(task.question)
    return "an answer"

def gathers(task: Task) -> Recipe:
    evidence = yield from task.gather(task.question)
    return Draft("x", (), False, True, None, gathered=tuple(one.number for one in evidence))

def words(task: Task) -> Recipe:
    yield Decision("votes", 5)
    return Draft("x", (), False, True, None)

def mixes(task: Task) -> Recipe:
    yield [Search("first"), Generate((), "answer")]
    return Draft("", (), False, False, False)

def idle(task: Task) -> Recipe:
    yield Search(task.question)
    while True:
        yield []

def waits(task: Task) -> Recipe:
    while True:
        yield Decision("waits")

def numbers(task: Task, query: str) -> Gathering:
    found = yield Search(query)
    return [passage.number for passage in found]

def asks_text(task: Task, query: str) -> Gathering:
    yield query
    return ()
'''
SAID = {"text": "the strategy yielded 'text'; yield searches, calls of the model or calls of tools",
        "mixes": "the strategy yielded [Search(query='first', k=None), Generate(",
        "no_draft": "the strategy returned str, not a Draft",
        "gathers": "the strategy returned a draft with gathered, which only search_only may set",
        "words": "the strategy makes a decision whose words are not strings"}
AROUND = ["chain_of_verification", "few_shot", "self_consistency", "supported", "sufficient", "reflect"]
REPLIES = dict.fromkeys(("critique", "sufficiency", "support", "queries", "passage", "grade", "next", "step_back",
                         "decompose", "adaptive"), "Yes.")


@pytest.fixture
def bad(tmp_path):
    path = tmp_path / "bad.py"
    path.write_text(SOURCE)
    return path


def within(around, kind, bad):
    """Settings of a strategy inside another."""
    if around == "few_shot":
        examples = bad.with_name("examples.jsonl")
        examples.write_text('{"question": "Where does the Rhone end?", "answer": "In the sea"}')
        return {"kind": around, "of": kind, "exemplars": str(examples)}
    return {"kind": around, "of": kind} if around else kind


def ended(said, retrieval="once"):
    scene = Scene({"": "jaws spielberg"}, REPLIES)
    answer = scene.play(retrieval, reasoning(said))
    assert answer.outcome == "error"
    assert answer.failure.kind == "strategy"
    return answer.failure.message


@pytest.mark.parametrize("function", SAID)
@pytest.mark.parametrize("around", ["", *AROUND])
def test_what_a_strategy_yields_and_returns_is_checked_before_the_strategy_around_it_takes_it(bad, around, function):
    kind = f"{bad}:{function}"
    message = ended(within(around, kind, bad))
    assert message.startswith(f"{kind}: {SAID[function]}")


@pytest.mark.parametrize("function", ["idle", "waits"])
@pytest.mark.parametrize("around", ["", *AROUND])
def test_a_strategy_that_asks_for_nothing_without_end_is_ended_inside_others_too(bad, around, function):
    assert "in a row without a search or a call" in ended(within(around, f"{bad}:{function}", bad))


@pytest.mark.parametrize("around", ["", "corrective", "multi_query", "step_back", "decompose", "iterative"])
@pytest.mark.parametrize(("function", "said"), [("numbers", "it must return the evidence"),
                                                ("asks_text", "yield searches, calls of the model or calls")])
def test_so_is_a_retrieval_strategy(bad, around, function, said):
    kind = f"{bad}:{function}"
    message = ended("direct", {"kind": around, "over": kind} if around else kind)
    assert message.startswith(f"{kind}: ")
    assert said in message


def test_every_strategy_that_takes_another_is_tested_here():
    assert sorted(AROUND) == sorted(name for name, function in REASONING.items() if "of" in parameter_hints(function))


def test_a_run_goes_on_after_it(bad, town, serve, ragbed):
    config = town.config(serve(town.reply).url, reasoning=["direct", {"kind": "supported", "of": f"{bad}:no_draft"}])
    status, _, err = ragbed("run", config)
    assert status == 0, err
    with sqlite3.connect(town.run / "records.sqlite") as connection:
        outcomes = [one for one, in connection.execute("SELECT json_extract(result, '$.outcome') FROM records")]
    assert (outcomes.count("error"), len(outcomes)) == (6, 12)


BLOCKING = """
import time

def sleeps(task):
    time.sleep(10_000)
    yield

def loops(task):
    while True:
        pass
    yield

def defies(task):
    while True:
        try:
            time.sleep(10_000)
        except BaseException:
            pass
    yield
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sleeps", "loops"])
def test_a_strategy_that_blocks_ends_its_question_and_no_more(name, serve, town, ragbed, monkeypatch):
    monkeypatch.chdir(town.folder)
    (town.folder / "blocks.py").write_text(BLOCKING)
    town.write([town.row(0)])
    path = town.config(serve(town.reply).url, reasoning=[f"blocks.py:{name}", "direct"], limits={"seconds": 2},
                       concurrency=1)
    status, _, err = ragbed("run", path)
    assert status == 0, err
    blocked, answered = (record["result"] for record in town.records())
    assert (blocked["outcome"], answered["outcome"]) == ("error", "answered")
    assert "the strategy did not return from blocks.py:" in blocked["failure"]["message"]
    assert "in time, in the question refusal-0" in blocked["failure"]["message"]


@pytest.mark.slow
def test_a_strategy_that_cannot_be_stopped_ends_the_run_resumably(serve, town, ragbed, monkeypatch):
    monkeypatch.chdir(town.folder)
    (town.folder / "blocks.py").write_text(BLOCKING)
    town.write([town.row(0)])
    path = town.config(serve(town.reply).url, reasoning=["direct", "blocks.py:defies"], limits={"seconds": 5},
                       concurrency=1)
    ended = subprocess.run([sys.executable, "-m", "ragbed", "run", path], capture_output=True, text=True)
    assert ended.returncode == 2, ended.stderr
    line = ended.stderr.splitlines()[-1]
    assert line.startswith("ragbed: the strategy did not return from blocks.py:")
    assert "in time, in the question refusal-0" in line
    assert line.endswith("cannot be stopped; run the same command to continue")
    assert len(town.hashes()) == 1
