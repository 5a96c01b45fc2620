"""A judge on trial: answers made from gold, its errors by kind, and scores corrected for them."""
import json

import pytest
from each_case import each

from ragbed.documents.errors import SettingsError
from ragbed.experiments.guests.label_correction.judge_trial import ErrorRate, TrialGate, correct_share
from ragbed.experiments.guests.label_correction.made_answers import make_answers
from ragbed.experiments.question import Question
from ragbed.experiments.record import Verdict

EVIDENCE = "It was designed by Howard Shaw in 1917, and Ada Berg, its mayor, met Otto Lind."


def made(gold, question="What is it?", others=(), evidence=EVIDENCE):
    golds = (gold,) if isinstance(gold, str) else gold
    return {one.kind: one.text for one in make_answers(Question("q", question, golds, True), evidence, others)}


@each(("gold", "kind", "text"), [
    ("1998", "near number", "1999"), ("24 months", "near number", "25 months"), ("$4.60", "near number", "$4.70"),
    ("10,531", "near number", "11,531"), ("6:40.15", "near number", "6:41.15"),
    ("five acts", "near number", "six acts"),
    ("2010-09-30", "near number", "2011-09-30"), ("111명", "near number", "121명"), ("323 BC", "other unit", "323 AD"),
    ("24 months", "other unit", "24 weeks"), ("$1.2 million", "other unit", "€1.2 million"),
    ("3억 원", "other unit", "3만 원"), ("12 %", "other unit", "12 per thousand"), ("yes", "opposite", "No"),
    ("No, it fell.", "opposite", "Yes"), ("아니요", "opposite", "예"),
    ("heat, fuel, and oxygen", "half of a list", "heat"),
    ("Ada and Otto", "half of a list", "Ada"), ("김철수와 이영희", "half of a list", "김철수"),
    ("10,531", "other notation", "10531"), ("12 %", "other notation", "12 percent"),
    ("5 March 2012", "other notation", "March 5, 2012"),
    (("Ada Lind", "Ada Mary Lind"), "shorter or longer", "Ada Mary Lind")])
def test_an_answer_of_each_kind_is_made_from_gold(gold, kind, text):
    assert made(gold)[kind] == text


@each(("gold", "kind"), [
    ("about 100 people", "near number"), ("more than 100", "near number"), ("between 5 and 10", "near number"),
    ("COVID-19", "near number"), ("10-K", "near number"), ("Portland, Oregon", "half of a list"),
    ("Yes, routinely, for 65 years, and more", "half of a list"), ("2015년 3월", "other unit"),
    ("Ada Berg", "other unit"),
    (("leading lady", "star"), "shorter or longer"), ("filmmaker", "other entity")])
def test_what_might_be_right_is_not_made(gold, kind):
    assert kind not in made(gold)


def test_a_number_of_a_long_answer_is_changed_only_if_it_is_asked_for():
    gold = "La jolie fille de Perth is an opera in 4 acts"
    assert "near number" not in made(gold, "Which opera has more acts?")
    assert made("The opera by Bizet has only 4 acts", "How many acts has it?")["near number"].endswith("5 acts")


def test_another_entity_is_a_name_of_the_evidence_that_neither_gold_nor_question_mentions():
    assert made("Howard Shaw", "Who designed it?")["other entity"] in ("Ada Berg", "Otto Lind")
    assert made("Howard Shaw", "Who designed it for Ada Berg?")["other entity"] == "Otto Lind"
    assert "other entity" not in made("Howard Shaw", "Did Ada Berg or Otto Lind ask him?")


def test_the_answer_to_another_question_has_the_same_form():
    others = ("1941", "Ada Berg", "a long walk", "서울 시청")
    assert made("1998", others=others)["other answer"] == "1941"
    assert made("Otto Lind", others=others)["other answer"] == "Ada Berg"
    assert made("부산 역", others=others)["other answer"] == "서울 시청"
    assert "other answer" not in made("Ada Lind", others=("Ada Berg",))


def test_made_answers_speak_the_language_of_the_question():
    assert made("서울", "수도는 어디인가요?")["no answer"] == "문서에는 나와 있지 않습니다."


def rate(right, errors, n):
    graded = [Verdict(judge="", grade="Correct" if (at < errors) != right else "Wrong") for at in range(n)]
    return ErrorRate.of("all right answers" if right else "all wrong answers", right, [
        (str(at), one) for at, one in enumerate(graded)])


