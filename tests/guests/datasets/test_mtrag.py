"""MTRAG: a task is a turn of a conversation, with the turns before it, over its passages or a whole collection."""
from collections import Counter
from pathlib import Path

import pytest
from loaded import loaded

from ragbed.documents import BenchmarkError, SettingsError
from ragbed.experiments import Question, run
from ragbed.experiments.benchmarks import OwnQuestions
from ragbed.experiments.guests.datasets.mtrag import Mtrag
from ragbed.experiments.runs.store import question_json
from ragbed.experiments.statistics import cluster_questions
from ragbed.strategies import Turn

DATA = Path(__file__).parents[2] / "data"
PATH = str(DATA / "mtrag")
CORPUS = str(DATA / "mtrag_corpora" / "clapnq.jsonl")
FIRST = Turn("which reefs are near esk", "A northern and a southern reef.")


def test_a_task_has_the_turns_before_its_question_and_its_reference_passages_as_gold():
    benchmark = Mtrag(path=PATH).load()
    first, second, third, fourth, *_ = benchmark.questions
    assert (first.turns, first.text) == ((), FIRST.question)
    assert (second.id, second.text, second.turns) == ("c7<::>2", "How fast does the first one grow?", (FIRST,))
    assert third.turns == (FIRST, Turn(second.text, "By two centimetres a year."))
    assert (second.answers, second.answerable) == (("By two centimetres a year.",), True)
    assert [gold.document for gold in third.gold] == ["81_96-190"]
    assert third.provided[0].content == "Reefs of Esk\nCrabs live on the northern reef; nobody fishes there since 1994."
    assert third.tags == {
        "turn": ("3",), "conversation": ("c7",), "collection": ("mt-rag-clapnq-elser-512-100-20240503",),
        "answerability": ("PARTIAL",), "question_type": ("Composite",), "multi_turn": ("Follow-up",)}
    assert (fourth.gold, fourth.answerable, fourth.answers) == ((), True, ("You are welcome.",))
    assert [chunk.document for chunk in benchmark.shared] == ["81_0-96", "81_96-190", "90_0-80"]


def test_what_cannot_be_answered_has_no_answer_and_no_gold():
    *_, last = Mtrag(path=PATH).load().questions
    assert (last.answerable, last.answers, last.gold) == (False, (), ())


def test_the_tasks_of_a_collection_are_asked_over_all_of_it(tmp_path):
    benchmark = Mtrag(path=PATH, corpus=CORPUS).load()
    assert [question.id for question in benchmark.questions] == ["c7<::>1", "c7<::>2", "c7<::>3", "c7<::>4"]
    assert [chunk.document for chunk in benchmark.shared][:3] == ["81_0-96", "81_96-190", "82_0-60"]
    assert {gold.chunk for one in benchmark.questions for gold in one.gold} < {one.id for one in benchmark.shared}
    (tmp_path / "fiqa.jsonl").write_text(Path(CORPUS).read_text())
    with pytest.raises(BenchmarkError, match="no task uses the collection fiqa"):
        Mtrag(path=PATH, corpus=str(tmp_path / "fiqa.jsonl")).load()


def test_turns_of_one_conversation_are_one_cluster():
    asked = [Question(f"{conversation}-{turn}", "?", (), True, tags={"conversation": (conversation,)})
             for conversation in "abcdefgh" for turn in (1, 2)]
    grouped = cluster_questions(asked)
    assert sorted(Counter(grouped.of.values()).values()) == [2] * 8
    assert grouped.note.startswith("16 questions are 8 units: intervals and tests count")


def test_turns_are_stored_and_a_question_without_any_is_stored_as_ever():
    first, second, *_ = Mtrag(path=PATH).load().questions
    assert "turns" not in question_json(first)
    assert '"turns":[{"question":"which reefs are near esk"' in question_json(second).replace(": ", ":")


WRITTEN = {"How fast does the first one grow?": "How fast does the northern reef of Esk grow?",
           "What lives on it, and what did it cost?": "What lives on the northern reef of Esk?",
           "Thank you!": "Thank you!", "And who paid her?": "Who paid for the harbour of Lund?"}


def reply(body):
    asked = body["messages"][-1]["content"]
    if "<query>" in asked:
        return WRITTEN[asked.partition("<query>\n")[2].partition("\n")[0]]
    return "It is so [1]."


def settings(tmp_path, server, **changes):
    return {"name": "turns", "out": str(tmp_path / "runs"), "models": f"{server.url}#m", "conditions": "retrieved",
            "benchmark": {"kind": "mtrag", "path": PATH}, "reasoning": "direct", "judge": "lexical",
            "retriever": {"kind": "bm25", "k": 1}, "history": ["none", "window", "rewrite"], **changes}


