"""`ragbed diagnose`: the causes of whole runs, asked of a server whose behaviour depends on the prompt."""
import json
import re
import shutil

import pytest

from ragbed.strategies import REFUSAL

# What the server says to each question: with both documents, with the gold alone, and with none.
SAID = {
    0: ("right", "refused", "refused"),  # the unanswerable one
    1: ("right", "right", "right"),
    2: ("cites other", "right", "wrong"),
    3: ("wrong", "right", "wrong"),
    4: ("wrong", "wrong", "refused"),
    5: ("refused", "right", "wrong"),
    6: ("nothing", "wrong", "right"),
    7: ("fails", "right", "wrong"),
    8: ("wrong", "fails", "wrong"),
    9: ("partly", "refused", "nothing"),
}
# By hand, from the definitions alone: given, evidence, closed-book.
CAUSES = {
    0: ("missing_refusal", "right", "not_scored"),
    1: ("right", "right", "right"),
    2: ("citation_only", "right", "closed_book_wrong"),
    3: ("distracted", "right", "closed_book_wrong"),
    4: ("reasoning_error", "reasoning_error", "closed_book_wrong"),
    5: ("wrong_refusal", "right", "closed_book_wrong"),
    6: ("format", "reasoning_error", "right"),
    7: ("failed", "right", "closed_book_wrong"),
    8: ("undetermined", "failed", "closed_book_wrong"),
    9: ("reasoning_error", "wrong_refusal", "format"),
}
CONDITIONS = ["provided", "gold", "closed-book"]


def reply(body):
    shown = "\n".join(str(message["content"]) for message in body["messages"])
    number = int(re.findall(r"live in town (\d+)\?", shown)[-1])
    place = 0 if "The mayor of town" in shown else 1 if "people</td>" in shown else 2
    gold = f"{number * 111} people"
    return {"right": f"<Answer>{gold} [1]</Answer>", "cites other": f"<Answer>{gold} [2]</Answer>",
            "wrong": "<Answer>nobody [1]</Answer>", "refused": f"<Answer>{REFUSAL}</Answer>", "nothing": "",
            "partly": f"<Answer>{number * 111} houses [1]</Answer>",
            "fails": {"status": 400, "error": {"message": "no"}}}[SAID[number][place]]


@pytest.fixture
def run(serve, town, ragbed, kept):
    """The folder of the run."""
    if not kept.exists():
        town.write([town.row(number) for number in SAID])
        status, _, err = ragbed("run", town.config(serve(reply).url, conditions=CONDITIONS))
        assert status == 0, err
        shutil.copytree(town.run, kept)
    return kept


def number_of(question):
    return int(question.rsplit("-", 1)[-1])


def test_every_question_has_the_cause_that_a_person_finds(run, ragbed):
    found = {}
    for name in dict.fromkeys(cause for causes in CAUSES.values() for cause in causes):
        for row in ragbed.json("diagnose", run, "--cause", name)["questions"]:
            found.setdefault(number_of(row["question"]), {})[row["name"]] = name
    assert {number: tuple(causes[name] for name in CONDITIONS) for number, causes in sorted(found.items())} == CAUSES


def test_the_summary_has_the_shares_and_they_add_up(run, ragbed):
    summary = json.loads((run / "summary.json").read_text())
    said = summary["error_analysis"]
    assert said["causes"][0]["name"] == "right"
    for place, row in enumerate(said["cells"]):
        causes = [by_cell[place] for by_cell in CAUSES.values()]
        assert {name: round(share["mean"] * 10) for name, share in row["causes"].items() if share["mean"]} == \
            {name: causes.count(name) for name in causes}
        assert sum(share["mean"] for share in row["causes"].values()) == pytest.approx(1)
        assert all(share["n"] == row["n"] == 10 and share["low"] <= share["mean"] <= share["high"]
                   for share in row["causes"].values())
    again = ragbed.json("diagnose", run)
    assert again["causes"] == said["causes"]
    assert [{key: value for key, value in row.items() if key != "name"} for row in again["cells"]] == said["cells"]
    assert (again["notes"], again["tradeoff"]) == (said["notes"], summary["tradeoff"])


