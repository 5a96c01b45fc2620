"""A judge that is broken gives no score and loses no question: each answer keeps its record, and the figures say so."""
import json
import re

import pytest

from ragbed import open_run
from ragbed.experiments.metrics import ScoredQuestion, aggregate

REPLY = "<Thinking>There is oil on his sleeve.</Thinking><Answer>B [1]</Answer>"
BROKEN = {
    "empty": ("", "empty twice"),
    "prose": ("A good answer, on the whole; I would call it correct, or 7 of 10.", "unreadable twice"),
    "another language": ("评分：正确\n分数：7\n包含的步骤：零和一", "unreadable twice"),
    "cut": ({"text": "Grade: 7\nHeld: [0]", "finish_reason": "length"}, "cut by the token limit twice"),
    "out of range or of two minds": ("Grade: 11\nGrade: Correct\nHeld: [0, 2]", "unreadable twice"),
    "prompt cut": ({"text": "Grade: 7\nHeld: [0]", "usage": {"prompt_tokens": 9, "completion_tokens": 3}},
                   "call failed: prompt_cut"),
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
    assert status == 1, err
    assert len(judge.requests) == due * (1 if "call failed" in note else 2)
    words = " ".join(out.split())
    assert words.startswith(f"{due} of {due} answers are unjudged: {note} ({due}); no cell has a score from it.")
    assert any(" unjudged " in line and "outcomes" in line for line in out.splitlines())
    assert f'<p class="headline">{due} of {due} answers are unjudged' in (town.run / "report.html").read_text()
    results = [record["result"] for record in town.records()]
    assert [result["outcome"] for result in results] == ["answered"] * asked
    verdicts = [result["verdict"] for result in results if result["verdict"] is not None]
    assert [verdict["note"] for verdict in verdicts] == [note] * due
    (cell,) = json.loads((town.run / "summary.json").read_text())["cells"]
    assert (cell["n"], cell["outcomes"]["answered"]) == (asked, asked)
    metrics = cell["metrics"]
    assert (metrics["unjudged"]["mean"], metrics["unjudged"]["n"]) == (1.0, due)
    assert {name: metrics[name] for name in figures} == {
        name: {"mean": None, "low": None, "high": None, "n": 0} for name in figures}


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
    (cell,) = json.loads(ragbed("run", config, "--json")[1])["cells"]
    assert (cell["metrics"]["unjudged"]["mean"], cell["n"]) == (1.0, 2)
    assert cell["metrics"]["graded_accuracy"]["n"] == 0
    assert len(judge.requests) == 2 * 2  # to shorten, and once


def run_two(serve, town, grading, **settings):
    """A run of 30 questions, each answered by two strategies, whose answers the judge sees with and without `STEPS`."""
    town.write([town.row(number) for number in range(30)])
    answer = "<Answer>{} people [1]</Answer>".format
    model = serve(lambda body: answer("STEPS" if "<Thinking>" in str(body["messages"]) else "7"))
    judge = serve(lambda body: grading(body["messages"][0]["content"]))
    return town.config(model.url, judge=f"{judge.url}#judge", reasoning=["direct", "chain_of_thought"],
                       calls={"calls": {"attempts": 1}}, **settings)


@pytest.mark.slow
@pytest.mark.parametrize("broken", [{"status": 400}, {"status": 500}, "Hm."])
def test_a_judge_that_fails_for_one_cell_scores_only_the_other(serve, town, ragbed, broken):
    config = run_two(serve, town, lambda asked: broken if "STEPS" in asked else "Grade: Correct")
    status, out, _ = ragbed("run", config)
    assert status == 1
    assert out.startswith("29 of 58 answers are unjudged: ")
    assert "`chain_of_thought` has no score from it" in " ".join(out.split())
    summary = json.loads((town.run / "summary.json").read_text())
    direct, other = (cell["metrics"]["unified"] for cell in summary["cells"])
    assert (direct["mean"], direct["n"], other["mean"], other["n"]) == (0.5, 30, None, 0)  # the refusal was due
    assert summary["comparisons"]["pairs"] == []
    status, _, err = ragbed("compare", town.run, "--fail-if", "unified < baseline - 1")
    assert (status, "the judge graded no answer of one of them" in err) == (2, True)
    with open_run(town.run) as run:
        frame = run.frame().groupby("cell_name")["score.correct"]
        assert frame.mean().to_dict() == pytest.approx({"direct": 1.0, "chain_of_thought": float("nan")}, nan_ok=True)


@pytest.mark.slow
def test_unjudged_answers_leave_bounds_wherever_a_score_is_shown(serve, town, ragbed):
    """The judge grades nothing of every third town: 10 of 29 answers of one cell."""
    def grading(asked):
        number = int(re.findall(r"in town (\d+)", asked)[-1])
        return "Grade: Correct" if "STEPS" not in asked or number % 3 else {"status": 400}

    status, out, _ = ragbed("run", run_two(serve, town, grading), "--full")
    assert status == 0
    assert out.startswith("9 of 58 answers are unjudged: call failed: http_400 (9); scores cover the others")
    assert "0.34 to 0.50" in out  # the half of the answerable questions is 20 of 29 at least, and 29 at most
    summary = json.loads((town.run / "summary.json").read_text())
    first, second = (cell["metrics"] for cell in summary["cells"])
    assert "bounds" not in first["unified"]
    assert (second["unified"]["mean"], second["unified"]["n"]) == (0.5, 21)
    assert second["unified"]["bounds"] == pytest.approx([20 / 29 / 2, 0.5])
    assert (second["wrong"]["mean"], second["wrong"]["bounds"]) == (0.0, pytest.approx([0.0, 9 / 29]))
    assert "bounds" not in second["citation_f1"]
    (pair,) = summary["comparisons"]["pairs"]
    assert (pair["n"], pair["difference"], pair["bounds"]) == (21, 0.0, pytest.approx([-9 / 29 / 2, 0.0]))
    assert "with unjudged 0.34 to 0.50" in (town.run / "report.html").read_text()
    with open_run(town.run) as run:
        means = run.frame().groupby("cell_name")[["score.correct", "score.correct.least", "score.correct.most"]].mean()
        assert list(means.loc["chain_of_thought"]) == pytest.approx([1.0, 20 / 29, 1.0])
    ragbed("export", town.run, town.folder / "answers.csv")
    assert "score.unified.least" in (town.folder / "answers.csv").read_text().splitlines()[0]
    # A gate counts every unjudged answer against the cell.
    assert ragbed("compare", town.run, "--fail-if", "unified < baseline - 0.2")[0] == 0
    status, out, err = ragbed("compare", town.run, "--fail-if", "unified < baseline - 0.1")
    assert (status, "with unjudged: -0.16 to +0.00" in err, "-0.16 to +0.00" in out) == (1, True, True)


def test_a_repeat_that_is_unjudged_is_a_share_of_its_question():
    rows = [ScoredQuestion(True, "answered", {"unified": 1.0, "correct": 1.0, "unjudged": 0.25}),
            ScoredQuestion(True, "refused", {"unified": -1.0, "correct": 0.0, "unjudged": 0.0})]
    assert aggregate(rows)["unified"]["bounds"] == [-0.125, 0.0]
    assert aggregate(rows)["correct"]["bounds"] == [0.375, 0.5]


def test_the_lexical_judge_stands_beside_its_figures_of_every_rubric(serve, town, ragbed):
    for benchmark in (mdbench, detectiveqa):
        status, out, _ = ragbed("run", town.config(serve(lambda _: REPLY).url, benchmark.__name__, **benchmark(town)),
                                "--full")
        assert status == 0
        assert "judge lexical" in " ".join(out.split())
