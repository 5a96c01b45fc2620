"""The MRCEval loader: options, sub-tasks by any of their names, and contexts that are missing or shared."""
import pyarrow
import pyarrow.parquet
import pytest
from each_case import each
from loaded import loaded

from ragbed.documents import BenchmarkError
from ragbed.experiments.guests.datasets.mrceval import TASKS, Mrceval, named_subtask

ROW = {"context": "The ferry carried 40 people on Monday and twice as many on Tuesday.",
       "question": "How many people did the ferry carry on Tuesday?", "choices": ["40", "80", "120", "200"],
       "answer": "B", "subtask": "arithmetic"}


@pytest.fixture
def load(tmp_path):
    return lambda *rows: loaded(Mrceval, tmp_path / "MRCEval.jsonl", *rows).questions


def test_a_row_becomes_a_question_over_its_context(load):
    question, = load(ROW)
    assert (question.id, question.text, question.answers, question.answerable) == \
        ("arithmetic-1", ROW["question"], ("B",), True)
    assert question.options == (("A", "40"), ("B", "80"), ("C", "120"), ("D", "200"))
    assert [chunk.content for chunk in question.provided] == [ROW["context"]]
    assert [gold.chunk for gold in question.gold] == [question.provided[0].id]
    assert question.tags == {"task": ("Reasoning",), "subtask": ("arithmetic",)}


def test_the_published_file_is_parquet(tmp_path):
    rows = [{**ROW, "choices": ROW["choices"][:size]} for size in (2, 3, 4)]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "MRCEval.parquet")
    questions = Mrceval(path=str(tmp_path)).load().questions
    assert [len(question.options) for question in questions] == [2, 3, 4]
    assert [question.id for question in questions] == ["arithmetic-1", "arithmetic-2", "arithmetic-3"]


def test_options_may_stand_under_their_letters_with_columns_that_are_null(load):
    question, = load({**ROW, "choices": {"B": "80", "A": "40", "C": "120", "D": None}})
    assert question.options == (("A", "40"), ("B", "80"), ("C", "120"))


def test_a_context_that_several_rows_share_is_one_document_and_an_empty_one_is_none(load):
    first, second, third = load(ROW, {**ROW, "question": "And on Monday?"}, {**ROW, "context": " "})
    assert first.provided == second.provided
    assert (third.provided, third.gold, third.tags["context"]) == ((), (), ("none",))


def test_ids_that_are_stated_are_kept_and_those_that_repeat_stay_apart(load):
    assert [question.id for question in load({**ROW, "id": 3}, {**ROW, "id": "3"}, ROW)] == \
        ["3", "3~2", "arithmetic-1"]


@each(("text", "subtask"), [
    *((name, name) for name in TASKS),
    ("Temporal reasoning", "temporal"), ("multi_hop", "multi-hop"), ("Multihop", "multi-hop"),
    ("facts_understanding/entity", "entity"), ("context-faithful: Unanswerable", "unanswerable"),
    ("world knowledge", "world"), ("common sense knowledge", "commonsense"), ("PubMedQA", "domain"),
    ("MAVEN-Arg", "event"), ("MenatQA", "temporal"), ("SQuAD", "entity"), ("context comprehension", None),
    ("entity and relation", None), ("worldly", None)])
def test_a_subtask_goes_by_many_names(text, subtask):
    assert named_subtask(text) == subtask


@pytest.mark.parametrize(("changes", "complaint"), [
    ({"subtask": "poetry"}, r"line 1, field subtask: expected one of the sub-tasks entity, relation, .*'poetry'"),
    ({"subtask": "poetry", "task": "Reasoning"}, "field subtask: expected one of the sub-tasks"),
    ({"answer": "E"}, "field answer: expected one of the letters A, B, C, D, found 'E'"),
    ({"answer": "80"}, "field answer: expected one of the letters A, B, C, D, found '80'"),
    ({"choices": ["40"]}, "field choices: expected 2 to 4 texts"),
    ({"choices": ["1", "2", "3", "4", "5"]}, "field choices: expected 2 to 4 texts"),
    ({"choices": {"A": "40", "C": "80"}}, "field choices: expected 2 to 4 texts"),
    ({"choices": ["40", 80]}, "field choices: expected 2 to 4 texts"),
    ({"choices": "40, 80"}, "field choices: expected 2 to 4 texts, in a list or with the keys A, B"),
])
def test_a_row_that_does_not_fit_says_where(load, changes, complaint):
    with pytest.raises(BenchmarkError, match=rf"MRCEval\.jsonl, .*{complaint}"):
        load({**ROW, **changes})
