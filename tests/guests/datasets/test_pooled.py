"""HotpotQA, 2WikiMultihopQA and MuSiQue with the passages of all questions as one corpus."""
import json
from pathlib import Path

import pytest
from loaded import loaded

from ragbed.documents import BenchmarkError
from ragbed.experiments.guests.datasets.hotpotqa import HotpotQa
from ragbed.experiments.guests.datasets.musique import Musique
from ragbed.experiments.guests.datasets.two_wiki import TwoWiki

TIDE = ["Low Tide", ["Low Tide is a 1951 film.", "Ana Prell directed it."]]
PRELL = ["Ana Prell", ["Ana Prell was born in Selk."]]
REEF = ["Reef", ["The reef grew."]]
HOT = {"type": "bridge", "level": "hard"}
ROWS = ({**HOT, "_id": "one", "question": "Where was the director of Low Tide born?", "answer": "Selk",
         "supporting_facts": [["Low Tide", 1], ["Ana Prell", 0]], "context": [TIDE, PRELL]},
        {**HOT, "_id": "two", "question": "What did the reef do?", "answer": "grow",
         "supporting_facts": [["Reef", 0]], "context": [REEF, TIDE]})
DATA = Path(__file__).parents[2] / "data" / "musique" / "musique_ans_v1.0_dev.jsonl"


def test_every_question_searches_the_passages_of_all(tmp_path):
    pooled = loaded(HotpotQa, tmp_path / "dev.json", *ROWS, pooled=True)
    assert [chunk.content.split("\n")[0] for chunk in pooled.shared] == ["Low Tide", "Ana Prell", "Reef"]
    assert [question.own for question in pooled.questions] == [(), ()]
    ids = [chunk.id for chunk in pooled.shared]
    assert [[ids.index(gold.chunk) for gold in question.gold] for question in pooled.questions] == [[0, 1], [2]]


def test_the_pool_stays_the_same_for_fewer_questions(tmp_path):
    pooled = loaded(HotpotQa, tmp_path / "dev.json", *ROWS, pooled=True, limit=1)
    assert len(pooled.questions) == 1
    assert {chunk.document for chunk in pooled.shared} == set(pooled.documents)
    assert len(pooled.shared) == 3


def test_sentences_and_two_wiki_are_pooled_too(tmp_path):
    assert len(loaded(HotpotQa, tmp_path / "dev.json", *ROWS, pooled=True, units="sentences").shared) == 4
    rows = [{**row, "evidences": [], "type": "compositional"} for row in ROWS]
    assert len(loaded(TwoWiki, tmp_path / "dev.json", *rows, pooled=True).shared) == 3


def test_a_pool_is_searched_unless_the_run_says_otherwise():
    assert HotpotQa.run_as({"pooled": True}) == {"rules": "open", "brief": True, "conditions": "retrieved"}
    assert HotpotQa.run_as({}) == {"rules": "open", "brief": True}


def test_unanswerable_questions_are_not_pooled(tmp_path):
    row = json.loads(DATA.read_text().splitlines()[0])
    with pytest.raises(BenchmarkError, match=r"pooled needs answerable questions.* may answer .*-unanswerable; give"):
        loaded(Musique, tmp_path / "full.jsonl", row, {**row, "answerable": False}, pooled=True)
    assert len(loaded(Musique, tmp_path / "ans.jsonl", row, pooled=True).shared) == 20
