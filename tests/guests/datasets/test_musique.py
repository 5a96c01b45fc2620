"""MuSiQue: chains with placeholders, aliases, and the unanswerable twins of MuSiQue-Full."""
import json
from pathlib import Path

import pytest
from loaded import loaded

from ragbed.documents import BenchmarkError
from ragbed.experiments.guests.datasets.musique import Musique

DATA = Path(__file__).parents[2] / "data" / "musique"


def published():
    return [json.loads(line) for line in (DATA / "musique_ans_v1.0_dev.jsonl").read_text().splitlines()]


def test_the_chain_keeps_its_placeholders_and_has_an_answer_for_each_step():
    two, three, four = Musique(path=str(DATA)).load().questions
    assert three.sub_questions == ("Scene in the Northwest: Portrait of John Henry Lefroy >> creator",
                                   "Where did #1 live when he died?", "what is the name of the castle in #2")
    assert three.sub_answers == ("Paul Kane", "Toronto", "Casa Loma")
    assert [question.tags["hops"] for question in (two, three, four)] == [("2",), ("3",), ("4",)]
    assert two.answers == ("Gmina Ryki", "Ryki")


def test_supporting_paragraphs_are_gold_in_the_published_order():
    for row, question in zip(published(), Musique(path=str(DATA)).load().questions, strict=True):
        assert len(question.provided) == 20
        gold = {item.chunk for item in question.gold}
        assert [chunk.id in gold for chunk in question.provided] == [
            paragraph["is_supporting"] for paragraph in row["paragraphs"]]


def test_the_unanswerable_twin_of_musique_full_is_another_question_without_a_chain(tmp_path):
    row = published()[0]
    kept = [paragraph for paragraph in row["paragraphs"] if not paragraph["is_supporting"]]
    pair = loaded(Musique, tmp_path / "full.jsonl", row,
                  {**row, "answerable": False, "paragraphs": kept}).questions
    assert [question.answerable for question in pair] == [True, False]
    assert pair[1].id == f"{pair[0].id}-unanswerable"
    assert (pair[1].gold, pair[1].sub_questions, pair[1].sub_answers) == ((), (), ())


@pytest.mark.parametrize(("changes", "complaint"), [
    ({"answerable": "yes"}, "field answerable: expected true or false, found 'yes'"),
    ({"id": "x"}, "field id: expected an id that begins with 2hop, 3hop or 4hop, found 'x'"),
])
def test_a_record_that_does_not_fit_says_where(tmp_path, changes, complaint):
    with pytest.raises(BenchmarkError, match=complaint):
        loaded(Musique, tmp_path / "dev.jsonl", {**published()[0], **changes})
