"""Each of the five benchmarks in one command: its paper's setting, five strategies, the paper's columns."""
import json
import re
from math import sqrt
from pathlib import Path

import pytest
import yaml

from ragbed.experiments import BENCHMARKS, RunSettings
from ragbed.experiments.terminal.run_tables import run_table
from ragbed.strategies import CRESTS, REFUSAL

DATA = Path(__file__).parent / "data"
# What the model answers to a question that holds these words; of each benchmark it gets one wrong.
ANSWERS = {
    "crest": {"How many parcels left": "1,577 parcels [1]", "아스터 창고는": "2004년 [2]", "Who runs": REFUSAL},
    "mrceval": {"How many people did": "B", "Why did the ferry": "C", "How is Ilse": "A", "Why did Nell": "A",
                "Which element": "A", "Is the lamp lit": "B"},
    "mdbench": {"Which light was": "Aster Point, in 1871.", "How many boats": "twelve", "no bridge": "Selk",
                "two mills": "the upper mill"},
    "detectiveqa": {"Who moved": "B", "lie about": "A", "Where was": "C", "谁移动": "B"},
    "mrke": {"Which hotels did the Orlo": "Tessel", "head office of Tessel": "Marn", "that the Orlo family": "Marn",
             "Which hotels did the Aster": "Boral", "head office of Boral": "Selk", "that the Aster family": "Selk",
             "When did Gold": "2011", "When did Mad": "2006", "Which is later": "2011", "Gold or Mad": "Mad Book",
             "Gold or Red": "Red Book", "Where is Pell": "Dray", "live in Dray": "90", "live where Pell": "900"}}


def scripted(kind):
    """A model that knows these answers and asks itself one sub-question; as a judge it compares the words, and holds
    that the reasoning has the first of the steps."""
    def reply(body):
        last = body["messages"][-1]["content"]
        if body["model"] == "judge":
            return judged(last)
        if "simpler questions" in last:
            return "What has to be known first?"
        asked = last[last.rindex("Question: "):].partition("\n")[0] if "Question: " in last else last
        said = next((answer for words, answer in ANSWERS[kind].items() if words in asked), "nothing")
        return f"<Thinking>Look.</Thinking>\n<Answer>{said}</Answer>"
    return reply


def judged(prompt):
    if "<reference_steps>" in prompt:
        return "Held: [0]"
    said, gold = (re.search(rf"<{part}>\s*(.*?)\s*</{part}>", prompt, re.DOTALL)[1]
                  for part in ("predicted_answer", "accepted_answer"))
    if "Grade: N" in prompt:
        return "Grade: 10" if said == gold else "Grade: 3"
    return "Grade: Correct\nError type: None" if said == gold else "Grade: Wrong\nError type: Others"


# The papers' columns and their figures, by hand: one question is wrong of two answerable ones (CReSt), of six, four and
# four; MDBench's is graded 3 of 10; DetectiveQA's have 3, 2, 1 and 2 steps; MRKE has three chains.
FIGURES = {
    "crest": {"unified": 0.75, "correct": 0.5, "partial": 0, "wrong": 0.5, "refusal_accuracy": 1, "citation_f1": 0.5},
    "mrceval": {"accuracy": 5 / 6, "unparsed": 0},
    "mdbench": {"graded_accuracy": 0.825, "graded_em": 0.75, "em": 0.75, "f1": 0.75},
    "detectiveqa": {"accuracy": 0.75, "reasoning_score": 7 / 12, "gm": sqrt(0.75 * 7 / 12)},
    "mrke": {"em": 2 / 3, "f1": 2 / 3, "joint_em": 1 / 3, "joint_f1": 1 / 3, "chain_correct": 1 / 3, "lucky": 1 / 3}}


@pytest.mark.parametrize("kind", [kind if kind in ("crest", "mrke") else pytest.param(kind, marks=pytest.mark.slow)
                                  for kind in FIGURES])
def test_one_command_runs_five_strategies_and_prints_the_columns_of_the_paper(ragbed, serve, tmp_path, kind):
    server = serve(scripted(kind))
    status, out, err = ragbed("run", kind, DATA / kind, "--model", f"{server.url}#m", "--reasoning", "all",
                              "--judge", f"{server.url}#judge", "--out", tmp_path, "--full")
    assert status == 0, err
    summary = json.loads((tmp_path / kind / "summary.json").read_text())
    assert summary["columns"] == list(BENCHMARKS[kind].scheme.columns)
    header, _ = run_table(summary["cells"], summary["columns"])
    assert {column.replace("_", " ") for column in summary["columns"]} <= set(header)
    assert {column for column in " ".join(header).split() if column in out.split()} >= {"outcomes", "calls"}
    assert out.count("[95 % CI]") == 1
    assert {cell["reasoning"] for cell in summary["cells"]} == set(CRESTS)
    conditions = BENCHMARKS[kind].about.settings["conditions"]
    assert {cell["condition"] for cell in summary["cells"]} == (
        {conditions} if isinstance(conditions, str) else set(conditions))
    for cell in summary["cells"]:
        figures = {name: cell["metrics"][name]["mean"] for name in FIGURES[kind]}
        assert figures == pytest.approx(FIGURES[kind]), cell["reasoning"]
        assert all(cell["outcomes"][name] == 0 for name in ("error", "malformed", "too_long", "timeout"))


@pytest.mark.parametrize(("kind", "expected"), [
    ("mrke", {"rules": ["reading"], "brief": True, "layout": "as_published", "reasoning": ["chain_of_thought"],
              "show": ["sub_questions", "question"], "sub_answers": "asked"}),
    ("mdbench", {"rules": ["reading"], "layout": "documents_first", "reasoning": ["direct", "chain_of_thought"]}),
    ("mrceval", {"rules": ["choice"], "layout": "as_published", "reasoning": ["direct"]})])
def test_the_papers_setting_is_a_benchmarks_own(kind, expected):
    settings = RunSettings.model_validate({"name": kind, "models": "m", "benchmark": {"kind": kind, "path": "p"}})
    resolved = yaml.safe_load(settings.to_yaml())
    assert {name: resolved[name] for name in expected} == expected
