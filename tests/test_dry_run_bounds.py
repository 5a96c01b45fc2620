"""What a dry run says that a run makes at most, held against a server that is never content."""
from __future__ import annotations

import inspect
import itertools
import json

import pytest

from strategies.catalogue import ANSWERING, REASONING, RETRIEVAL

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
LAPS = 4


def raised(name, function):
    """The strategy with more laps than it has by default."""
    return {"kind": name, "laps": LAPS} if "laps" in inspect.signature(function).parameters else name


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
    status, out, _ = ragbed("run", path, "--dry-run", "--json")
    assert status == 0
    planned = [(cell["name"], cell["calls"]["most"]) for cell in json.loads(out)["cells"]]
    ragbed("run", path)
    cells = json.loads((town.run / "summary.json").read_text())["cells"]
    made = [cell["usage"]["calls"] for cell in cells]
    assert [(name, most, calls) for (name, most), calls in zip(planned, made, strict=True) if calls > most] == []
    assert max(made) >= LAPS
