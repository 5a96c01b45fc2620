"""Every built-in strategy keeps every promise, and a broken promise is reported."""
import json
import os
import re
from pathlib import Path

import pytest

from ragbed.experiments.guests.conformance.checking import PROMISES, broken_rules, check_strategies, check_strategy
from ragbed.strategies import HISTORY, REASONING, RETRIEVAL

KNOWN = [(family, name) for family, known in (("reasoning", REASONING), ("retrieval", RETRIEVAL), ("history", HISTORY))
         for name in known]
HEAD = '''
import json
import random
from typing import Any
from ragbed.strategies.answering import answer, draft, ask_for_answer
from ragbed.strategies.prompting import fill_text, first_message, shown_numbers, system_message
from ragbed.strategies.types import *

SEEN = []

def answered(task, evidence):
    return (yield from answer(task, "direct", evidence, thinks=False))
'''


@pytest.fixture(scope="session")
def catalogue(tmp_path_factory):
    """The verdicts on every strategy, by family and name; all are played in two processes."""
    examples = tmp_path_factory.mktemp("examples") / "examples.jsonl"
    examples.write_text(json.dumps({"question": "Where does the Rhone end?", "answer": "In the sea [1]",
                                    "documents": ["The Rhone ends in the sea."]}))
    needed = {"few_shot": {"kind": "few_shot", "exemplars": str(examples)}}
    return dict(zip(KNOWN, check_strategies([(family, needed.get(name, name)) for family, name in KNOWN]), strict=True))


@pytest.mark.slow
def test_strategies_of_each_family_keep_every_promise():
    some = [("reasoning", "direct"), ("reasoning", "react"), ("retrieval", "corrective"), ("history", "rewrite")]
    assert [one for verdicts in check_strategies(some) for one in verdicts if not one.passed] == []


@pytest.mark.slow
@pytest.mark.parametrize(("family", "name"), KNOWN)
def test_a_strategy_of_the_catalogue_keeps_every_promise(catalogue, family, name):
    verdicts = catalogue[family, name]
    assert [verdict for verdict in verdicts if not verdict.passed] == []
    assert [verdict.name for verdict in verdicts] == list(PROMISES)


@pytest.mark.slow
def test_the_docs_page_has_the_calls_and_searches_of_each_strategy(catalogue):
    page = (Path(__file__).parents[3] / "docs" / "strategies.md").read_text(encoding="utf-8")
    said = {name: f"at most {calls} calls and {searches} searches" for name, calls, searches in re.findall(
        r"^\| `(\w+)`(?: \([^|]*\))? \|[^|]*\| (\d+), (\d+) \|", page.partition("### Retrieval")[0], re.MULTILINE)}
    made = {name: verdict.detail.partition(" in ")[0] for (family, name), verdicts in catalogue.items()
            for verdict in verdicts if verdict.name == "ends" and family == "reasoning"}
    assert made == {**said, "few_shot": "at most 1 calls and 1 searches"}


GATHER = "evidence = yield from task.gather(task.question)\n    "
BAD = {
    "protocol": (GATHER + 'evidence = yield "Where is it?"',
                 "yielded 'Where is it?'; yield searches, calls"),
    "ends": (GATHER + "while True:\n        evidence += yield from task.gather(task.question + str(len(evidence)))",
             "does not end within 300 calls and 300 searches (grounded, with a model that answers)"),
    "limits": ("""for turn in range(3):
        try:
            evidence = yield Search(f"{task.question} {turn}")
        except GeneratorExit:
            pass""", "continues after it was stopped"),
    "deterministic": ('evidence = yield from task.gather(" ".join(set(task.question.split())))',
                      "in another process, step 1 differs: search for "),
    "stateless": ("SEEN.append(task.question)\n    evidence = yield Search(task.question, k=len(SEEN))",
                  "repeated after other questions, step 1 differs: search for "),
    "answers": (GATHER + """messages = system_message(), first_message(task, evidence, "Answer.")
    return Draft.from_reply((yield Generate(messages, "answer", shown_numbers(task, evidence))))""",
                "no call requests the fields of an answer (as JSON, with a model that answers)"),
    "shown": (GATHER + """messages = system_message(), first_message(task, evidence, "What is it about?")
    reply = yield Generate(messages, "summary")""",
              "call 'summary' shows document [1] without declaring it in `shown`"),
    "gold": (GATHER + """ids = " ".join(passage.chunk.document for passage in evidence)
    return (yield from draft(ask_for_answer(task, f"The documents are {ids}. Answer.", evidence), task))""",
             "call 'answer' shows an id or another text that reveals the gold"),
    "io": (GATHER + """try:
        open("notes.txt").read()
    except OSError:
        print("nothing noted")""", "opens 'notes.txt'; and 1 more"),
    "source": (GATHER + "from time import time", "source.py:15: imports time; a recipe must not read the clock")}


