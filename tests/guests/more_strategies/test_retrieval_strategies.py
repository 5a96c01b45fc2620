"""Retrieval strategies that ask the model: what they search for, in what order chunks are shown, when they stop."""
import pytest
from each_case import each
from gathering import QUESTION, Scene, decisions

from ragbed.strategies import answer
from ragbed.strategies.parts.merging import concatenate


def test_wordings_are_searched_at_once_and_what_several_found_comes_first():
    scene = Scene({QUESTION: "a b c", "Jaws director birthplace": "d b", "Who made Jaws?": "b e"},
                  {"queries": "1. Jaws director birthplace\n2. Who made Jaws?\n3. where was the director of jaws born"})
    answer = scene.play("multi_query")
    assert scene.rounds == [[QUESTION, "Jaws director birthplace", "Who made Jaws?"]]
    assert scene.shown == "b a d"  # as many as the longest list; a and d are tied, and a was found first
    assert [passage.number for passage in answer.evidence] == [1, 2, 3, 4, 5]
    assert scene.calls[-1].shown == (2, 1, 4)
    assert decisions(answer) == [("searches less", "2 of 3 wordings came")]


def test_a_passage_that_might_answer_is_searched_in_place_of_the_question():
    scene = Scene({"Spielberg was born in Cincinnati, Ohio.": "born"},
                  {"passage": "<think>Hm.</think>Spielberg was born\n in  Cincinnati, Ohio."})
    scene.play("hyde")
    assert scene.searched == ["Spielberg was born in Cincinnati, Ohio."]
    assert scene.shown == "born"
    assert [(call.sample, call.temperature) for call in scene.calls[:1]] == [(0, None)]


def test_several_passages_are_drawn_and_fused_and_the_question_may_stand_beside_them():
    scene = Scene({"one": "a b", "two": "b c", QUESTION: "c d"}, {"passage": ["one", "two"]})
    scene.play({"kind": "hyde", "samples": 2, "beside": True, "keep": 4})
    assert scene.rounds == [[QUESTION, "one", "two"]]
    assert [(call.sample, call.temperature) for call in scene.calls[:2]] == [(0, 0.7), (1, 0.7)]
    assert scene.shown == "c b a d"


def test_a_more_general_question_is_searched_beside_the_question_and_they_take_turns():
    general = "Where were directors born?"
    scene = Scene({QUESTION: "a b c", general: "c d e"}, {"step_back": general})
    scene.play({"kind": "step_back", "keep": 4})
    assert scene.rounds == [[QUESTION, general]]
    assert scene.shown == "a c b d"


def test_each_sub_question_is_searched_and_the_best_of_each_is_shown():
    scene = Scene({QUESTION: "x y z", "Who directed Jaws?": "jaws x y", "Where was Spielberg born?": "born x y"},
                  {"decompose": "Sub-questions:\n- Who directed Jaws?\n- Where was Spielberg born?"})
    scene.play("decompose")
    assert scene.rounds == [[QUESTION, "Who directed Jaws?", "Where was Spielberg born?"]]
    assert scene.shown == "x jaws born"  # reciprocal ranks would have shown x, y and z


def test_what_does_not_help_is_dropped_and_the_second_search_reaches_the_prompt():
    scene = Scene({QUESTION: "sharks jaws boats", "Spielberg birthplace": "sharks born"},
                  {"grade": ["Grade: 0", "Grade: 2", "Grade: 1", "Grade: 3"], "rewrite": "Spielberg birthplace"})
    answer = scene.play("corrective")
    assert scene.rounds == [[QUESTION], ["Spielberg birthplace"]]
    assert scene.shown == "jaws born"
    assert scene.calls[-1].shown == (2, 4)  # the dropped ones leave gaps
    assert decisions(answer) == [("drops", "[1] [3]"), ("searches again", "1 of 3 left")]
    assert [("Text of sharks." in prompt) for prompt in scene.prompts("grade")] == [True, False, False, False]
    assert QUESTION in scene.prompts("rewrite")[0]


