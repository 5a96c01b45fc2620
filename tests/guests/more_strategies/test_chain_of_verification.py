"""chain_of_verification: a draft, questions that check it, answers to them without the draft, and a new answer."""
from disciplined import Told, decided
from gathering import QUESTION

from ragbed.strategies import REFUSAL
from ragbed.strategies.settings.strategy_config import reasoning

FOUND = {QUESTION: "jaws", "Who directed Jaws?": "jaws", "Where was Spielberg born?": "spielberg", "": "shark"}
REPLIES = {"plan": "1. Who directed Jaws?\n2. Where was Spielberg born?",
           "verify": ["Steven Spielberg [1].", "In Cincinnati [2]."],
           "answer": ["Los Angeles [1]", "<Thinking>No.</Thinking><Answer>Cincinnati [2]</Answer>"]}


def played(of="direct", replies=None, retrieval="once", changes=None, **settings):
    """The scene, and the answer."""
    said = {**REPLIES, **(replies or {})}
    scene = Told(FOUND, {name: lines if isinstance(lines, str) else [*lines] for name, lines in said.items()})

    strategy = reasoning({"kind": "chain_of_verification", "of": of, **settings})
    return scene, scene.play(retrieval, strategy, **(changes or {}))


def test_questions_are_answered_apart_and_their_answers_reach_the_last_prompt():
    scene, answer = played()
    assert scene.purposes == ["answer", "plan", "verify", "verify", "answer"]
    _, plan, first, second, last = (call.messages[-1].content for call in scene.calls)
    assert "<draft>\nLos Angeles [1]\n</draft>" in plan
    assert "Question: Who directed Jaws?" in first
    assert "Question: Where was Spielberg born?" in second
    for check in (first, second):
        assert "Los Angeles" not in check
        assert QUESTION not in check
    assert "<draft>\nLos Angeles [1]\n</draft>" in last
    assert ("<checks>\nWho directed Jaws?\nSteven Spielberg [1].\nWhere was Spielberg born?\nIn Cincinnati [2].\n"
            "</checks>") in last
    assert answer.text == "Cincinnati [2]"
    assert answer.figures == {"checks": 2.0, "revised": 1.0}
    assert decided(answer) == [("changes the draft", "2 checks")]


def test_what_a_check_finds_reaches_its_own_prompt_and_the_last_one_but_no_other_check():
    scene, answer = played(searches=True)
    assert scene.rounds == [[QUESTION], ["Who directed Jaws?", "Where was Spielberg born?"]]
    assert [call.shown for call in scene.calls] == [(1,), (1,), (1,), (1, 2), (1, 2)]
    assert "[2]\nSteven Spielberg was born on December 18, 1946" in scene.prompt(3)
    assert "[2]\nSteven Spielberg was born on December 18, 1946" in scene.prompt(4)
    assert (answer.cited, answer.invalid_citations) == ((2,), ())


def test_without_a_question_that_can_be_read_the_draft_stands():
    for plan in ("", QUESTION, "Questions:"):
        scene, answer = played(replies={"plan": plan})
        assert scene.purposes == ["answer", "plan"]
        assert (answer.text, answer.notes) == ("Los Angeles [1]", ("no_checks",))
        assert decided(answer) == [("keeps the draft", "no question that checks it could be read")]


def test_no_more_questions_are_asked_than_the_settings_say():
    scene, _ = played(replies={"plan": "a?\nb?\nc?\nd?\ne?\nf?", "verify": "unknown"}, questions=3)
    assert scene.purposes.count("verify") == 3


def test_a_refused_draft_may_be_answered_and_an_answer_refused():
    _, answer = played(replies={"answer": [REFUSAL, "<Answer>Cincinnati [1]</Answer>"]})
    assert (answer.outcome, answer.text) == ("answered", "Cincinnati [1]")
    _, answer = played(replies={"answer": ["Los Angeles [1]", f"<Answer>{REFUSAL}</Answer>"]})
    assert answer.outcome == "refused"


def test_an_answer_that_stays_as_it_was_is_told_as_such():
    _, answer = played(replies={"answer": ["Cincinnati [1]", "<Answer>cincinnati  [1]</Answer>"]})
    assert answer.figures["revised"] == 0.0
    assert decided(answer) == [("keeps the draft", "2 checks")]


def test_the_draft_may_be_another_strategys_whose_evidence_and_figures_stay():
    of = {"kind": "self_consistency", "samples": 3}
    scene, answer = played(of, {"answer": [*["<Answer>Utah</Answer>"] * 3, "<Answer>Cincinnati [1]</Answer>"]})
    assert scene.purposes == [*["answer"] * 3, "plan", "verify", "verify", "answer"]
    assert "<draft>\nUtah\n</draft>" in scene.prompt(3)
    assert (answer.text, answer.figures["agreement"], answer.figures["checks"]) == ("Cincinnati [1]", 1.0, 2.0)


def test_options_are_hidden_from_the_checks_and_shown_with_the_answer():
    scene, answer = played(replies={"answer": ["B", "<Answer>A</Answer>"]},
                           changes={"rules": "choice", "options": (("A", "Cincinnati"), ("B", "Utah"))})
    assert [("B. Utah" in call.messages[-1].content) for call in scene.calls] == [True, True, False, False, True]
    assert answer.text == "A"