CALL = "evidence = ()\n    yield Generate((system_message(),), 'plan'"
TOLD = "evidence = ()\n    yield Generate((Message('assistant', ('x',)"
SHOWS = ("evidence = yield from task.gather('x')\n    if task.exemplars:\n        return Draft.from_reply((yield "
         "Generate((system_message(), first_message(task, evidence, ")
ODD = [
    ('evidence = yield [Search("a"), Generate((), "b")]', "protocol", "do not mix them in one list"),
    ("evidence = ()\n    yield Search('')", "protocol", "searches for an empty string"),
    ("evidence = yield Search('x', k=0)", "protocol", "a search for 0 chunks"),
    ("evidence = yield from task.gather(task.id)", "gold", "the query 'goldhush-question' contains an id"),
    ("evidence = yield from task.gather('x')\n    1 / len(evidence)", "protocol", "ZeroDivisionError: division by"),
    ("evidence = ()\n    yield Generate((), 'plan')", "protocol", "a call without messages"),
    ("evidence = ()\n    yield Generate((system_message(),), 'plan', schema={'a': {1}})", "protocol", "are not JSON"),
    ("evidence = ()\n    return Draft('x', ('1',), False, True, None)", "protocol", "citations are not a tuple of"),
    ("evidence = ()\n    raise SystemExit", "protocol", "SystemExit"),
    ("evidence = ()\n    while True:\n        yield Decision('waits')", "protocol", "decisions in a row"),
    ("evidence = yield from task.gather('x' if random.random() < 0.5 else 'y')", "stateless", "step 1 differs"),
    ("import subprocess\n    evidence = yield Search('x')", "source", "imports subprocess; a recipe yields actions"),
    ("import datetime\n    evidence = yield Search(f'{datetime.date.today()}')", "source", "reads date.today; a"),
    ("evidence = yield Search(f'{random.choice(task.question)}')", "source", "reads random.choice"),
    ("from ragbed.agents.client import ModelClient\n    evidence = yield Search('x')", "source",
     "imports ragbed.agents; a strategy"),
    ("import socket\n    socket.socket()\n    evidence = yield Search('x')", "io", "socket.__new__"),
    ("evidence = yield Search('x')\n    open('x.txt', 'w').close()", "io", "writes 'x.txt'"),
    ("evidence = ()\n    return Draft('x', (), 5, True, None)", "protocol", "refused, well_formed or tagged is not"),
    ("evidence = ()\n    return Draft('x', (), False, True, 'abc')", "protocol", "or tagged is not True or False"),
    ("evidence = ()\n    return Draft('x', (), False, True, None, gathered=5)", "protocol", "gathered is not a tuple"),
    ("evidence = ()\n    return Draft('x', (), False, True, None, gathered=())", "protocol", "only search_only may"),
    ("evidence = ()\n    return Draft('x', (), False, True, None, figures={'a': 10**400})", "protocol", "not finite"),
    (f"{CALL}, effort=object())", "protocol", "whose effort is not a string"),
    (f"{CALL}, tool_choice=object())", "protocol", "whose tool_choice is neither auto nor none"),
    (f"{CALL}, see_failure=1)", "protocol", "whose see_failure is not True or False"),
    (f"{CALL}, schema=[1])", "protocol", "whose schema or tools are not JSON objects"),
    (f"{CALL}, tools=(5,))", "protocol", "whose schema or tools are not JSON objects"),
    (f"{TOLD}, (5,)),), 'plan')", "protocol", "whose tool calls are not a tuple of JSON objects"),
    (f"{TOLD}, (), 5),), 'plan')", "protocol", "whose tool calls are not a tuple of JSON objects"),
    (f"{SHOWS}'Answer at once.')), 'answer', shown_numbers(task, evidence))), form='plain')", "answers",
     "call 'answer' shows examples in another form than it requests (as published, with exemplars, with a "),
    ("import sys\n    evidence = yield Search('x')\n    sys.__stdout__.write('hello\\n')", "io", "prints 'hello"),
    ("from os import write\n    evidence = yield Search('x')\n    write(1, b'{}')", "io", "prints '{}")]
