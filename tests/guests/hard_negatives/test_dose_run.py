"""Dose and response end to end: runs whose curves are known by hand, `ragbed dose`, and what reads them again."""
import json
import re
import shutil

import pytest
from command_line import run_command
from conftest import Town
from scripted_server import ScriptedServer
from test_mined_benchmark import SOURCE

from ragbed.experiments.guests.datasets.hotpotqa import HotpotQa
from ragbed.experiments.guests.hard_negatives.benchmark import MinedBenchmark
from ragbed.strategies import REFUSAL


def rgb(folder, negatives=4, **fields):
    """Six questions of RGB's shape, each with one passage that holds the answer and some that do not."""
    path = folder / "rgb.jsonl"
    path.write_text("".join(json.dumps({
        "id": number, "query": f"What is the code of town {number}?", "answer": f"code {number}{number}",
        "positive": [f"Town {number} has the code {number}{number}."],
        "negative": [f"Shop {number}-{at} is closed." for at in range(negatives)], **fields}) + "\n"
                            for number in range(6)))
    return {"kind": "rgb", "path": str(path), "passages": 1, "noise": 0}


def distracted(body):
    """Right where the town's number is at least that of the negatives in view; the first town refuses at four. One that
    reasons is always right."""
    said = body["messages"][-1]["content"]
    number, negatives = int(re.findall(r"of town (\d)\?", said)[-1]), said.count("is closed")
    if "<Thinking>" in said or number >= negatives:
        return f"<Thinking>It says so.</Thinking><Answer>code {number}{number} [1]</Answer>"
    return f"<Answer>{REFUSAL if negatives == 4 and number == 0 else 'a shop [2]'}</Answer>"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run over RGB's own negatives, made once for all tests."""
    town, server = Town(tmp_path_factory.mktemp("dose")), ScriptedServer(distracted)
    config = town.config(server.url, benchmark=rgb(town.folder), conditions="gold", judge="lexical",
                         reasoning=["direct", "chain_of_thought"], rules="grounded", brief=True,
                         perturbations=["none", "negatives@2", "negatives@4"])
    with pytest.MonkeyPatch.context() as patch:
        status = run_command(patch, "run", config, "--json")
    server.close()
    assert status == 0
    return town.run


@pytest.fixture
def asked(made, tmp_path):
    return shutil.copytree(made, tmp_path / "asked")


def figures(curve, metric):
    return [pytest.approx(point["metrics"][metric]["mean"], abs=1e-9) for point in curve["points"]]


def test_a_curve_that_is_known_by_hand(asked, ragbed):
    found = ragbed.json("dose", asked)
    direct, chained = found["curves"]
    assert (direct["axis"], direct["factors"]["reasoning"], direct["factors"]["sort"]) == (
        "negatives", "direct", "any")
    assert [point["dose"] for point in direct["points"]] == [0, 2, 4]
    assert figures(direct, "correct") == [1, 4 / 6, 2 / 6]
    assert figures(chained, "correct") == [1, 1, 1]
    # towns 4 and 5 are right at every dose, 2 and 3 at two of three, 0 and 1 at none but the first
    assert direct["areas"]["correct"]["mean"] == pytest.approx((2 * 1 + 2 * 0.75 + 2 * 0.25) / 6)
    assert chained["areas"]["correct"]["mean"] == 1
    assert figures(direct, "refused_answerable") == [0, 0, 1 / 6]
    assert direct["areas"]["refused_answerable"]["mean"] == pytest.approx(1 / 6 * 0.5 / 2)
    assert direct["slope"]["mean"] == pytest.approx(-4 / 6 / 4)
    (pair,) = found["comparisons"]
    assert (pair["factor"], pair["difference"], pair["p"]) == ("reasoning", pytest.approx(2 / 6), 2 / 2**4)


def test_the_summary_has_it_and_verify_finds_it_in_the_records(asked, ragbed):
    summary = json.loads((asked / "summary.json").read_text())
    found = ragbed.json("dose", asked)
    assert summary["dose"] == {name: found[name] for name in summary["dose"]}
    assert ragbed("verify", asked)[0] == 0
    summary["dose"]["curves"][0]["areas"]["correct"]["mean"] = 0.9
    (asked / "summary.json").write_text(json.dumps(summary))
    status, out, _ = ragbed("verify", asked)
    assert status == 1
    assert "dose.curves[0].areas.correct.mean" in " ".join(out.split())


