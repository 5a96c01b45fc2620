"""RGB: passages in the published proportions, in a seeded order, and answers in parts."""
import json
from pathlib import Path

import pytest
from loaded import loaded

from ragbed.documents import BenchmarkError
from ragbed.experiments.guests.datasets.rgb import Rgb

PATH = str(Path(__file__).parents[2] / "data" / "rgb" / "en_fact.json")
ROWS = [json.loads(line) for line in Path(PATH).read_text().splitlines()]


def shown(question, *fields):
    """How many of the given passages stand in each field of the record."""
    row = ROWS[int(question.id)]
    return tuple(sum(chunk.content in row[field] for chunk in question.provided) for field in fields)


def integrating(tmp_path, **settings):
    row = {"id": 0, "query": "Who won in 2021 and in 2022?", "answer": [["Prell", "Ana Prell"], "Lund"],
           "positive": [["Prell won in 2021.", "2021 was Prell's."], ["Lund won in 2022.", "Lund, 2022."]],
           "negative": [f"No. {number}" for number in range(9)]}
    return loaded(Rgb, tmp_path / "en_int.jsonl", row, **settings).questions[0]


def test_noise_is_a_share_of_the_passages_and_the_rest_hold_the_answer():
    first, second = Rgb(path=PATH).load().questions
    assert shown(first, "positive", "negative") == (3, 2)
    assert [gold.chunk for gold in first.gold] == [
        chunk.id for chunk in first.provided if chunk.content in ROWS[0]["positive"]]
    assert shown(second, "positive", "negative") == (1, 4)  # there is no second passage that holds the answer


@pytest.mark.parametrize(("passages", "noise", "expected"), [
    (5, 0.0, (3, 2)), (5, 0.8, (1, 4)), (5, 1.0, (0, 4)), (3, 0.4, (1, 2)), (10, 0.2, (3, 4)), (1, 0.0, (1, 0)),
])
def test_the_published_proportions(passages, noise, expected):
    first = Rgb(path=PATH, passages=passages, noise=noise).load().questions[0]
    assert shown(first, "positive", "negative") == expected
    assert first.answerable == bool(expected[0])


def test_negatives_that_are_not_shown_are_kept_for_more_noise():
    first = Rgb(path=PATH).load().questions[0]
    assert [chunk.content for chunk in first.negatives] == ROWS[0]["negative"][2:]


def test_rejection_shows_negatives_alone_and_cannot_be_answered():
    question = Rgb(path=PATH, test="rejection").load().questions[1]
    assert shown(question, "positive", "negative") == (0, 5)
    assert (question.answerable, question.gold, question.tags) == (False, (), {"test": ("rejection",)})


def test_counterfactual_shows_the_wrong_answer_and_asks_for_the_true_one():
    question = Rgb(path=PATH, test="counterfactual").load().questions[0]
    assert shown(question, "positive", "positive_wrong", "negative") == (0, 3, 2)
    assert (question.answers, question.answerable, question.gold) == (("Port Esk", "Esk harbour"), True, ())


def test_the_order_is_seeded():
    orders = [tuple(chunk.content for chunk in Rgb(path=PATH, seed=seed).load().questions[0].provided)
              for seed in (0, 0, 1, 2)]
    assert orders[0] == orders[1]
    assert len(set(orders)) > 1
    assert len({frozenset(order) for order in orders}) == 1


def test_an_answer_in_parts_needs_a_passage_for_each(tmp_path):
    question = integrating(tmp_path)
    assert question.answers == ("Prell and Lund", "Ana Prell and Lund")
    contents = {chunk.content for chunk in question.provided}
    assert {"Prell won in 2021.", "Lund won in 2022.", "2021 was Prell's."} < contents
    noisier = {chunk.content for chunk in integrating(tmp_path, noise=0.8).provided}
    assert {"Prell won in 2021.", "Lund won in 2022."} < noisier
    assert len(noisier) == 5


def test_no_part_of_an_answer_goes_without_its_passage(tmp_path):
    first = integrating(tmp_path, passages=1)
    assert {chunk.content for chunk in first.provided} == {"Prell won in 2021.", "Lund won in 2022."}
    assert len(integrating(tmp_path, passages=3, noise=0.8).provided) == 3


@pytest.mark.parametrize(("changes", "test", "complaint"), [
    ({"answer": []}, "noise", "line 1, field answer: expected a text, or a list of texts or lists of texts, found"),
    ({"positive": [["a"], "b"]}, "noise", "field positive: expected texts, or a list of them for each part"),
    ({"positive_wrong": None}, "counterfactual", "field positive_wrong: expected a list of texts, found nothing"),
])
def test_a_record_that_does_not_fit_says_where(tmp_path, changes, test, complaint):
    with pytest.raises(BenchmarkError, match=complaint):
        loaded(Rgb, tmp_path / "en.jsonl", {**ROWS[0], **changes}, test=test)