def test_what_was_known_and_in_view_stands_beside_the_causes(run, ragbed):
    given, evidence, closed = ragbed.json("diagnose", run)["cells"]
    assert [(row["known"]["mean"], row["known"]["n"]) for row in (given, evidence, closed)] == \
        [(0.5, 2), (0.2, 5), (None, 0)]  # right with both documents are 1 and 2; over the gold 1, 2, 3, 5 and 7
    assert [(row["gold_whole"]["mean"], row["gold_whole"]["n"]) for row in (given, evidence, closed)] == \
        [(1.0, 9), (1.0, 9), (None, 0)]


def test_cells_are_paired_with_the_gold_alone(run, ragbed):
    given, closed = ragbed.json("diagnose", run)["joint"]
    assert [(row["name"], row["n"], row["both"], row["lost"], row["gained"], row["neither"])
            for row in (given, closed)] == [("provided", 9, 2, 3, 0, 4), ("closed-book", 9, 1, 4, 1, 3)]
    assert (given["kept"]["mean"], given["kept"]["n"]) == (0.4, 5)
    assert (given["mended"]["n"], given["others"]["mean"], given["others"]["n"]) == (0, pytest.approx(5 / 9), 9)
    assert (given["p"], closed["p"]) == (0.25, 0.375)  # McNemar: 2 / 2^3, and 2 * 6 / 2^5
    assert (given["p_holm"], closed["p_holm"]) == (0.5, 0.5)


def test_the_tables_fit_and_say_what_was_meant(run, ragbed):
    status, out, err = ragbed("diagnose", run)
    assert status == 0, err
    assert max(map(len, out.splitlines()[:20])) <= 150
    assert "right by unified" in out
    assert "Why answers are right or wrong (shares of questions)" in out
    assert "wrong refusal" in out
    assert "retrieval miss" not in out.split("Knowledge and gold")[0]
    assert "`distracted` may be due to chance in 1 of 1 cells" in out  # three lost, none gained: p is 0.5
    assert "1 of 30 answers are partially correct. They count as wrong here, each with its cause." in out
    status, out, _ = ragbed("diagnose", run, "--cause", "distracted", "--cell", "provided")
    assert status == 0
    assert re.search(r"#4 +\S.*\? +answered +0 +1 of 1 gold in view; gold cited; right with the gold only;\s+wrong "
                     r"closed-book", out), out
    assert "provided" not in out  # of one cell
    assert "no question has this cause." in ragbed("diagnose", run, "--cause", "retrieval miss")[1]


def test_what_is_not_there_is_said_in_one_line(run, ragbed, tmp_path):
    ragbed.refuses("diagnose", run, "--cause", "laziness", says=["unknown cause 'laziness'", "retrieval_miss"])
    ragbed.refuses("diagnose", tmp_path, says=["holds no run"])


def test_verify_computes_the_causes_again(run, ragbed, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    summary = json.loads((copy / "summary.json").read_text())
    summary["error_analysis"]["cells"][0]["causes"]["right"]["mean"] = 0.9
    (copy / "summary.json").write_text(json.dumps(summary))
    status, out, _ = ragbed("verify", copy)
    assert status == 1
    assert "error_analysis.cells[0].causes.right.mean: 0.9 in summary.json, 0.1 from the records" in out


def test_without_the_conditions_a_run_says_what_cannot_be_told(serve, town, ragbed):
    town.write([town.row(number) for number in SAID])
    status, out, err = ragbed("run", town.config(serve(reply).url), "--full")
    assert status == 0, err
    assert "4 answers are wrong with the gold in view. Add `gold` to the conditions to find out whether other " \
           "passages distracted the model or its reasoning failed." in " ".join(out.split())
    assert "wrong" in out.split("Why answers are right or wrong")[1].splitlines()[1]
