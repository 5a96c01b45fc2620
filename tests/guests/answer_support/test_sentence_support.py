"""Each sentence of an answer against what it cites, and the nuggets of a question in its answer: by words, by a model
and by a cross-encoder."""
import json
import re

import pytest
import tiny_rerankers
from judged import play
from report_runs import Page
from stored import cell as stored_cell
from stored import result

from ragbed.documents import ModelError
from ragbed.experiments import Question, RunSettings, Support, SupportLabel, find_metric, score
from ragbed.experiments.guests.answer_support.statements import Statement
from ragbed.experiments.guests.answer_support.support_checks import (
    Claims,
    LexicalSupport,
    ModelSupport,
    NliSupport,
    extract_claims,
    parse_support,
)
from ragbed.experiments.metrics import Scored
from ragbed.strategies import Failure, Reply

BORN = "Steven Spielberg was born on December 18, 1946, in Cincinnati, Ohio."
JAWS = "Jaws is a 1975 film directed by Steven Spielberg."
SHOWN = {1: BORN, 2: JAWS}
QUESTION = Question("q", "Who is Steven Spielberg?", ("a director",), True)
GROUNDED = stored_cell()


def claims(text, cited=(1, 2), question=QUESTION, cell=GROUNDED, check=None, gold=(), **changes):
    return extract_claims(result("c", text=text, cited=cited, **changes), question, cell, SHOWN,
                          check or LexicalSupport(), gold)


@pytest.mark.parametrize(("text", "sentences"), [
    ("He was born in Ohio. [1] He directed Jaws [2].", [("He was born in Ohio.", (1,)), ("He directed Jaws.", (2,))]),
    ("He was born in Ohio [1]. He lives.", [("He was born in Ohio.", (1,)), ("He lives.", ())]),
    ("Dr. Spielberg, e.g. Steven A. Spielberg et al. Of Ohio, was born in the U.S. [1][2]",
     [("Dr. Spielberg, e.g. Steven A. Spielberg et al. Of Ohio, was born in the U.S.", (1, 2))]),
    ("그는 오하이오에서 태어났다. [1] 그는 죠스를 감독했다 [2].",
     [("그는 오하이오에서 태어났다.", (1,)), ("그는 죠스를 감독했다.", (2,))]),
    ("He was born in Ohio. He directed Jaws.", [("He was born in Ohio.", (1, 2)), ("He directed Jaws.", (1, 2))])],
    ids=["after the full stop", "one without", "abbreviations", "Korean", "cited beside the text"])
def test_a_sentence_has_the_citations_up_to_the_next_one(text, sentences):
    assert [(one.text, one.cited) for one in claims(text).sentences] == sentences


def test_sentences_and_nuggets_are_checked_where_they_are_due():
    nuggets = Question("q", "Who?", ("a",), True, nuggets={"He directed Jaws.": True})
    assert claims("He was born in Ohio [1].", cell=stored_cell(rules="closed-book")) is None
    assert claims("x", outcome="refused", refused=True) is None
    assert claims("x", outcome="malformed") is None
    failed = claims("", outcome="error", question=nuggets)
    assert (failed.sentences, failed.answer, failed.nuggets) == ((), "", {"He directed Jaws.": True})
    assert claims("", outcome="error", question=nuggets, answerable=False) is None
    assert play(LexicalSupport().judge(failed))[1].nuggets[0].note == "no answer"


def test_without_a_model_words_numbers_and_dates_decide():
    unknown = Claims("Who?", (Statement("He lives.", (1,)),), {1: ""})
    assert [(one.level, one.note) for one in play(LexicalSupport().judge(unknown))[1].sentences] == [
        (None, "the cited text is unknown")]
    text = ("Steven Spielberg was born in Cincinnati, Ohio [1]. Steven Spielberg was born in Cincinnati in a blue "
            "wooden house [1]. Steven Spielberg was born in 1947 [1]. Jaws is of 1975 [9]. Jaws is of 1975.")
    said = play(LexicalSupport().judge(claims(text)))[1].sentences
    assert [one.level for one in said] == ["full", "partial", "none", "none", "none"]
    strict = play(LexicalSupport(full=1.0, partial=1.0).judge(claims(text)))[1].sentences
    loose = play(LexicalSupport(full=0.9, partial=0.1).judge(claims(text)))[1].sentences
    assert [[one.level for one in found[1:3]] for found in (strict, loose)] == [["none", "none"], ["partial", "none"]]
    assert [one.note for one in said[3:]] == ["cites what was not shown", "cites nothing"]


TWO = Claims("Who?", (Statement("He directed Jaws.", (1, 2)), Statement("He lives.", ())), SHOWN, "He directed Jaws.",
             {"Jaws is his": True, "It is of 1975": False})