def test_a_corrected_share_removes_both_error_rates():
    # 0.5 seen = 0.9 x + 0.2 (1 - x), so x = 3/7
    mean, (low, high) = correct_share(0.5, 100, rate(False, 20, 100), rate(True, 10, 100))
    assert mean == pytest.approx(3 / 7)
    assert low < 0.32
    assert high > 0.54
    assert correct_share(0.5, 100, rate(False, 50, 100), rate(True, 50, 100)) is None  # no better than chance
    assert correct_share(0.0, 1000, rate(False, 50, 100), rate(True, 0, 100)) is None  # not with these error rates


def test_unjudged_answers_of_a_trial_count_against_the_judge_in_a_gate():
    own = [("1", Verdict(judge="", grade="Wrong")), ("2", Verdict(judge="", grade="Correct")), ("3", Verdict(judge=""))]
    rates = [ErrorRate.of("near number", False, own)]
    assert (rates[0].rate["mean"], rates[0].rate["n"], rates[0].unjudged) == (0.5, 2, 1)
    assert rates[0].rate["bounds"] == pytest.approx([1 / 3, 2 / 3])
    assert TrialGate.parse("false_accepts.near_number > 0.6").holds(rates)  # 2 of 3
    assert not TrialGate.parse("false_accepts.near_number > 0.7").holds(rates)
    for text in ("false_accepts", "accepts > 0.1", "false_accepts > 2", "false_accepts >"):
        with pytest.raises(SettingsError, match="expected a condition on the trial"):
            TrialGate.parse(text)


def gullible(asked):
    """Accepts everything but what says nothing."""
    return "Grade: Wrong" if "do not say" in asked or "in detail" in asked else "Grade: Correct"


def test_the_trial_of_a_runs_judge_is_recorded_shown_and_gated(serve, town, ragbed):
    model, judge = serve(town.reply), serve(lambda body: gullible(body["messages"][0]["content"]))
    config = town.config(model.url, judge=f"{judge.url}#judge")
    _, out, _ = ragbed("run", config)
    assert "The judge was not tried on answers with known grades; `ragbed judge RUN --trial` does that." in " ".join(
        out.split())
    before, asked = (town.run / "summary.json").read_bytes(), len(judge.requests)
    _, out, err = ragbed("judge", town.run, "--trial", "--dry-run")
    assert (len(judge.requests), out) == (asked, "")
    assert "answers made from 5 questions; " in err
    assert "calls, about" in err
    status, out, err = ragbed("judge", town.run, "--trial", "--fail-if", "false_accepts > 0.3",
                              "--fail-if", "false_rejects > 0.1")
    assert status == 1
    assert f"fails: false_accepts > 0.3 ({judge.url}#judge)" in err
    assert "fails: false_rejects" not in err
    words = " ".join(out.split())
    assert "wrong: near number 5 0 0 1.00 [0.57, 1.00]" in words
    assert "wrong: vague 5 0 0 0.00 [0.00, 0.43]" in words
    assert (town.run / "summary.json").read_bytes() == before
    asked = len(judge.requests)
    found = ragbed.json("judge", town.run, "--trial")
    assert (len(judge.requests), found["calls"]) == (asked, 0)  # all from the journal
    (trial,) = found["trials"]
    assert {one["kind"]: one["rate"]["mean"] for one in trial["rates"]}["all right answers"] == 0
    assert "accepted" in " ".join(ragbed("run", config)[1].split()).partition("In its trial, the judge")[2]
    assert "In its trial, the judge" in (town.run / "report.html").read_text()
    assert ragbed.json("run", config)["trial"] == [trial["said"]]


def test_a_broken_judge_has_no_error_rates(serve, town, ragbed):
    judge = serve(lambda _: {"status": 400})
    assert ragbed("run", town.config(serve(town.reply).url))[0] == 0
    status, out, _ = ragbed("judge", town.run, "--trial", "--judge", f"{judge.url}#judge")
    assert status == 1
    assert " ".join(out.split()).startswith(f"The judge {judge.url}#judge graded 0 of")
    assert not (town.run / "trial.json").exists()
    ragbed.refuses("judge", town.run, "--fail-if", "false_accepts > 0.1", says=["belong to --trial"])
    ragbed.refuses("judge", town.run, "--trial", "--repeats", "2", says=["--trial cannot be combined"])
    assert json.loads((town.run / "summary.json").read_text())["cells"]