def test_the_terminal_shows_points_areas_changes_and_what_differs(asked, ragbed):
    status, out, _ = ragbed("dose", asked)
    said = " ".join(out.split())
    assert status == 0
    for words in ("correct (lexical) by negatives added to what is shown", "Differences of areas", "refused_answerable",
                  "An area is the mean height of a curve"):
        assert words in said
    row = next(line for line in out.splitlines() if line.startswith("direct"))
    assert re.findall(r"\d\.\d\d(?= \[)", row)[:4] == ["1.00", "0.67", "0.33", "0.67"]


def test_another_metric_is_compared_and_one_that_is_none_refused(asked, ragbed):
    found = ragbed.json("dose", asked, "--metric", "em")
    assert (found["metric"], found["metrics"][0]) == ("em", "em")
    ragbed.refuses("dose", asked, "--metric", "accuracy", says=["its curves do not have the metric accuracy",
                                                                "correct, "])
    ragbed.refuses("dose", asked, "--metric", "nonsense", says=["unknown metric 'nonsense'"])


def test_a_run_without_doses_is_refused_in_one_line(town, serve, ragbed):
    assert ragbed("run", town.config(serve(town.reply).url), "--json")[0] == 0
    ragbed.refuses("dose", town.run, says=["no two cells differ only in the number", "--help"])


def test_doses_beyond_what_there_is_are_counted(town, serve, ragbed):
    config = town.config(serve(distracted).url, benchmark={**rgb(town.folder, negatives=3), "limit": 1},
                         conditions="gold", judge="lexical", rules="grounded",
                         perturbations=["none", "negatives@2", "negatives@9"])
    assert ragbed("run", config, "--json")[0] == 0
    found = ragbed.json("dose", town.run)
    assert [point["fewer"] for point in found["curves"][0]["points"]] == [0, 0, 1]


def test_what_is_searched_among_more_negatives_is_found_less_by_who_looks_shallow(town, serve, ragbed):
    benchmark = rgb(town.folder, query="Which town is number 3?", answer="Lund", positive=["Number of Lund."],
                    negative=["Nothing.", "Which town is number 3 now?"])
    config = town.config(
        serve(lambda body: "<Answer>Lund [1]</Answer>").url, benchmark=benchmark,
        conditions="retrieved", perturbations=["pool@1", "pool@2"],
        retriever=[{"kind": "bm25", "k": 1}, {"kind": "bm25", "k": 3}])
    ragbed.json("run", config)
    found = ragbed.json("dose", town.run, "--metric", "recall@5")
    assert [(curve["word"], figures(curve, "recall@5"), curve["areas"]["recall@5"]["mean"])
            for curve in found["curves"]] == [("pool", [1, 0], 0.5), ("pool", [1, 1], 1)]
    assert [pair["factor"] for pair in found["comparisons"]] == ["retriever"]


def test_hardness_of_mined_negatives_is_an_axis(town, serve, ragbed):
    from ragbed.experiments.guests.hard_negatives.mining import mine
    from ragbed.experiments.guests.hard_negatives.selection import MiningSettings

    folder = town.folder / "mined"
    mine(HotpotQa(path=str(SOURCE), limit=3), MiningSettings(miners=("dense",), per_question=6, fill=2), folder,
         lambda stage, done, total: None)
    questions = MinedBenchmark(path=str(folder)).load().questions
    hard = {chunk.content for one in questions for chunk in one.negatives if one.mined[chunk.id].bucket == "hard"}
    answers = {one.text: one.answers[0] for one in questions}

    def reply(body):
        """Right as long as no hard negative is in view."""
        said = "\n".join(message["content"] for message in body["messages"])
        right = next(answer for text, answer in answers.items() if text in said)
        return f"<Answer>{'no idea' if any(text in said for text in hard) else right} [1]</Answer>"

    sorts = ("easy", "medium", "hard")
    config = town.config(serve(reply).url, benchmark={"kind": "mined", "path": str(folder)}, conditions="gold",
                         perturbations=["none", *(f"negatives@2:{sort}" for sort in sorts)])
    ragbed.json("run", config)
    *_, over = ragbed.json("dose", town.run)["curves"]
    assert (over["axis"], over["factors"]["number"], figures(over, "em")) == ("hardness", "2", [1, 1, 0])
    assert (over["plain"]["metrics"]["em"]["mean"], over["areas"]["em"]["mean"]) == (1, 0.75)


def test_charts_fit_a_phone_and_points_say_what_they_are(visit, asked):
    page = visit((asked / "report.html").as_uri(), viewport={"width": 390, "height": 800}, is_mobile=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    point = page.locator("#dose a.spot").nth(1)
    tip = point.locator(".tip")
    assert not tip.is_visible()
    point.focus()
    assert tip.is_visible()
    assert tip.locator("text").all_text_contents() == ["direct", "2 negatives: 0.67 [0.30, 0.90]", "6 questions"]