def test_a_model_is_asked_of_each_sentence_that_cites_and_of_each_nugget():
    checks = ModelSupport(model="m", max_tokens=9)
    asked, found = play(checks.judge(TWO), *map(Reply, ("Partly.", "yes", "**No**, not so")))
    assert {call.max_tokens for call in asked} == {9}
    first, second, _ = ("".join(call.messages[0].parts) for call in asked)
    assert f"<text>\n{BORN}\n\n{JAWS}\n</text>" in first
    assert "<statement>\nHe directed Jaws.\n</statement>" in first
    assert "<text>\nHe directed Jaws.\n</text>" in second
    assert "<statement>\nJaws is his\n</statement>" in second
    assert [(one.level, one.note) for one in found.sentences] == [("partial", ""), ("none", "cites nothing")]
    assert [(one.text, one.vital, one.level) for one in found.nuggets] == [
        ("Jaws is his", True, "full"), ("It is of 1975", False, "none")]


def test_a_reply_that_cannot_be_read_is_asked_for_once_more_and_is_then_no_level():
    asked, found = play(ModelSupport(model="m").judge(TWO), *map(Reply, ("Hard to say.", "yes", "7", "", "no")))
    assert [call.purpose for call in asked] == ["support", "support_repair"] * 2 + ["support"]
    assert "Reply with one word" in "".join(asked[1].messages[-1].parts)
    assert [(one.level, one.note) for one in found.labels] == [
        ("full", ""), ("none", "cites nothing"), (None, "unreadable twice"), ("none", "")]
    late, cut = Failure("timeout", "late"), Reply("no", finish_reason="length")
    _, found = play(ModelSupport(model="m").judge(TWO), late, cut, late, cut, cut)
    assert [(one.level, one.note) for one in (found.sentences[0], *found.nuggets)] == [
        (None, "call failed: timeout"), (None, "call failed: timeout"), (None, "unreadable twice")]


def test_a_model_makes_nuggets_of_the_gold_where_the_question_brings_none():
    check = ModelSupport(model="m", nuggets=True)
    assert claims("He lives.", check=check, gold=[BORN]).gold == (BORN,)
    assert claims("He lives.", check=check).gold == ("a director",)
    assert claims("He lives.").gold == ()
    made = "1. **vital**: He was born in 1946.\n- okay: In Ohio.\nAnd so on."
    asked, found = play(check.judge(Claims("Who?", answer="x", gold=(BORN,))), *map(Reply, (made, "no", "yes")))
    assert f"<text>\n{BORN}\n</text>" in "".join(asked[0].messages[0].parts)
    assert [(one.text, one.vital, one.level) for one in found.nuggets] == [
        ("He was born in 1946.", True, "none"), ("In Ohio.", False, "full")]
    _, found = play(check.judge(Claims("Who?", answer="x", gold=(BORN,))), Reply("None."), Reply("None."))
    assert (found.nuggets, found.note) == ((), "unreadable twice")


@pytest.fixture(scope="module")
def nli(tmp_path_factory):
    """A cross-encoder of three classes, as published ones are, with random weights."""
    folder = tiny_rerankers.cross_encoder(tmp_path_factory.mktemp("models") / "nli", labels=3)
    config = json.loads((folder / "config.json").read_text())
    classes = {"0": "contradiction", "1": "entailment", "2": "neutral"}
    (folder / "config.json").write_text(json.dumps({
        **config, "id2label": classes, "label2id": {name: int(place) for place, name in classes.items()}}))
    return folder


