"""SQuAD 2.0 and ClapNQ: a question on a passage that may not answer it."""
import json
from pathlib import Path

import pytest
from loaded import loaded

from ragbed.documents import BenchmarkError
from ragbed.experiments.guests.datasets.clapnq import ClapNq
from ragbed.experiments.guests.datasets.squad2 import Squad2

DATA = Path(__file__).parents[2] / "data"


def test_squads_nested_file_gives_questions_that_share_their_paragraph():
    benchmark = Squad2(path=str(DATA / "squad2")).load()
    when, who, _ = benchmark.questions
    assert (when.id, when.answers, when.answerable) == ("a1", ("1811", "in 1811"), True)
    assert (who.id, who.answers, who.answerable, who.gold) == ("a2", (), False, ())
    assert when.provided == who.provided
    assert when.provided[0].content.startswith("Harbour bell\nThe harbour bell of Esk")
    assert when.gold[0].chunk == when.provided[0].id
    assert len(benchmark.documents) == 2
    assert [question.id for question in Squad2(path=str(DATA / "squad2"), filter={"article": "Esk reef"}).load()
            .questions] == ["b1"]


def test_squads_flat_rows_say_the_same_as_the_nested_file(tmp_path):
    nested = json.loads((DATA / "squad2" / "dev-v2.0.json").read_text())
    flat = [{"id": asked["id"], "title": article["title"], "context": paragraph["context"],
             "question": asked["question"], "answers": {
                 name: [answer[name] for answer in asked["answers"]] for name in ("text", "answer_start")}}
            for article in nested["data"] for paragraph in article["paragraphs"] for asked in paragraph["qas"]]
    assert loaded(Squad2, tmp_path / "validation.jsonl", *flat) == Squad2(path=str(DATA / "squad2")).load()


def test_a_nested_question_that_does_not_fit_says_where(tmp_path):
    asked = {"id": "1", "question": "?", "answers": [], "is_impossible": False}
    nested = {"data": [{"title": "t", "paragraphs": [{"context": "c", "qas": [asked]}]}]}
    with pytest.raises(BenchmarkError, match=r"line 1, field data\[0\].paragraphs\[0\].qas\[0\].answers: expected "
                                             "answers where is_impossible is false"):
        loaded(Squad2, tmp_path / "dev.jsonl", nested)


def test_clapnqs_two_files_alternate_so_that_a_limit_sees_both():
    benchmark = ClapNq(path=str(DATA / "clapnq"), limit=2).load()
    answerable, unanswerable = benchmark.questions
    assert (answerable.answerable, unanswerable.answerable) == (True, False)
    assert [gold.chunk for gold in answerable.gold] == [answerable.provided[0].id]
    assert (unanswerable.answers, unanswerable.gold, len(unanswerable.provided)) == ((), (), 1)


def test_an_annotator_without_an_answer_does_not_make_one_accepted():
    question = ClapNq(path=str(DATA / "clapnq"), limit=1).load().questions[0]
    assert question.answers == ("Daniel Johnston sings``The story of an artist''",)
