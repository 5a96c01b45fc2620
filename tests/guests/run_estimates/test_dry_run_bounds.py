"""What a dry run says that a run makes at most, held against a server that is never content."""
import inspect
import itertools
import json
import random
from types import SimpleNamespace

import pytest

from ragbed.agents import Limits, ModelSettings, Scripted
from ragbed.agents.scripted import unsatisfied_reply
from ragbed.documents import Chunk
from ragbed.experiments.guests.run_estimates.bounds import estimate_bounds
from ragbed.strategies import ANSWERING, REASONING, REFUSAL, RETRIEVAL, Task
from ragbed.strategies.settings import strategy_config

UNCONTENT = """Something else is missing, namely {new}.
Needed: {new}
Missing: {new}
Grade: 0
Sufficiency: 0
Follow-up: Who or what is {new}?
Fault: it says nothing of {new}
Search: {new} first
Search: {new} second
Search: {new} third
{new} = nobody + 1
1: no
complex
"""
ANSWERING_TOO = UNCONTENT + "<Thinking>Unknown.</Thinking>\n<Answer>Quorl of 98765{new} [1]</Answer>"
ITERATIONS = 4


def raised(name, function):
    """The strategy with more iterations than it has by default."""
    return {"kind": name, "iterations": ITERATIONS} if "iterations" in inspect.signature(function).parameters else name


def sides():
    """Reasoning and retrieval strategies of a run: one of the two varies."""
    reasoning = [raised(name, REASONING[name]) for name in ANSWERING if name != "few_shot"]
    retrieval = [raised(name, function) for name, function in RETRIEVAL.items() if name != "none"]
    return {"reasoning": (reasoning, ["once"]), "retrieval": (["direct"], retrieval)}


@pytest.mark.slow
@pytest.mark.parametrize("form", [UNCONTENT, ANSWERING_TOO], ids=["no_answer", "answers"])
@pytest.mark.parametrize("side", ["reasoning", "retrieval"])
def test_no_strategy_makes_more_calls_than_planned_whatever_it_is_told(ragbed, serve, town, side, form):
    fresh = itertools.count()
    server = serve(lambda body: form.replace("{new}", f"w{(turn := next(fresh))} town {turn % 6}"))
    reasoning, retrieval = sides()[side]
    path = town.config(server.url, reasoning=reasoning, retrieval=retrieval, conditions="retrieved",
                       retriever={"kind": "bm25", "k": 2}, limits={"calls": 1_000, "searches": 1_000},
                       benchmark={"kind": "crest", "path": str(town.crest), "limit": 1})
    planned = [(cell["name"], cell["calls"]["most"]) for cell in ragbed.json("run", path, "--dry-run")["cells"]]
    ragbed("run", path)
    cells = json.loads((town.run / "summary.json").read_text())["cells"]
    made = [cell["usage"]["calls"] for cell in cells]
    assert [(name, most, calls) for (name, most), calls in zip(planned, made, strict=True) if calls > most] == []
    assert max(made) >= ITERATIONS


CONTENT, ANSWER = "Grade: 3\nSufficiency: 10\n1: yes\nYes.", "<Answer>Ada [1]</Answer>"
MIXED = [*(raised(name, REASONING[name]) for name in ANSWERING if name != "few_shot"),
         {"kind": "sufficient", "of": "least_to_most"}, {"kind": "self_consistency", "of": "sufficient", "samples": 3},
         {"kind": "supported", "by": "model", "of": {"kind": "sufficient", "of": "direct"}},
         {"kind": "supported", "by": "model", "of": "least_to_most"}]


@pytest.mark.parametrize(("reasoning", "retrieval"), [
    *((one, "once") for one in MIXED), *((one, "corrective") for one in ("direct", "self_ask", "ircot", "quote_first")),
    ("sufficient", "corrective"), ("supported", "adaptive")], ids=str)
def test_no_mix_of_replies_makes_fewer_or_more_calls_than_planned(reasoning, retrieval):
    limits = Limits(calls=200, searches=200, tokens=10**9, max_tokens=64)
    task = Task("q", "Who built the bridge?", strategy_config.retrieval(retrieval))
    tasks = SimpleNamespace(reasoning=strategy_config.reasoning(reasoning),
                            settings=SimpleNamespace(limits=limits, calls=ModelSettings()),
                            cell=SimpleNamespace(model="m"), plan=SimpleNamespace(follow_up=None),
                            whole=lambda question: task, sub_answers=lambda question: "none")
    bounds = estimate_bounds(tasks, None, lambda k, turn: [document(turn, place) for place in range(3)], None)
    for seed in range(15):
        rng, seen = random.Random(seed), {}

        def reply(call, rng=rng):
            return rng.choice([
                unsatisfied_reply(call), unsatisfied_reply(call, lists=True, tools=False), REFUSAL, "", CONTENT, ANSWER,
                UNCONTENT.replace("{new}", str(rng.random()))])

        def find(search, seen=seen):
            return [document(seen.setdefault(search.query, len(seen)), place) for place in range(3)]

        model = Scripted(reply, find, limits)
        model.play(tasks.reasoning, task.question, task.retrieval)
        assert bounds.least.calls <= len(model.calls) <= bounds.most.calls


def document(turn, place):
    return Chunk(f"{turn}-{place}", "d", "plain", 0, 9, f"Report {turn}.{place} says that Ada built the bridge.")