def entailed(folder, *pairs):
    """The probabilities as transformers computes them."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    model, tokenizer = (kind.from_pretrained(folder) for kind in (AutoModelForSequenceClassification, AutoTokenizer))
    with torch.no_grad():
        out = model(**tokenizer([one for one, _ in pairs], [other for _, other in pairs], padding=True,
                                return_tensors="pt"))
    return torch.softmax(out.logits, -1)[:, 1].tolist()


@pytest.mark.slow
def test_a_cross_encoder_gives_the_highest_probability_that_a_passage_or_all_together_entail_the_sentence(nli):
    sources, sentences = ["ada founded it", "in 1999"], ["wind", "zebra eats grass"]
    found = [NliSupport(model=str(nli)).value(one, sources, "") for one in sentences]
    each = [entailed(nli, *((source, one) for source in (*sources, "ada founded it\nin 1999"))) for one in sentences]
    assert found == pytest.approx([max(one) for one in each], abs=1e-5)
    assert all(0.4 < value < 0.5 for value in found)
    one = Claims("Who?", (Statement("wind", (1, 2)),), dict(enumerate(sources, 1)))
    levels = [play(NliSupport(model=str(nli), full=full, partial=partial).judge(one))[1].sentences[0].level
              for full, partial in ((0.4, 0.2), (0.5, 0.4), (0.6, 0.5))]
    assert levels == ["full", "partial", "none"]


@pytest.mark.slow
def test_a_model_that_tells_no_entailment_is_refused(tmp_path):
    folder = tiny_rerankers.cross_encoder(tmp_path / "cross", labels=3)
    with pytest.raises(ModelError, match=r"has no `entailment` class \(its classes: label_0, label_1, label_2\)"):
        NliSupport(model=str(folder)).value("x", ["y"], "")


def label(level, cited=(1,), vital=None):
    return SupportLabel(text="x", cited=cited, vital=vital, level=level)


def scores(support, groups=("sentences", "nuggets"), **changes):
    item = Scored(**{"outcome": "answered", "answerable": True, "support": support, **changes})
    return {name: value for name, value in score(item, groups=groups).items() if value is not None}


def test_sentences_are_scored_as_trec_scores_support():
    """Of 1, 0.5, 0, none for want of a citation, and one unread, which is left out: 1.5 of 3, and 1.5 of 4."""
    five = Support(judge="m", sentences=(*map(label, ("full", "partial", "none", None)), label("none", ())))
    assert scores(five) == pytest.approx({
        "sentence_precision": 0.5, "sentence_recall": 0.375, "sentences_full": 0.25, "sentences_partial": 0.25,
        "sentences_none": 0.5, "sentences_uncited": 0.2, "sentences_unread": 0.2})
    nothing = {"sentence_precision": 0.0, "sentence_recall": 0.0}
    assert scores(None, outcome="error") == scores(None, outcome="refused", refused=True) == nothing
    assert scores(None) == scores(five, rules="closed-book") == scores(five, answerable=False) == {}
    assert scores(Support(judge="m", sentences=(label("none", ()),)))["sentence_precision"] == 0


def test_nuggets_are_scored_as_trec_scores_them():
    """Vital: full, partial, none; okay: full, partial. V 1.5 of 3, A 3 of 5, W (1.5 + 0.75) of (3 + 1)."""
    found = Support(judge="m", nuggets=tuple(label(level, (), vital) for level, vital in (
        ("full", True), ("partial", True), ("none", True), ("full", False), ("partial", False))))
    assert scores(found) == pytest.approx({
        "nuggets_vital": 0.5, "nuggets_vital_strict": 1 / 3, "nuggets_all": 0.6, "nuggets_all_strict": 0.4,
        "nuggets_weighted": 2.25 / 4, "nuggets_weighted_strict": 1.5 / 4, "nuggets_unread": 0.0})
    assert scores(found, answerable=False) == {}
    assert scores(Support(judge="m", nuggets=(label(None, (), False),))) == {"nuggets_unread": 1.0}
    half = scores(Support(judge="m", nuggets=(label(None, (), True), label("full", (), True))))
    assert (half["nuggets_vital"], half["nuggets_unread"]) == (1.0, 0.5)
    assert str(find_metric("nuggets_vital_strict")) == "nuggets_vital_strict"


ASKED = re.compile("<statement>\n(.*?)\n</statement>", re.DOTALL)


def judge(body):
    """Says yes of 111, no of 222, partly of Ada, and nothing readable of the rest."""
    asked = ASKED.search(body["messages"][0]["content"])[1]
    return next((said for word, said in (("111", "Yes."), ("222", "no"), ("Ada", "partly")) if word in asked), "Well.")


REPLIES = [f"<Answer>{said}</Answer>" if said else "" for said in (
    "0 people [1]", "It has 111 people. [1] It is small.", "222 people [1]", "There are 333 people [2].", "",
    "555 people [9]")]


@pytest.fixture
def finished(serve, town, ragbed):
    """A run whose answers a model checks: the servers of both, and the settings file."""
    model = serve(lambda body: REPLIES[int(re.findall(r"in town (\d)", body["messages"][-1]["content"])[-1])])
    checker = serve(judge)
    config = town.config(model.url, support=f"{checker.url}#checker")
    assert ragbed("run", config)[0] == 0
    return model, checker, config


def test_a_run_checks_every_sentence_and_shows_what_was_said_of_it(finished, town, ragbed):
    """Of six replies one is no answer. 0, 333: unread; 111: full, and one sentence uncited; 222: none; 555: cites what
    was not shown."""
    checker = finished[1]
    assert len(checker.requests) == 6  # 0 and 333 twice, 111, 222
    summary = json.loads((town.run / "summary.json").read_text())
    assert summary["columns"][-1] == "sentence_precision / sentence_recall"
    metrics = {name: (one["mean"] and round(one["mean"], 4), one["n"])
               for name, one in summary["cells"][0]["metrics"].items()}
    assert (metrics["sentence_precision"], metrics["sentence_recall"]) == ((0.25, 4), (0.125, 4))
    assert summary["cells"][0]["metrics"]["sentence_precision"]["bounds"] == [0.2, 0.4]
    assert (metrics["sentences_unread"], metrics["sentences_uncited"]) == ((0.25, 4), (0.125, 4))
    assert summary["cells"][0]["judge_usage"]["calls"] == 6
    assert any(" checked sentences and nuggets: 6 labels, of which 2 could not be parsed" in note
               for note in summary["notes"])
    out = " ".join(ragbed("show", town.run, "1")[1].split())
    assert "full: It has 111 people. [1]" in out
    assert "none: It is small. (cites nothing)" in out
    shown = ragbed.json("show", town.run, "1")["cells"][0]["support"]["sentences"]
    assert [(one["text"], one["level"]) for one in shown] == [("It has 111 people.", "full"), ("It is small.", "none")]
    assert Page(town.run / "report.html").question("non_refusal-1")["answers"][0]["support"] == [
        ["full", "It has 111 people.", "[1]"], ["none", "It is small.", "cites nothing"]]


def test_a_check_is_replayed_without_a_model_and_verified(finished, town, ragbed):
    before, asked = town.hashes(), [len(server.requests) for server in finished[:2]]
    assert ragbed("run", finished[2], "--journal", "replay")[0] == 0
    assert town.hashes() == before
    assert [len(server.requests) for server in finished[:2]] == asked
    status, out, _ = ragbed("verify", town.run)
    assert (status, "Everything that could be compared agrees." in out) == (0, True)


def test_a_finished_run_is_checked_by_another_and_stays_as_it_is(finished, town, ragbed, nli):
    before = town.hashes()
    found = ragbed.json("rescore", town.run, "--support", "lexical")
    assert {one["question"]: [label["level"] for label in one["sentences"]] for one in found["support"]} == {
        "refusal-0": ["partial"], "non_refusal-1": ["partial", "none"], "non_refusal-2": ["partial"],
        "non_refusal-3": ["none"], "non_refusal-5": ["none"]}
    changed = {one["metric"]: (one["before"], one["now"]) for one in found["changed"]}
    assert changed["sentence_recall"] == pytest.approx((0.5 / 4, 0.75 / 5))
    crossed = ragbed.json("rescore", town.run, "--support", f"nli:{nli}")
    assert {one["judge"] for one in crossed["support"]} == {str(nli)}
    assert town.hashes() == before


def test_nuggets_come_with_own_questions(serve, town, ragbed):
    nuggets = [{"text": "It has 111 people", "importance": "vital"}, {"text": "Ada is mayor", "importance": "okay"}]
    own = town.own(*({"question": f"How many live in town {n}?", "answer": "111", "nuggets": nuggets} for n in (1, 2)))
    model = serve(lambda body: "<Answer>111</Answer>" if "town 1" in body["messages"][-1]["content"] else "")
    config = town.config(model.url, benchmark=own, conditions="closed-book", support=f"{serve(judge).url}#c")
    assert "for every sentence with a citation" in " ".join(ragbed.json("run", config, "--dry-run")["notes"])
    metrics = ragbed.json("run", config)["cells"][0]["metrics"]
    assert {name: metrics[name]["mean"] for name in metrics if name.startswith("nuggets_")} == pytest.approx({
        "nuggets_vital_strict": 0.5, "nuggets_vital": 0.5, "nuggets_all_strict": 0.25, "nuggets_all": 0.375,
        "nuggets_weighted_strict": 1 / 3, "nuggets_weighted": 1.25 / 3, "nuggets_unread": 0.0})
    assert "vital, full: It has 111 people" in " ".join(ragbed("show", town.run, "1")[1].split())
    ragbed.refuses("run", town.config(model.url, benchmark=town.own({"question": "Q?", "nuggets": [{"text": "x"}]})),
                   says=["own.jsonl, line 1", "nuggets"])


def test_what_rests_on_a_check_is_not_had_without_one(serve, town, ragbed):
    assert ragbed("run", town.config(serve(town.reply).url))[0] == 0
    ragbed.refuses("rescore", town.run, "--metric", "sentence_recall", says=["a support check", "--support"])
    ragbed.refuses("rescore", town.run, "--support", "nli:nowhere/none", says=["NLI model", "nowhere/none"])
    settings = RunSettings.model_validate({"name": "x", "benchmark": {"kind": "demo"}, "support": "lexical"})
    assert settings.support == parse_support("lexical") == LexicalSupport()
