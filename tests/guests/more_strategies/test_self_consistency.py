"""self_consistency: samples of a strategy, votes over their answers, and what the run keeps of them."""
import json

import pytest
from each_case import each
from gathering import Scene, decisions

from ragbed.agents import Limits
from ragbed.documents import SettingsError
from ragbed.experiments.guests.more_strategies.parts.voting import tally, vote_key
from ragbed.strategies import REFUSAL, Draft, Reply, Task, Usage, parse_strategy
from ragbed.strategies.settings.strategy_config import reasoning

LIBRARY = {"": "jaws spielberg"}


def played(*answers, settings=None, limits=None, library=None, retrieval="once", replies=None, **changes):
    """The scene and the answer, of replies whose tags hold these answers."""
    said = [one if isinstance(one, Reply) else f"<Thinking>so</Thinking><Answer>{one}</Answer>" for one in answers]
    scene = Scene(LIBRARY if library is None else library, {"answer": said, **(replies or {})}, limits or Limits())
    answer = scene.play(retrieval, reasoning({"kind": "self_consistency", **(settings or {})}), **changes)
    return scene, answer


def test_the_answer_with_the_most_votes_wins_whatever_its_case_punctuation_articles_and_citations():
    scene, answer = played("Ohio [1]", "The Utah [2].", "utah! [1]", "**Utah**", "Texas")
    assert (answer.outcome, answer.text, answer.cited) == ("answered", "The Utah [2].", (2,))
    assert answer.figures == {"agreement": 3 / 5}
    assert decisions(answer) == [("votes", "3 of 5 agree, 2 other answers")]
    assert len(scene.calls) == 5


def test_samples_are_numbered_drawn_at_the_temperature_and_share_one_search_and_one_prompt():
    scene, answer = played(*["Ohio"] * 3, settings={"samples": 3, "temperature": 1.1})
    assert [(call.sample, call.temperature) for call in scene.calls] == [(0, 1.1), (1, 1.1), (2, 1.1)]
    assert len({call.messages for call in scene.calls}) == 1
    assert scene.rounds == [["Where was the director of Jaws born?"]]
    assert answer.figures == {"agreement": 1.0}


@pytest.mark.parametrize(("answers", "text", "share", "told"), [
    (["Ohio", "Utah", "Utah", "Ohio", "Texas"], "Ohio", 2 / 5, "2 of 5 agree, 2 other answers"),
    (["", "Utah", "", "", "Ohio"], "Utah", 1 / 5, "1 of 5 agree, 1 other answer, 3 without an answer"),
    (["Ohio", f"{REFUSAL} No page.", REFUSAL, f"{REFUSAL} [1]", "Utah"], f"{REFUSAL} No page.", 3 / 5,
     "3 of 5 refuse, 2 other answers")])
def test_ties_go_to_the_first_and_what_is_no_answer_counts_among_the_samples_alone(answers, text, share, told):
    _, answer = played(*answers)
    assert (answer.text, answer.figures["agreement"]) == (text, share)
    assert decisions(answer) == [("votes", told)]
    assert answer.outcome == ("refused" if text.startswith(REFUSAL) else "answered")


def test_where_no_two_samples_agree_the_record_says_so():
    said = ["It left at 8:20 [1].", "The ferry sailed at 8:20 [1].", "8:20 was when it left [1].", "At 6:45 [2]."]
    _, answer = played(*said, settings={"samples": 4})
    assert (answer.text, answer.notes, answer.figures) == (said[0], ("no_majority",), {"agreement": 1 / 4})
    assert played("8:20", "8:20", "6:45", settings={"samples": 3})[1].notes == ()
    assert played("8:20", settings={"samples": 1})[1].notes == ()


def test_without_any_answer_the_first_reply_is_malformed_and_no_threshold_makes_it_a_refusal():
    _, answer = played("", "", settings={"samples": 2, "threshold": 0.5})
    assert (answer.outcome, answer.figures) == ("malformed", {"agreement": 0.0})


