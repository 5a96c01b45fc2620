"""A sweep of a threshold: as many cells as thresholds, the calls of one, and what each answers and refuses."""
import json

import pytest
from bs4 import BeautifulSoup
from charted import words

REFUSE = {"kind": "supported", "otherwise": "refuse"}


def reply(body):
    """The first answer wrong and out of nowhere, the last short of a word, all others as the document has it."""
    last = body["messages"][-1]["content"]
    number = int(last.rpartition("in town ")[2].partition("?")[0])
    return {0: "999 people [1]", 5: "555 people, counted lately [1]"}.get(number, f"{number * 111} people [1]")


def made(serve, town, ragbed, reasoning, **settings):
    server = serve(reply)
    return server, ragbed.json("run", town.config(server.url, reasoning=reasoning, **settings))


def test_a_sweep_asks_what_one_threshold_asks(serve, town, ragbed):
    server, summary = made(serve, town, ragbed, {**REFUSE, "threshold": [0.0, 0.2, 0.6]})
    assert [f"threshold={one}" in row["reasoning"] for one, row in zip((0.0, 0.2, 0.6), summary["cells"], strict=True)
            ] == [True] * 3
    assert len(server.requests) == 6
    assert [row["usage"]["calls"] for row in summary["cells"]] == [6, 6, 6]


def test_a_sweep_of_judged_sufficiency_judges_once_too(serve, town, ragbed):
    def both(body):
        return "Sufficiency: 6" if "Judge whether" in body["messages"][-1]["content"] else reply(body)

    server = serve(both)
    settings = {"kind": "sufficient", "of": "direct", "iterations": 0, "threshold": [0.2, 0.5, 0.8]}
    summary = ragbed.json("run", town.config(server.url, reasoning=settings))
    assert len(server.requests) == 12
    assert [row["outcomes"]["refused"] for row in summary["cells"]] == [0, 0, 6]


def test_each_threshold_tells_what_it_answers_and_refuses(serve, town, ragbed):
    _, summary = made(serve, town, ragbed, [{**REFUSE, "threshold": [0.0, 0.2, 0.6]}, "direct"])
    rows = summary["tradeoff"]
    assert [row.get("threshold") for row in rows] == [0.0, 0.2, 0.6, None]
    assert len({row.get("sweep") for row in rows[:3]}) == 1
    assert [(row["answered"]["mean"], row["rightly"]["mean"], row["needlessly"]["mean"]) for row in rows[:3]] == [
        (1.0, 0.0, 0.0), (pytest.approx(5 / 6), 1.0, 0.0), (pytest.approx(4 / 6), 1.0, 0.2)]
    assert [row["risk"]["mean"] for row in rows[:2]] == [pytest.approx(1 / 6), 0.0]
    status, out, _ = ragbed("diagnose", town.run)
    assert status == 0
    assert "What each threshold answers and refuses" in out
    assert json.loads(ragbed("diagnose", town.run, "--json")[1])["tradeoff"] == rows
    report = BeautifulSoup((town.run / "report.html").read_text(), "html.parser")
    rows = report.select('[data-view="refusals:thresholds"] tbody tr')
    assert [words(row.select("th")[1]).replace(" ", "") for row in rows] == ["0", "0.2", "0.6"]


def test_strategies_of_different_settings_are_no_sweep(serve, town, ragbed):
    _, summary = made(serve, town, ragbed, [REFUSE, {**REFUSE, "threshold": 0.9, "of": "chain_of_thought"}, "direct"])
    assert all("sweep" not in row for row in summary["tradeoff"])
