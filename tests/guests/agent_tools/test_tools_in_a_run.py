"""Runs whose agent uses every tool over an index, killed, continued, and replayed without them."""
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from patience import SECONDS

from ragbed.agents.scripted import tool_call_reply
from ragbed.experiments.guests.agent_tools.processes import ToolPool

ROWS = ("<tr><th>Year</th><th>Number</th></tr><tr><td>2000</td><td>507,467</td></tr>"
        "<tr><td>2020</td><td>693,494</td></tr>")
PAGES = {"oslo.html": f"<h1>Oslo</h1><p>Oslo lies on a fjord.</p><table><caption>People</caption>{ROWS}</table>",
         "rome.html": "<h1>Rome</h1><p>Rome lies on the Tiber.</p>"}
QUESTION = {"id": "q", "question": "By how many people did Oslo grow?", "answer": "186027",
            "gold_documents": ["oslo.html"]}
LOOKUP = '''
def lookup(town: str) -> str:
    """Look up a town."""
    return {"Oslo": "known"}[town]
'''
SERVER = {"mcp": {"command": [sys.executable, str(Path(__file__).parent / "mcp_test_server.py"), "stdio"]},
          "only": ["forecast"]}
MOST = "SELECT max(number) AS n FROM people"
TURNS = [[("list", {}), ("grep", {"pattern": "fjord"}), ("search_words", {"query": "Tiber", "k": 1}), ("search", {
    "query": "Oslo", "k": 1})],
         [("open", {"document": "oslo.html", "lines": "1-3"}), ("sql", {"query": MOST})],
         [("calculate", {"expression": "693,494 - 507,467"}), ("lookup", {"town": "Rome"}),
          ("forecast", {"city": "Oslo"}), ("grep", {"pattern": "("})]]


def say(body, turns=TURNS):
    turn = sum(message["role"] == "assistant" for message in body["messages"])
    if turn == len(turns) or body.get("tool_choice") == "none":
        return "<Answer>186027 [1]</Answer>"
    calls = tool_call_reply(turns[turn], id=f"call_{turn}_").tool_calls
    return {"message": {"role": "assistant", "content": None, "tool_calls": list(calls)}, "finish_reason": "tool_calls"}


@pytest.mark.slow
def test_an_agent_uses_every_tool_and_a_replay_starts_none(town, serve, ragbed, own_cache, monkeypatch):
    server = serve(say)
    (town.folder / "my.py").write_text(LOOKUP)
    tools = ["list", "grep", "search", "search_words", "open", "sql", "calculate", f"{town.folder}/my.py:lookup"]
    path = town.config(server.url, benchmark=town.own(QUESTION, pages=PAGES),
                       reasoning=[{"kind": "agent", "tools": [*tools, SERVER]}],
                       retriever=["bm25", {"kind": "bm25", "k": 3, "name": "words"}])
    assert ragbed("run", path)[0] == 0
    first = town.records()[0]["result"]
    steps = [(step["purpose"], len(step["found"]), bool(step["failure"]))
             for step in first["trace"] if step["kind"] == "tool"]
    assert steps == [("list", 0, False), ("grep", 1, False), ("search_words", 1, False), ("search", 1, False),
                     ("open", 1, False), ("sql", 1, False), ("calculate", 0, False), ("lookup", 0, True),
                     ("forecast", 0, False), ("grep", 0, True)]
    results = [message["content"] for message in server.requests[3][0]["messages"] if message["role"] == "tool"]
    assert results[1] == ("<documents>\n1 matching line in oslo.html (1).\n\noslo.html, line 3:\n\n[1]\nOslo lies on a "
                          "fjord.\n</documents>")
    assert results[6] == "<documents>\n186027\n</documents>"
    assert (first["outcome"], len(first["evidence"])) == ("answered", 5)
    summary = (town.run / "summary.json").read_bytes()
    server.requests.clear()
    monkeypatch.setattr(ToolPool, "start", None)
    assert ragbed("run", path, "--journal", "replay")[0] == 0
    assert (town.run / "summary.json").read_bytes() == summary
    assert not server.requests


ONE_BY_ONE = [[(name, arguments)] for name, arguments in (
    ("search", {"query": "Oslo", "k": 1}), ("list", {}), ("grep", {"pattern": "fjord"}),
    ("open", {"document": "oslo.html", "lines": "1-3"}), ("sql", {"query": MOST}),
    ("calculate", {"expression": "693,494 - 507,467"}), ("lookup", {"town": "Oslo"}), ("forecast", {"city": "Oslo"}))]
COUNTED_LOOKUP = '''
from pathlib import Path

def lookup(town: str) -> str:
    """Look up a town."""
    with Path(__file__).with_name("called").open("a") as file:
        file.write(town + "\\n")
    return f"{town} is known."
'''


@pytest.mark.slow
def test_an_agent_killed_after_each_sort_of_call_continues_to_the_same_bytes(
        town, serve, ragbed, own_cache, monkeypatch):
    """The model's server holds its reply to the request with the n-th result; the run is then killed."""
    held, results = threading.Event(), [0]

    def reply(body):
        shown = sum(message["role"] == "tool" for message in body["messages"])
        if shown == results[0]:
            held.set()
            return {"hold": threading.Event()}
        return say(body, ONE_BY_ONE)

    (town.folder / "my.py").write_text(COUNTED_LOOKUP)
    program = shutil.copy(SERVER["mcp"]["command"][1], town.folder / "weather.py")
    tools = [call[0] for (call,) in ONE_BY_ONE[:6]] + [f"{town.folder}/my.py:lookup", {
        "mcp": {"command": [sys.executable, str(program), "stdio"]}, "only": ["forecast"]}]
    other = {**QUESTION, "id": "r", "question": "How much did it grow?"}
    settings = {"benchmark": town.own(QUESTION, other, pages=PAGES),
                "reasoning": [{"kind": "agent", "tools": tools, "turns": 9}], "retriever": "bm25", "concurrency": 1}
    server = serve(reply)
    path = town.config(server.url, **settings)
    for results[0] in range(1, 9):
        held.clear()
        child = subprocess.Popen([sys.executable, "-m", "ragbed", "run", str(path)], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        assert held.wait(SECONDS), f"call {results[0]} was not reached"
        child.kill()
        child.wait()
    results[0] = None
    requests = len(server.requests)
    assert ragbed("run", path)[0] == 0
    assert (requests, len(server.requests)) == (16, 16 + 2 + 10)  # only what was held is sent again
    assert (town.folder / "called").read_text() == "Oslo\n"  # the second question makes an equal call
    steps = [(step["purpose"], step["failure"]) for step in town.records()[0]["result"]["trace"]
             if step["kind"] == "tool"]
    assert steps == [(name, None) for ((name, _),) in ONE_BY_ONE]
    made = (town.run / "summary.json").read_bytes(), town.hashes()

    program.unlink()
    server.requests.clear()
    with monkeypatch.context() as patched:
        patched.setattr(ToolPool, "start", None)
        assert ragbed("run", path, "--journal", "replay")[0] == 0
    assert ((town.run / "summary.json").read_bytes(), town.hashes(), server.requests) == (*made, [])

    shutil.copy(SERVER["mcp"]["command"][1], program)
    town.run = town.folder / "runs" / "undisturbed"
    assert ragbed("run", town.config(server.url, file="undisturbed", **settings))[0] == 0
    assert ((town.run / "summary.json").read_bytes().replace(b'"undisturbed"', b'"town"'), town.hashes()) == made
