"""What all questions of one cell may use together: asked in their order, the rest ends with the outcome `budget`."""
import json

import yaml


def outcomes(town):
    """By cell, the outcomes of its questions in their order, and what each used."""
    found = {}
    for record in town.records():
        result = record["result"]
        found.setdefault(result["cell"], []).append((result["outcome"], result["usage"]["calls"]))
    return list(found.values())


def test_questions_that_nothing_is_left_for_end_with_the_outcome_budget_and_count(ragbed, serve, town):
    server = serve(lambda _: "<Answer>Norway [1]</Answer>")
    path = town.config(server.url, reasoning=["direct", "chain_of_thought"], conditions="given",
                       cell_limits={"calls": 2}, concurrency=8)
    status, out, _ = ragbed("run", path, "--json")
    assert status == 0
    assert len(server.requests) == 4
    for cell in outcomes(town):
        assert sorted(cell) == [("answered", 1)] * 2 + [("budget", 0)] * (len(cell) - 2)
    rows = json.loads(out)["cells"]
    assert all(row["n"] == sum(row["outcomes"].values()) == 6 for row in rows)
    said = {record["result"]["failure"]["message"] for record in town.records() if record["result"]["failure"]}
    assert said == {"the cell may use 2 calls, and its questions have used 2"}


def test_the_tokens_of_earlier_questions_are_gone_for_later_ones(ragbed, serve, town):
    usage = {"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100}
    server = serve(lambda _: {"text": "<Answer>Norway [1]</Answer>", "usage": usage})
    path = town.config(server.url, reasoning="direct", conditions="given", cell_limits={"tokens": 250})
    assert ragbed("run", path)[0] == 0
    # The third question begins with 50 of them left, and its call uses 100.
    assert outcomes(town) == [[("answered", 1)] * 2 + [("budget", 1)] + [("budget", 0)] * 3]
    before = town.records()
    assert ragbed("rescore", town.run)[0] == 0
    assert [record["result"] for record in town.records()] == [record["result"] for record in before]


def test_a_stopped_run_goes_on_with_what_its_cells_have_left(ragbed, serve, town):
    server = serve(lambda _: {"status": 401} if len(server.requests) == 3 else "<Answer>Norway [1]</Answer>")
    path = town.config(server.url, reasoning="direct", conditions="given", cell_limits={"calls": 4}, concurrency=1)
    assert ragbed("run", path)[0] == 2
    assert ragbed("run", path)[0] == 0
    assert [outcome for outcome, _ in outcomes(town)[0]] == ["answered"] * 4 + ["budget"] * 2
    whole = [record["result"] for record in town.records()]
    assert ragbed("run", path, "--journal", "replay")[0] == 0
    assert [record["result"] for record in town.records()] == whole


def test_an_allowance_that_is_none_is_refused_in_one_line(ragbed, town):
    path = town.config("http://127.0.0.1:9/v1", cell_limits={"calls": 0})
    ragbed.refuses("run", path, says=["cell_limits.calls"])
    settings = yaml.safe_load(path.read_text()) | {"cell_limits": {"dollars": 1}}
    path.write_text(yaml.safe_dump(settings))
    ragbed.refuses("run", path, says=["dollars"])
