"""A judge that is broken loses no question: every answer keeps its record, and what is unjudged is counted and told."""
import json

import pytest

REPLY = "<Thinking>There is oil on his sleeve.</Thinking><Answer>B [1]</Answer>"
BROKEN = {
    "empty": ("", "empty twice"),
    "prose": ("A good answer, on the whole; I would call it correct, or 7 of 10.", "unreadable twice"),
    "another language": ("评分：正确\n分数：7\n包含的步骤：零和一", "unreadable twice"),
    "cut": ({"text": "Grade: 7\nHeld: [0]", "finish_reason": "length"}, "cut by the token limit twice"),
    "out of range or of two minds": ("Grade: 11\nGrade: Correct\nHeld: [0, 2]", "unreadable twice"),
    "failing": ({"status": 400}, "call failed: http_400"),
    "too long": ({"status": 400, "error": {"code": "context_length_exceeded", "message": "the context length is 8192 "
                                           "tokens; requested 9000"}}, "call failed: too_long"),
}


def crest(town):
    return {}


def mdbench(town):
    path = town.folder / "mdbench.json"
    path.write_text(json.dumps([
        {"question": f"How many lights were lit in {year}?", "ground_truth": "Seven lights",
         "documents": f"Document 1: Four in {year}.\n\nDocument 2: And three more.",
         "table": "|index|n|\n|1|4|\n|2|3|\n",
         "characteristic_breakdown": dict.fromkeys(
             ("multi-hop", "temporal", "numeric", "information_aggregation", "soft_reasoning"), 2)}
        for year in (1871, 1880)]))
    return {"benchmark": {"kind": "mdbench", "path": str(path)}, "reasoning": "direct", "conditions": "provided"}


def detectiveqa(town):
    folder = town.folder / "detectiveqa"
    folder.mkdir()
    (folder / "7-The Lamp-Ida Nell.txt").write_text("".join(f"[{at}] Paragraph {at} of oil.\n" for at in range(1, 13)))
    questions = [{"question": f"Who moved lamp {lamp}?", "options": {"A": "Ida", "B": "Otto"}, "answer": "B",
                  "reasoning": ["There was oil on his sleeve.", "So Otto held it."], "clue_position": [4, -1],
                  "answer_position": 11, "distraction": {}} for lamp in (1, 2, 3)]
    (folder / "anno_data_en.json").write_text(json.dumps([
        {"novel_id": 7, "num_paragraphs": 12, "time_cost": 4, "questions": questions}]))
    return {"benchmark": {"kind": "detectiveqa", "path": str(folder)}, "reasoning": "direct", "conditions": "gold",
            "rules": "choice"}


# Settings, questions, those that a judge is asked of, and the figures that rest on it.
RUBRICS = {"grades": (crest, 6, 5, ("unified", "correct", "partial", "wrong")),
           "points": (mdbench, 2, 2, ("graded_accuracy", "graded_em")),
           "steps": (detectiveqa, 3, 3, ("reasoning_score",))}


@pytest.mark.parametrize(("rubric", "broken"), [(rubric, broken) for rubric in RUBRICS for broken in BROKEN
                                                if rubric == "grades" or broken in ("prose", "failing")])
def test_a_broken_judge_loses_no_question(serve, town, ragbed, rubric, broken):
    (benchmark, asked, due, figures), (line, note) = RUBRICS[rubric], BROKEN[broken]
    model, judge = serve(lambda _: REPLY), serve(lambda _: line)
    config = town.config(model.url, judge=f"{judge.url}#judge", calls={"calls": {"attempts": 1}}, **benchmark(town))
    status, out, err = ragbed("run", config, "--full")
    assert status == 0, err
    assert len(judge.requests) == due * (1 if "call failed" in note else 2)
    words = " ".join(out.split())
    assert f"{due} of {due} answers are unjudged: {note} ({due}). They count as 0 in the judge's metrics" in words
    assert any(" unjudged " in line and "outcomes" in line for line in out.splitlines())
    assert (town.run / "report.html").read_text().count(" answers are unjudged: ") == 1
    results = [record["result"] for record in town.records()]
    assert [result["outcome"] for result in results] == ["answered"] * asked
    verdicts = [result["verdict"] for result in results if result["verdict"] is not None]
    assert [verdict["note"] for verdict in verdicts] == [note] * due
    (cell,) = json.loads((town.run / "summary.json").read_text())["cells"]
    assert (cell["n"], cell["outcomes"]["answered"]) == (asked, asked)
    metrics = cell["metrics"]
    assert (metrics["unjudged"]["mean"], metrics["unjudged"]["n"]) == (1.0, due)
    assert {name: (metrics[name]["mean"], metrics[name]["n"]) for name in figures} == {
        name: (0.0, asked if name == "unified" else due) for name in figures}


@pytest.mark.parametrize("rubric", RUBRICS)
def test_a_judge_that_errs_once_is_asked_once_more(serve, town, ragbed, rubric):
    good = {"grades": "Grade: Correct", "points": "Grade: 9", "steps": "One is.\nHeld: [0]"}[rubric]
    benchmark, _, due, figures = RUBRICS[rubric]
    model = serve(lambda _: REPLY)
    judge = serve(lambda body: good if len(body["messages"]) > 1 else "Hm.")
    status, out, _ = ragbed("run", town.config(model.url, judge=f"{judge.url}#judge", **benchmark(town)),
                                "--full")
    assert (status, len(judge.requests)) == (0, 2 * due)
    assert "unjudged" not in out
    metrics = json.loads((town.run / "summary.json").read_text())["cells"][0]["metrics"]
    # of the six towns, five are Correct and the sixth, which has no answer, was not refused
    assert metrics[figures[0]]["mean"] == {"grades": 0.5, "points": 0.9, "steps": 0.5}[rubric]


def test_a_broken_judge_of_points_stops_no_scoring_as_published(serve, town, ragbed):
    model, judge = serve(lambda _: REPLY), serve(lambda _: "7.5")
    config = town.config(model.url, judge=f"{judge.url}#judge", scoring="as-published", **mdbench(town))
    (cell,) = ragbed.json("run", config)["cells"]
    assert (cell["metrics"]["unjudged"]["mean"], cell["n"]) == (1.0, 2)
    assert cell["metrics"]["graded_accuracy"]["n"] == 0
    assert len(judge.requests) == 2 * 2  # to shorten, and once


def test_the_lexical_judge_stands_beside_its_figures_of_every_rubric(serve, town, ragbed):
    for benchmark in (mdbench, detectiveqa):
        status, out, _ = ragbed("run", town.config(serve(lambda _: REPLY).url, benchmark.__name__, **benchmark(town)),
                                "--full")
        assert status == 0
        assert "judge lexical" in " ".join(out.split())
