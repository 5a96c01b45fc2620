"""Agents that follow a script, with real tools over an index: their figures and causes are known beforehand."""
import json
import re

NAMES = ("alpha", "beta", "gamma", "delta", "epsilon")
FILLER = "It was planned, built, tried and used like any other. " * 9
PAGES = {f"{name}.txt": f"The code of project {name} is {place}. {FILLER}" for place, name in enumerate(NAMES)}
REFUSAL = "I cannot answer because the question is unanswerable with the documents."


def search(query):
    return f'search: {{"query": "{query}", "k": 1}}'


def read(name):
    return f'open: {{"document": "{name}.txt"}}'


# Turns and final answer of each agent; a number stands for the passage of that project's page.
AGENTS = {
    "alpha": ([search("project alpha"), read("alpha"), "finish"], "0 [alpha]"),
    "beta": ([search("project alpha"), search("Project alpha?"), search("nothing at all"),
              'sql: {"query": "select 1 from x"}'], "0 [alpha]"),
    "gamma": ([search("project gamma"), read("nowhere"), "finish"], "9 [gamma]"),
    "delta": ([read("delta"), search("project alpha"), search("project beta"), "finish"], "9 [alpha]"),
    "epsilon": ([search("project beta"), "finish"], REFUSAL)}
CAUSES = {"alpha": "right", "beta": "never_found", "gamma": "not_opened", "delta": "not_used", "epsilon": "gave_up"}
FIGURES = ("gold_seen", "gold_opened", "gold_cited", "tool_calls", "tool_calls_search", "tool_calls_open",
           "tool_calls_repeated", "tool_calls_failed", "steps_to_gold", "steps_after_gold", "tokens_to_gold",
           "tokens_after_gold", "trajectory_tokens", "solved", "ended_by_answer", "ended_by_turns")
KNOWN = {"alpha": (1, 1, 1, 2, 1, 1, 0, 0, 1, 1, 110, 110, 440, 1, 1, 0),
         "beta": (0, 0, 0, 4, 3, 0, 1, 1, None, None, None, None, 550, 0, 0, 1),
         "gamma": (1, 0, 1, 2, 1, 1, 0, 1, 1, 1, 110, 110, 440, 0, 1, 0),
         "delta": (1, 1, 0, 3, 2, 1, 0, 0, 1, 2, 110, 220, 550, 0, 1, 0),
         "epsilon": (0, 0, 0, 1, 1, 0, 0, 0, None, None, None, None, 330, 0, 1, 0)}


def follow(body):
    said = [one["content"] for one in body["messages"]]
    name = re.search(r"code of project (\w+)\?", said[1])[1]
    turns, answer = AGENTS[name]
    numbers = {name: number for number, name in re.findall(r"\[(\d+)\]\nThe code of project (\w+)", "\n".join(said))}
    text = f"<Answer>{re.sub(r'[a-z]+(?=])', lambda found: numbers[found[0]], answer)}</Answer>" \
        if "final answer" in said[-1] else turns[sum(one["role"] == "assistant" for one in body["messages"])]
    return {"text": text, "usage": {"prompt_tokens": 100, "completion_tokens": 10}}


def test_each_figure_and_cause_is_the_one_that_the_script_leads_to(serve, town, ragbed):
    own = town.own(*({"id": name, "question": f"What is the code of project {name}?", "answer": str(place),
                      "gold_documents": [f"{name}.txt"]} for place, name in enumerate(NAMES)), pages=PAGES)
    path = town.config(serve(follow).url, benchmark=own, conditions="retrieved", retriever={"kind": "bm25", "k": 1},
                       judge="lexical", reasoning={"kind": "agent", "tools": ["search", "open", "sql"], "turns": 4,
                                                   "protocol": "text"})
    status, _, err = ragbed("run", path)
    assert status == 0, err
    scores = {record["result"]["question"]: record["result"]["scores"] for record in town.records()}
    assert {name: tuple(scores[name][figure] for figure in FIGURES) for name in NAMES} == KNOWN
    rows = {name: ragbed.json("diagnose", town.run, "--cause", cause)["questions"] for name, cause in CAUSES.items()}
    assert {name: [row["question"] for row in own] for name, own in rows.items()} == {name: [name] for name in NAMES}
    summary = json.loads((town.run / "summary.json").read_text())
    assert summary["cells"][0]["metrics"]["tokens_per_right"]["mean"] == 440 + 550 + 440 + 550 + 330
    assert {"never found", "gave up"} <= {one["title"] for one in summary["error_analysis"]["causes"]}
    assert "never found" in ragbed("show", town.run, "beta")[1]