def test_a_third_lap_knows_what_was_tried_and_adds_to_what_was_kept():
    scene = Scene({QUESTION: "a", "second": "b", "third": "c d"},
                  {"grade": ["Grade: 0", "Grade: 3", "Grade: 0", "Grade: 2"], "rewrite": ["second", "second\nthird"]})
    answer = scene.play({"kind": "corrective", "iterations": 3})
    assert scene.searched == [QUESTION, "second", "third"]
    assert scene.shown == "b d"
    assert f"<tried>\n{QUESTION}\nsecond\n</tried>" in scene.prompts("rewrite")[1]
    assert ("searches again", "1 of 2 left") in decisions(answer)


def test_enough_left_needs_no_second_search_and_the_bar_is_a_setting():
    replies = {"grade": ["Grade: 1", "Grade: 2", "Grade: 3"]}
    for settings, shown, searches in (({"least": 1}, "b c", 1), ({"threshold": 1}, "a b c", 1),
                                      ({"threshold": 3, "least": 1}, "c", 1),
                                      ({"iterations": 1, "least": 9}, "b c", 1)):
        scene = Scene({QUESTION: "a b c"}, {"grade": list(replies["grade"])})
        scene.play({"kind": "corrective", **settings})
        assert (scene.shown, len(scene.searched)) == (shown, searches)


def test_a_grade_that_cannot_be_read_keeps_its_chunk_and_is_said():
    scene = Scene({QUESTION: "a b c d"}, {"grade": ["It helps.", "Grade: 0", "Grade: 3\nGrade: 0", "<think>Grade: 0"]})
    answer = scene.play("corrective")
    assert scene.shown == "a c d"
    assert decisions(answer) == [("keeps ungraded", "[1] [3] [4]: the grade cannot be read"), ("drops", "[2]")]


def test_where_all_is_dropped_no_document_is_shown_but_where_the_rules_promise_enough():
    for rules, shown in (("grounded", ""), ("open", ""), ("choice", ""), ("reading", "a b")):
        scene = Scene({"": "a b"}, {"grade": "Grade: 0", "rewrite": "again"})
        answer = scene.play("corrective", rules=rules)
        assert scene.shown == shown
        assert ("stops", "the search brought nothing new") in decisions(answer)
        assert (("keeps all", "the rules promise that the documents are enough") in decisions(answer)) == bool(shown)


def test_the_draft_of_an_answer_is_searched_with_and_the_next_one_sees_what_that_found():
    first, second = f"{QUESTION} Spielberg made it.", f"{QUESTION} Spielberg, born in Ohio."
    scene = Scene({QUESTION: "jaws sharks", first: "spielberg jaws", second: "ohio spielberg"},
                  {"draft": ["Spielberg made it [1].", "Spielberg, born in Ohio [3]."]})
    answer = scene.play({"kind": "iterative", "iterations": 3})
    assert scene.searched == [QUESTION, first, second]
    drafts = scene.prompts("draft")
    assert "Text of jaws." in drafts[0]
    assert "Text of spielberg." in drafts[1]
    assert [call.shown for call in scene.calls] == [(1, 2), (3, 1), (4, 3)]
    assert scene.shown == "ohio spielberg"
    assert decisions(answer) == [("searches again", "with the last draft")] * 2


def test_the_question_decides_how_it_is_searched_for():
    for said, way, searches in (("complex", "complex", 2), ("**Moderate**", "moderate", 1),
                                ("It is moderate.", "moderate", 1), ("<think>complex?</think>Simple", "simple", 0)):
        scene = Scene({"": "a", QUESTION: "b"}, {"classify": said, "draft": "Ohio"})
        answer = scene.play("adaptive", rules="open")
        assert len(scene.searched) == searches
        assert decisions(answer)[0] == (f"searches as {way}", "")


@pytest.mark.parametrize("said", ["", "It depends.", "simple or complex", "word " * 500 + "complex"])
def test_a_way_that_cannot_be_read_means_one_search(said):
    scene = Scene({"": "a"}, {"classify": said})
    answer = scene.play("adaptive", rules="open")
    assert scene.searched == [QUESTION]
    assert decisions(answer) == [("searches as moderate", "the reply names no way, or several")]


