"""LongMemEval: dated sessions as documents, abstention, and the figures and files of its evaluation script."""
import json

import pytest
from loaded import loaded

from ragbed.documents import BenchmarkError
from ragbed.experiments.guests.datasets.longmemeval import LongMemEval

ROW = {"question_id": "e47b", "question_type": "temporal-reasoning", "question": "How long did I wait?",
       "answer": 2, "question_date": "2023/05/30 (Tue) 23:40", "haystack_session_ids": ["s1", "s2"],
       "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/22 (Mon) 09:00"],
       "haystack_sessions": [[{"role": "user", "content": "I wait for the ferry.", "has_answer": True},
                              {"role": "assistant", "content": "Bring a book."}],
                             [{"role": "user", "content": "The reef is near."}]],
       "answer_session_ids": ["s1"]}


@pytest.fixture
def load(tmp_path):
    return lambda *rows, **settings: loaded(LongMemEval, tmp_path / "longmemeval_s.json", *rows, **settings)


def test_sessions_are_documents_with_their_dates(load):
    found = load(ROW)
    question, = found.questions
    assert (question.text, question.answers) == ("How long did I wait? (asked on 2023/05/30 (Tue) 23:40)", ("2",))
    assert [chunk.content for chunk in question.provided] == [
        "Chat on 2023/05/20 (Sat) 02:21\nuser: I wait for the ferry.\n\nassistant: Bring a book.",
        "Chat on 2023/05/22 (Mon) 09:00\nuser: The reef is near."]
    assert [document.source for document in found.documents.values()] == ["e47b/1", "e47b/2"]
    assert [gold.chunk for gold in question.gold] == [question.provided[0].id]
    assert question.tags == {"question_type": ("temporal-reasoning",)}


def test_turns_are_chunks_and_those_with_the_answer_are_gold(load):
    question, = load(ROW, units="turns").questions
    assert [chunk.content.split("\n")[-1] for chunk in question.provided] == [
        "user: I wait for the ferry.", "assistant: Bring a book.", "user: The reef is near."]
    assert [gold.chunk for gold in question.gold] == [question.provided[0].id]


def test_ids_with_abs_are_unanswerable(load):
    question, = load({**ROW, "question_id": "e47b_abs", "answer": "You never said."}).questions
    assert (question.answerable, question.answers, question.gold) == (False, (), ())


def test_dates_and_ids_of_sessions_may_be_missing(load):
    bare = {name: value for name, value in ROW.items() if name not in (
        "haystack_dates", "haystack_session_ids", "question_date", "answer_session_ids")}
    question, = load(bare).questions
    assert question.text == "How long did I wait?"
    assert question.provided[1].content == "user: The reef is near."
    assert [gold.chunk for gold in question.gold] == [question.provided[0].id]


@pytest.mark.parametrize(("changes", "complaint"), [
    ({"haystack_dates": ["2023"]}, "field haystack_dates: expected one for each of the 2 sessions"),
    ({"haystack_sessions": []}, "field haystack_sessions: expected a list of sessions"),
    ({"haystack_sessions": [[{"role": "user"}], []]}, r"haystack_sessions\[0\].turns\[0\].content: expected text"),
    ({"question_type": None}, "field question_type: expected text"),
])
def test_a_record_that_does_not_fit_says_where(load, changes, complaint):
    with pytest.raises(BenchmarkError, match=complaint):
        load({**ROW, **changes})


@pytest.fixture
def played(ragbed, serve, tmp_path):
    """Five questions: two of one type, one right; two of another, both right; and one that is rightly refused."""
    kinds = {"q1": "multi-session", "q2": "multi-session", "q3": "knowledge-update", "q4": "knowledge-update",
             "q5_abs": "knowledge-update"}
    data = tmp_path / "longmemeval_s.json"
    data.write_text(json.dumps([{**ROW, "question_id": id, "question_type": kind, "question": f"How long was {id}?"}
                                for id, kind in kinds.items()]), encoding="utf-8")

    def reply(body):
        text = str(body["messages"][-1]["content"])
        return f"<Answer>{'The documents do not say.' if 'q5' in text else 9 if 'q2' in text else 2}</Answer>"

    ragbed.json("run", "longmemeval", data, "--model", f"{serve(reply).url}#m", "--reasoning", "direct", "--set",
                "retriever=bm25", "--name", "made", "--out", tmp_path / "runs")
    return data, tmp_path / "runs" / "made"


def test_accuracies_are_those_of_the_evaluation_script(played):
    views = json.loads((played[1] / "summary.json").read_text())["views"]
    rows = next(view["rows"] for view in views if view["name"] == "memory")
    assert [(name, n, figure["mean"] if isinstance(figure, dict) else figure) for name, _, n, figure in rows] == [
        ("knowledge-update", 3, 1.0), ("multi-session", 2, 0.5), ("all questions", 5, 0.8), ("abstention", 1, 1.0),
        ("mean of the types", 5, 0.75)]


def test_hypotheses_are_written_and_read_again(ragbed, played, tmp_path):
    data, run = played
    ragbed("export", run, tmp_path / "hypotheses.jsonl", "--as", "longmemeval")
    lines = [json.loads(line) for line in (tmp_path / "hypotheses.jsonl").read_text().splitlines()]
    assert lines[:2] == [{"question_id": "q1", "hypothesis": "2"}, {"question_id": "q2", "hypothesis": "9"}]
    cell, = ragbed.json("import", "longmemeval", tmp_path / "hypotheses.jsonl", "--benchmark", "longmemeval", data,
                        "--out", tmp_path / "runs", "--name", "again")["cells"]
    assert cell["metrics"]["right"]["mean"] == 0.8