def test_the_text_is_that_of_the_first_agreeing_sample_that_cites():
    _, answer = played("Ohio", "Ohio [2]", "Ohio [1]", settings={"samples": 3})
    assert (answer.text, answer.cited) == ("Ohio [2]", (2,))


def test_options_are_compared_by_label_and_an_answer_that_names_none_has_no_vote():
    options = (("A", "Ohio"), ("B", "Utah"))
    _, answer = played("B. Utah", "A", "The answer is (B)", "neither of them", settings={"samples": 4},
                       rules="choice", options=options)
    assert (answer.text, answer.figures) == ("B. Utah", {"agreement": 2 / 4})
    assert decisions(answer) == [("votes", "2 of 4 agree, 1 other answer, 1 without an answer")]


@each(("one", "other", "same"), [
    ("1,200 people [1]", "1200 people", True), ("3.5 million", "3,500,000", True), ("5 %", "5 percent", True),
    ("March 3, 1990", "1990-03-03", True), ("3.5", "35", False), ("Yes, he was [1].", "yes", True),
    ("Yes", "No.", False), ("No one", "No", False), ("서울 [1]", "서울", True), ("+", "-", False)])
def test_numbers_and_dates_are_compared_by_value_and_polar_answers_by_their_word(one, other, same):
    task = Task("q", "?", None)
    keys = [vote_key(task, Draft(text, (), False, True, True), ()) for text in (one, other)]
    assert (keys[0] == keys[1]) is same


def test_citations_of_shown_documents_alone_are_no_answer_but_a_list_of_other_numbers_is():
    drafts = [Draft("[1]", (1,), False, True, True), Draft("[3, 7]", (3, 7), False, True, True)]
    votes = tally(Task("q", "?", None), drafts, {1, 2})
    assert ([len(one) for one in votes.answers], votes.malformed) == ([1], 1)


@pytest.mark.parametrize(("rules", "outcome"), [("grounded", "refused"), ("open", "answered")])
def test_agreement_below_the_threshold_is_a_refusal_where_the_rules_offer_one(rules, outcome):
    settings = {"samples": 3, "threshold": 0.7}
    _, answer = played("Ohio [1]", "Utah", "Ohio", settings=settings, rules=rules)
    assert answer.outcome == outcome
    assert answer.figures == {"agreement": pytest.approx(2 / 3)}
    if outcome == "refused":
        assert (answer.text, answer.cited, answer.notes) == (REFUSAL, (), ("low_agreement",))
        assert decisions(answer)[1] == ("refuses", "an agreement of 0.67 is below 0.7")
    assert played("Ohio", "Ohio", "Ohio", settings=settings)[1].outcome == "answered"


def costing(text, tokens):
    return Reply(f"<Answer>{text}</Answer>", usage=Usage(tokens - 10, 10, calls=1))


@pytest.mark.parametrize(("tokens", "costs", "rounds"), [
    (1000, [100] * 10, [1, 5, 2, 1, 1]), (350, [100] * 3, [1, 1, 1]), (100, [100], [1]), (50, [100], [1]),
    (500, [100, 200, 200], [1, 2]), (99_999, [100] * 12, [1, 11])])
def test_as_many_samples_are_drawn_as_a_budget_of_tokens_is_expected_to_hold(tokens, costs, rounds):
    scene, answer = played(*(costing("Ohio", cost) for cost in costs), settings={"samples": 12, "tokens": tokens})
    assert len(scene.calls) == sum(rounds) == len(costs)
    assert answer.figures == {"agreement": 1.0, "samples": float(len(costs))}
    assert [call.sample for call in scene.calls] == list(range(len(costs)))


def test_a_strategy_in_several_steps_is_sampled_as_a_whole_in_lockstep():
    replies = {"decompose": ["What is Jaws?", "Who made it?\nWhere is he from?"],
               "solve": ["A film.", "Spielberg.", "From Ohio."]}
    scene, answer = played("Ohio", "Ohio", settings={"of": "least_to_most", "samples": 2}, replies=replies)
    assert [(call.purpose, call.sample) for call in scene.calls] == [
        ("decompose", 0), ("decompose", 1), ("solve", 0), ("solve", 1), ("answer", 0), ("solve", 1), ("answer", 1)]
    said = [[m.content for m in call.messages if m.role == "assistant"] for call in scene.calls[4:]]
    assert said == [["A film."], ["Spielberg."], ["Spielberg.", "From Ohio."]]
    assert answer.figures == {"agreement": 1.0}