def test_history_is_a_factor_of_a_run_and_a_view_says_what_it_changes_in_what_is_found(serve, tmp_path):
    server = serve(reply)
    with run(settings(tmp_path, server)) as made:
        assert list(made.cells) == ["none", "window", "rewrite"]
        records = {(record.result.cell, record.result.question): record.result for record in made.records()}
        view = made.views["history"]
        by_turn = made.views["by:turn"]
    none, window, rewrite = (row["id"] for row in made.summary["cells"])
    assert len(server.requests) == 6 + 4 + 4 + 3  # a first turn is not rewritten; calls that are equal are made once
    asked = records[rewrite, "c7<::>2"]
    assert [(step.kind, step.purpose, step.query or step.text) for step in asked.trace] == [
        ("generate", "rewrite", "How fast does the northern reef of Esk grow?"),
        ("decision", "asks", "How fast does the northern reef of Esk grow?"),
        ("search", None, "How fast does the northern reef of Esk grow?"), ("generate", "answer", "It is so [1].")]
    assert (asked.usage.calls, records[none, "c7<::>2"].usage.calls) == (2, 1)
    assert "A northern and a southern reef." in records[window, "c7<::>2"].trace[1].query
    assert [(row[0], row[2]) for row in view.rows] == [("window", 4), ("rewrite", 4)]
    moved = [question for question in ("c7<::>2", "c7<::>3", "c7<::>4", "c8<::>2")
             if [one.chunk for one in records[none, question].evidence]
             != [one.chunk for one in records[rewrite, question].evidence]]
    assert view.rows[1][3]["mean"] == len(moved) / 4
    assert [row[0] for row in by_turn.rows if row[1] == "rewrite"] == ["1", "2", "3", "4", "all"]


def test_replies_of_a_conversation_are_read_again_without_a_model(serve, tmp_path, ragbed):
    with run(settings(tmp_path, serve(reply), history=["rewrite", {"kind": "rewrite", "turns": 1}])) as made:
        assert list(made.cells) == ["rewrite", "rewrite(turns=1)"]
        path = made.path
    assert ragbed("verify", path)[0] == 0
    status, out, err = ragbed("rescore", path)
    assert (status, "No figure differs from the run's." in out) == (0, True), err


def test_where_no_question_has_turns_history_is_no_factor(serve, tmp_path):
    server = serve(reply)
    first = {"kind": "mtrag", "path": PATH, "filter": {"turn": "1"}}
    with run(settings(tmp_path, server, benchmark=first)) as made:
        row, = made.summary["cells"]
    assert "history" not in row
    assert len(server.requests) == 2


def test_searching_alone_asks_no_model_to_rewrite_unless_one_is_named(serve, tmp_path):
    server = serve(reply)
    searching = settings(tmp_path, server, reasoning="search_only")
    del searching["models"]
    with pytest.raises(SettingsError, match="rewrite calls a model; name one"):
        run(searching)
    with run({**searching, "history": ["none", "window"]}) as made:
        assert [len(list(made.records())), len(server.requests)] == [12, 0]
    with run(settings(tmp_path, server, reasoning="search_only", history=["none", "rewrite"], name="two")) as made:
        assert "history" in made.views
    assert len(server.requests) == 4


def test_judges_and_people_read_a_question_with_the_turns_before_it(serve, tmp_path, ragbed):
    judge = serve(["Grade: Correct\nError type: None"] * 6)
    grading = {"kind": "model", "model": f"{judge.url}#j"}
    with run(settings(tmp_path, serve(reply), history="none", judge=grading)) as made:
        path = made.path
    seen = [body["messages"][-1]["content"] for body, _ in judge.requests]
    asked = ("Before: which reefs are near esk\nAnswer: A northern and a southern reef.\n"
             "Now: How fast does the first one grow?")
    assert sum(asked in one for one in seen) == 1
    shown = " ".join(ragbed("show", path, "c7<::>2")[1].split())
    assert "before which reefs are near esk | A northern and a southern reef. question How fast does" in shown


def test_own_questions_may_have_turns_before_them(tmp_path):
    row = {"question": "Why?", "turns": [{"question": "Is it open?", "answer": "No."}, {"question": "Still?"}]}
    first, second = loaded(OwnQuestions, tmp_path / "own.jsonl", row, {"question": "Why?"}).questions
    assert first.turns == (Turn("Is it open?", "No."), Turn("Still?", ""))
    assert first.id != second.id
    with pytest.raises(BenchmarkError, match=r"field turns\.0\.text: expected one of the fields question, answer"):
        loaded(OwnQuestions, tmp_path / "own.jsonl", {"question": "?", "turns": [{"question": "?", "text": "x"}]})