def test_where_only_documents_may_be_used_a_simple_question_is_searched_for_too():
    for rules, searches in (("grounded", 1), ("reading", 1), ("open", 0), ("choice", 0)):
        scene = Scene({"": "a"}, {"classify": "simple"})
        answer = scene.play("adaptive", rules=rules)
        assert len(scene.searched) == searches
        assert (("searches as moderate", "the rules allow for documents alone") in decisions(answer)) == bool(searches)
    scene = Scene({"": "a"}, {"classify": "simple"})
    scene.play({"kind": "adaptive", "simple": "once", "moderate": "multi_query"})
    assert [call.purpose for call in scene.calls] == ["classify", "answer"]


_NO_LIST = ["", "  \n", "<think>so?", "Here they are:\n1.\n-", QUESTION.upper(), "\n".join(["x" * 1_001] * 3)]
_NO_TEXT = ["", "  \n", "<think>so?", "<Thinking>so?"]


@each(("kind", "purpose", "said", "why"), [
    *(("multi_query", "queries", said, ("searches less", "0 of 3 wordings came")) for said in _NO_LIST),
    *(("step_back", "step_back", said, ("searches as asked", "no more general question came")) for said in _NO_LIST),
    *(("decompose", "decompose", said, ("searches as asked", "no sub-questions came")) for said in _NO_LIST),
    *(("hyde", "passage", said, ("searches as asked", "0 of 1 passages came")) for said in _NO_TEXT),
    *(("iterative", "draft", said, ("stops", "no draft to search with")) for said in _NO_TEXT)])
def test_where_no_query_comes_the_question_is_searched_alone_and_the_trace_says_so(kind, purpose, said, why):
    scene = Scene({QUESTION: "a b"}, {purpose: said})
    answer = scene.play(kind)
    assert scene.searched == [QUESTION]
    assert scene.shown == "a b"
    assert decisions(answer) == [why]


def test_a_rewrite_that_says_nothing_new_ends_the_iterations():
    for said in ("", QUESTION.upper(), "Here is a query:"):
        scene = Scene({QUESTION: "a"}, {"grade": "Grade: 3", "rewrite": said})
        answer = scene.play({"kind": "corrective", "iterations": 5})
        assert scene.searched == [QUESTION]
        assert decisions(answer) == [("stops", "no new query came")]


def test_iterations_end_where_every_search_returns_the_same_chunks():
    corrective = {"kind": "corrective", "iterations": 9, "least": 3}
    for settings, purposes in ((corrective, ["grade", "grade", "rewrite", "answer"]),
                               ({"kind": "iterative", "iterations": 9}, ["draft", "answer"])):
        scene = Scene({"": "a b"}, {"grade": "Grade: 3", "rewrite": "again", "draft": "Ohio"})
        answer = scene.play(settings)
        assert [call.purpose for call in scene.calls] == purposes
        assert decisions(answer)[-1] == ("stops", "the search brought nothing new")
        assert scene.shown == "a b"


@pytest.mark.parametrize("kind", [
    "multi_query", "hyde", "step_back", "decompose", "corrective", "iterative", "adaptive"])
def test_where_nothing_is_found_the_question_is_answered_without_documents(kind):
    scene = Scene({"": ""}, dict.fromkeys(
        ["queries", "passage", "step_back", "decompose", "rewrite", "draft", "classify"], "Something else"))
    answer = scene.play(kind)
    assert answer.evidence == ()
    assert "Documents: none." in scene.prompts("answer")[0]


def test_a_sub_question_is_gathered_for_by_itself():
    def asks_twice(task):
        first = yield from task.gather("Who directed Jaws?")
        second = yield from task.gather("Where was Spielberg born?")
        return (yield from answer(task, "direct", concatenate([first, second])))

    scene = Scene({"x?": "a b", "Who directed Jaws?": "b", "Where was Spielberg born?": "c", "y?": "d"},
                  {"queries": ["x?", "y?"]})
    scene.play({"kind": "multi_query", "keep": 2}, asks_twice)
    assert scene.rounds == [["Who directed Jaws?", "x?"], ["Where was Spielberg born?", "y?"]]
    assert scene.shown == "b a c d"
    first, second = scene.prompts("queries")
    assert "Who directed Jaws?" in first
    assert "Where was Spielberg born?" in second
    assert QUESTION not in first + second
