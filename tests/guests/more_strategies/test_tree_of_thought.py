"""tree_of_thought: steps are proposed, voted on and extended; what was kept reaches the next level and the answer."""
import pytest
from each_case import each
from gathering import Scene, decisions

from ragbed.agents import Limits
from ragbed.experiments.guests.more_strategies.reasoning.tree_of_thought import voted
from ragbed.strategies.settings.strategy_config import reasoning

LIBRARY = {"": "jaws spielberg"}
PROPOSED = ["Find the director\nFind the film\nGuess",
            "1. He is Spielberg\n2. He is Lucas", "It is from 1975\nfind the film",
            "He was born in Ohio", "He is old\nHe is tall"]


def played(settings, propose, vote, limits=None, **changes):
    scene = Scene(LIBRARY, {"propose": propose, "vote": vote}, limits or Limits())
    return scene, scene.play("once", reasoning({"kind": "tree_of_thought", **settings}), **changes)


def steps_in(prompt, mark="steps"):
    return [line for line in prompt.partition(f"<{mark}>\n")[2].partition(f"\n</{mark}>")[0].splitlines() if line]


def test_three_levels_keep_what_got_most_votes_and_each_level_extends_what_the_last_kept():
    votes = ["Best: 2", "Both are fine.\nBest: 1", "Best: 2",
             "best: candidate 3", "**Best: 3**", "Best: 1",
             "Best: 1", "Best: 1", "Best: 2"]
    scene, answer = played({"depth": 3, "breadth": 2, "branches": 3, "votes": 3}, list(PROPOSED), votes)
    proposals, ballots = scene.prompts("propose"), scene.prompts("vote")
    assert [steps_in(prompt) for prompt in proposals] == [
        ["none yet"], ["- Find the film"], ["- Find the director"],
        ["- Find the director", "- It is from 1975"], ["- Find the film", "- He is Spielberg"]]
    assert steps_in(ballots[3], "candidates") == [
        "Candidate 1:", "- Find the film", "- He is Spielberg", "Candidate 2:", "- Find the film", "- He is Lucas",
        "Candidate 3:", "- Find the director", "- It is from 1975",
        "Candidate 4:", "- Find the director", "- find the film"]
    assert steps_in(scene.prompts("answer")[0]) == ["- Find the director", "- It is from 1975", "- He was born in Ohio"]
    assert decisions(answer) == [
        ("keeps", "of 3 candidates 2 with 2, 1 with 1 of 3 votes"),
        ("keeps", "of 4 candidates 3 with 2, 1 with 1 of 3 votes"),
        ("keeps", "of 3 candidates 1 with 2, 2 with 1 of 3 votes")]
    assert (answer.outcome, answer.text) == ("answered", "Cincinnati [1]")


def test_calls_are_as_many_as_the_settings_say_and_votes_are_samples_of_one_prompt():
    scene, _ = played({"depth": 2, "breadth": 2, "branches": 2, "votes": 4, "temperature": 0.9},
                      ["a\nb", "c\nd", "e\nf"], "Best: 1")
    assert [call.purpose for call in scene.calls] == [
        "propose", *["vote"] * 4, *["propose"] * 2, *["vote"] * 4, "answer"]
    assert [(call.sample, call.temperature) for call in scene.calls[1:5]] == [(n, 0.9) for n in range(4)]
    assert len({call.messages for call in scene.calls[1:5]}) == 1
    assert {call.shown for call in scene.calls} == {(1, 2)}
    assert not any("Rules:" in call.messages[-1].content for call in scene.calls[:-1])
    openings = {call.messages[-1].content.partition("Question:")[0].partition("Rules:")[0] for call in scene.calls}
    assert len(openings) == 1


def test_where_no_step_is_proposed_the_best_so_far_is_answered_from():
    scene, answer = played({}, ["a\nb", "nothing", "Nothing."], "Best: 2")
    assert steps_in(scene.prompts("answer")[0]) == ["- b"]
    assert decisions(answer)[-1] == ("stops", "no step was proposed at depth 2")
    assert answer.notes == ()


@pytest.mark.parametrize("said", ["", "nothing", "Where was the director of Jaws born?", "Steps:", "x" * 2_000])
def test_without_any_step_the_question_is_answered_alone_and_the_record_says_so(said):
    scene, answer = played({}, said, "Best: 1")
    assert [call.purpose for call in scene.calls] == ["propose", "answer"]
    assert answer.notes == ("no_steps",)
    assert answer.outcome == "answered"


def test_one_candidate_needs_no_vote_and_a_step_that_was_taken_is_not_taken_again():
    scene, answer = played({"depth": 2}, ["Find the film", "find the film!\nRead it"], "Best: 1")
    assert scene.prompts("vote") == []
    assert steps_in(scene.prompts("answer")[0]) == ["- Find the film", "- Read it"]
    assert decisions(answer) == [("keeps", "the only one of 1")] * 2


def test_votes_that_are_not_understood_are_told_and_ties_go_to_what_was_proposed_first():
    scene, answer = played({"depth": 1, "breadth": 1, "votes": 4}, "a\nb\nc",
                           ["Best: 9", "I like them all.", "Best: 3", "Best: 2"])
    assert steps_in(scene.prompts("answer")[0]) == ["- b"]
    assert decisions(answer) == [("keeps", "of 3 candidates 2 with 1 of 4 votes; 2 votes not understood")]


@each(("text", "place"), [
    ("Best: 2", 2), ("**Best:** 2", 2), ("best: Candidate 3", 3), ("Best: 1\n...\nBest: 2", 2), ("2", 2), (" 2. ", 2),
    ("Best: 4", None), ("Best: 0", None), ("Best: 002", 2), ("Candidate 2 is best", None), ("", None),
    ("12 of 14", None),
    ("<think>Best: 1</think>Best: 3", 3), ("<Answer>Best: 2</Answer>", 2), ("Best: " + "9" * 5_000, None)])
def test_a_vote_is_the_last_number_that_is_called_best(text, place):
    assert voted(text, 3) == place


def test_a_finished_chain_stays_among_the_candidates_and_wins_where_the_votes_say_so():
    scene, answer = played({"depth": 2, "breadth": 2, "votes": 1}, ["finished\nbad", "nothing", "worse\nworst"],
                           ["Best: 1", "Best: 1"])
    assert steps_in(scene.prompts("vote")[1], "candidates") == [
        "Candidate 1:", "- finished", "Candidate 2:", "- bad", "- worse", "Candidate 3:", "- bad", "- worst"]
    assert steps_in(scene.prompts("answer")[0]) == ["- finished"]
    assert answer.notes == ()