def test_what_a_retrieval_strategy_asks_a_model_for_is_asked_once_and_not_sampled():
    scene, _ = played(*["Ohio"] * 3, settings={"samples": 3}, retrieval="hyde",
                      replies={"passage": "A page on Jaws."})
    others = [call for call in scene.calls if call.purpose != "answer"]
    assert [(call.sample, call.temperature) for call in others] == [(0, None)]
    assert [call.sample for call in scene.calls if call.purpose == "answer"] == [0, 1, 2]


def test_sub_answers_are_no_part_of_the_vote():
    asked = {"sub_questions": ("Who?", "Where?"), "with_sub_answers": True}
    said = ["Sub-answer 1: A\nSub-answer 2: B\nFinal answer: Ohio", "Sub-answer 1: C\nSub-answer 2: D\nOhio"]
    _, answer = played(*said, settings={"samples": 2}, **asked)
    assert (answer.text, answer.figures) == ("Ohio", {"agreement": 1.0})


@pytest.mark.parametrize(("settings", "says"), [
    ({"temperature": 0}, "temperature: Input should be greater than 0"), ({"samples": 0}, "samples"),
    ({"threshold": 2}, "threshold"), ({"of": "search_only"}, "gives no answer"),
    ({"of": {"kind": "search_only"}}, "gives no answer"), ({"of": "once"}, "unknown"),
    ({"draws": 3}, "unknown parameter draws; choose from: of, samples, temperature, threshold, tokens")])
def test_settings_that_cannot_be_are_one_line(settings, says):
    with pytest.raises(SettingsError) as refused:
        parse_strategy("reasoning", {"kind": "self_consistency", **settings})
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def sampled(body):
    """A model whose samples of one prompt differ by their seed."""
    number = body["messages"][-1]["content"].rpartition("in town ")[2][0]
    return f"<Answer>{'7' if body.get('seed', 0) % 3 == 0 else int(number) * 111} people [1]</Answer>"


def test_samples_are_calls_of_their_own_in_the_journal_and_a_replay_gives_the_same_result(serve, town, ragbed):
    server = serve(sampled)
    path = town.config(server.url, reasoning={"kind": "self_consistency", "samples": 3})
    assert ragbed("run", path)[0] == 0
    assert len(server.requests) == 18
    assert len({(json.dumps(body["messages"]), body["seed"]) for body, _ in server.requests}) == 18
    assert {body["temperature"] for body, _ in server.requests} == {0.7}
    before = town.hashes()
    assert ragbed("run", path, "--journal", "replay")[0] == 0
    assert (len(server.requests), town.hashes()) == (18, before)


def test_agreement_is_a_column_with_an_interval_where_it_was_measured(serve, town, ragbed, tmp_path):
    strategies = ["direct", {"kind": "self_consistency", "samples": 4}]
    assert ragbed("run", town.config(serve(sampled).url, reasoning=strategies))[0] == 0
    shares = [one["result"].get("figures", {}).get("agreement") for one in town.records()]
    measured = [share for share in shares if share is not None]
    assert len(measured) == 6
    summary = json.loads((town.run / "summary.json").read_text())
    direct, agreed = (cell["metrics"].get("agreement") for cell in summary["cells"])
    assert direct is None
    assert agreed["mean"] == pytest.approx(sum(measured) / 6)
    assert agreed["n"] == 6
    assert 0 <= agreed["low"] < agreed["mean"] < agreed["high"] <= 1
    assert "agreement" in ragbed("report", town.run)[1]
    assert "agreement" in (town.run / "report.html").read_text()
    assert ragbed("export", town.run, tmp_path / "all.csv")[0] == 0
    header, *rows = (tmp_path / "all.csv").read_text().splitlines()
    assert "score.agreement" in header.split(",")
    assert len(rows) == 12