RETRIEVING = """
def numbers_alone(task: Task, query: str) -> Gathering:
    found = yield Search(query)
    return [passage.number for passage in found]

def fine(task: Task, query: str) -> Gathering:
    return (yield Search(query))
"""


@pytest.fixture(scope="session")
def told(tmp_path_factory):
    """What is told of every bad strategy, by its name: the promises that it breaks."""
    folder = tmp_path_factory.mktemp("bad")
    begin, end = "def recipe(task: Task) -> Recipe:\n    ", "\n    return (yield from answered(task, evidence))\n"
    sources = {promise: lines for promise, (lines, _) in BAD.items()} | {
        f"odd{place}": lines for place, (lines, _, _) in enumerate(ODD)}
    for name, lines in sources.items():
        (folder / f"{name}.py").write_text(f"{HEAD}{begin}{lines}{end}")
    (folder / "retrieving.py").write_text(HEAD + RETRIEVING)
    named = [("reasoning", name, f"{folder / name}.py:recipe") for name in sources]
    named += [("retrieval", name, f"{folder / 'retrieving.py'}:{name}") for name in ("numbers_alone", "fine")]
    before = Path.cwd()
    os.chdir(folder)
    try:
        verdicts = check_strategies([(family, kind) for family, _, kind in named])
    finally:
        os.chdir(before)
    return {name: {verdict.name: verdict.detail for verdict in found if verdict.passed is False}
            for (_, name, _), found in zip(named, verdicts, strict=True)}


def test_there_is_a_bad_strategy_for_every_promise():
    assert list(BAD) == list(PROMISES)


@pytest.mark.slow
@pytest.mark.parametrize("promise", BAD)
def test_a_broken_promise_is_reported_with_its_place(told, promise):
    assert list(told[promise]) == [promise]
    assert BAD[promise][1] in told[promise][promise]


@pytest.mark.slow
@pytest.mark.parametrize("place", range(len(ODD)))
def test_each_defect_of_a_strategy_is_one_line(told, place):
    _, promise, said = ODD[place]
    assert said in told[f"odd{place}"][promise]


@pytest.mark.slow
def test_a_retrieval_strategy_is_checked_by_what_it_returns(told):
    assert "must return the evidence, a tuple of passages that searches found" in told["numbers_alone"]["protocol"]
    assert told["fine"] == {}


@pytest.mark.slow
def test_settings_of_a_strategy_are_checked_with_it():
    verdicts = {verdict.name: verdict for verdict in check_strategy({"kind": "self_consistency", "of": "least_to_most",
                                                            "samples": 2})}
    assert all(verdict.passed for verdict in verdicts.values())
    assert verdicts["ends"].detail.startswith("at most 16 calls and 1 searches in ")


@pytest.mark.parametrize(("line", "told"), [
    ("draw = random.random()", "reads random.random; a recipe may draw with task.rng() only"),
    ("draw = numpy.random.random(3)", "reads random.random; a recipe may draw with task.rng() only"),
    ("draw = random.choice", "reads random.choice; a recipe may draw with task.rng() only"),
    ("draw = random.Random(3).random()", None),
    ("draw: random.Random = task.rng()", None),
    ("draw = task.rng().random()", None)])
def test_only_seeded_random_generators_are_allowed(line, told):
    assert [what for _, what in broken_rules(f"import random\n{line}\n")] == ([told] if told else [])
