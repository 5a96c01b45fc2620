"""No gold reaches a prompt: every gold field of every benchmark is a canary, and every request body is searched."""
import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from ragbed.documents.rows import read_rows
from ragbed.experiments import BENCHMARKS, Gold, Step
from ragbed.experiments.benchmarks.base import files_below
from ragbed.strategies import CRESTS

DATA = Path(__file__).parent / "data"
KINDS = sorted(folder.name for folder in DATA.iterdir() if folder.name in BENCHMARKS)
# The papers' five are run with every strategy too; of the others a question is enough.
FIVE = {"crest": {}, "mrceval": {"limit": 2}, "mdbench": {"limit": 2}, "mrke": {"filter": {"type": "comparison"}},
        "detectiveqa": {"filter": {"annotation": "human_anno"}, "limit": 2}}
CHAINS = [kind for kind in KINDS if "chain" in BENCHMARKS[kind].scheme.groups]
CHAIN_FIELDS = ("question_decomposition", "sub_questions", "sub_answers")
CANARY = "goldcanary"


def gold_as_canaries(question):
    """The question with a canary for all that only scoring, judging and placing may know."""
    return replace(
        question, answers=(f"{CANARY}-answer",), gold=(*question.gold, Gold(f"{CANARY}-document", f"{CANARY}-chunk")),
        sub_answers=tuple(f"{CANARY}-sub-{place}" for place, _ in enumerate(question.sub_answers)),
        steps=tuple(Step(f"{CANARY}-step", step.depth) for step in question.steps),
        table=question.table and replace(question.table, content=f"{CANARY}-table"),
        tags={f"{CANARY}-{tag}": (f"{CANARY}-value",) for tag in question.tags})


def sub_questions_as_canaries(question):
    return replace(question, sub_questions=tuple(f"{CANARY} of #1?" for _ in question.sub_questions))


def sub_answers_as_canaries(row):
    """The record with a canary for each sub-answer, also where a sub-question holds it."""
    parts = row.get("question_decomposition") or []
    told = json.dumps({name: row[name] for name in CHAIN_FIELDS if name in row})
    for place, answer in enumerate(row.get("sub_answers") or [part["answer"] for part in parts]):
        told = told.replace(json.dumps(answer)[1:-1], f"{CANARY} {place}")
    return {**row, **json.loads(told)}


@pytest.fixture
def prompts(serve, ragbed, monkeypatch, tmp_path):
    """The request bodies of a run over a fixture whose questions were changed, each as one text."""
    def prompts(kind, change, folder=DATA, reasoning=("direct", "least_to_most"), **settings):
        loader = BENCHMARKS[kind]
        load = loader.load

        def changed(self):
            benchmark = load(self)
            documents = {id: replace(document, source=f"{CANARY}-source-{id}", title=f"{CANARY}-title")
                         for id, document in benchmark.documents.items()}
            return replace(benchmark, documents=documents, questions=tuple(map(change, benchmark.questions)))

        benchmark = {"kind": kind, "path": str(folder / kind), **FIVE.get(kind, {"limit": 1})}
        loaded = loader(**benchmark).load()
        monkeypatch.setattr(loader, "load", changed)
        server = serve(reply)
        config = {"name": "canaries", "out": str(tmp_path / "runs"), "models": f"{server.url}#m",
                  "benchmark": benchmark, "reasoning": list(reasoning),
                  "conditions": conditions(loaded), "judge": "lexical", **settings}
        path = tmp_path / "canaries.yaml"
        path.write_text(yaml.safe_dump(config))
        status, _, err = ragbed("run", path, "--fresh")
        assert status == 0, err
        monkeypatch.setattr(loader, "load", load)
        return [json.dumps(body) for body, _ in server.requests]
    return prompts


def conditions(benchmark):
    """Those that need no index."""
    there = {"closed-book": True, "provided": any(question.provided for question in benchmark.questions),
             "gold": benchmark.gives_chunks and any(question.gold for question in benchmark.questions),
             "full": benchmark.has_whole}
    return [condition for condition, has in there.items() if has]


def reply(body):
    if "simpler questions" in body["messages"][-1]["content"]:
        return "1. What came first?\n2. And then?"
    return "<Answer>A</Answer>"


@pytest.mark.parametrize(("kind", "more"), [*((kind, {}) for kind in KINDS), *(
    pytest.param(kind, {"reasoning": CRESTS}, marks=pytest.mark.slow) for kind in FIVE)])
def test_no_gold_field_reaches_a_prompt(prompts, kind, more):
    asked = prompts(kind, gold_as_canaries, show=["question", "sub_questions"], **more)
    assert len(asked) >= 2
    assert [body for body in asked if CANARY in body] == []


@pytest.mark.parametrize("sub_answers", ["asked", "in_prompt"])
@pytest.mark.parametrize("kind", CHAINS)
def test_no_sub_answer_of_a_record_reaches_a_prompt(prompts, kind, sub_answers, tmp_path):
    rows = [sub_answers_as_canaries(row.fields) for file in files_below(DATA / kind) for row in read_rows(file)]
    assert CANARY in json.dumps(rows)
    (tmp_path / kind).mkdir()
    (tmp_path / kind / "records.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = prompts(kind, lambda question: question, tmp_path, sub_answers=sub_answers)
    question = BENCHMARKS[kind](path=str(tmp_path / kind), **FIVE.get(kind, {})).load().questions[0]
    assert any(json.dumps(question.sub_questions[0])[1:-1] in body for body in asked)
    assert [body for body in asked if CANARY in body] == []


def test_sub_questions_reach_a_prompt_only_by_the_setting_that_shows_them(prompts):
    few = {"sub_answers": "none", "conditions": "provided"}
    hidden = prompts("mrke", sub_questions_as_canaries, show="question", **few)
    assert [body for body in hidden if CANARY in body] == []
    shown = prompts("mrke", sub_questions_as_canaries, show="sub_questions", **few)
    assert [body for body in shown if CANARY in body]


def test_the_one_setting_that_shows_gold_sub_answers_is_labelled_and_is_seen_here(prompts):
    asked = prompts("mrke", gold_as_canaries, filled="gold", conditions="provided")
    seen = [body for body in asked if CANARY in body]
    assert seen
    assert all(f"{CANARY}-sub-" in body and f"{CANARY}-answer" not in body for body in seen)


def test_the_table_is_seen_here_where_a_perturbation_shows_it(prompts):
    asked = prompts("mdbench", gold_as_canaries, perturbations="table", conditions="provided")
    assert asked
    assert all(f"{CANARY}-table" in body and body.count(CANARY) == 1 for body in asked
               if "simpler questions" not in body)
