"""reflect: a draft is checked and written anew until a check finds nothing, searching for what it misses."""
from disciplined import Told, decided
from each_case import each
from gathering import QUESTION

from ragbed.experiments.guests.more_strategies.parts.critique import Critique, read_critique
from ragbed.strategies import REFUSAL
from ragbed.strategies.settings.strategy_config import reasoning

FOUND = {QUESTION: "jaws", "Steven Spielberg birthplace": "spielberg jaws", "Cincinnati state": "ohio", "": "shark"}
TEXTS = {"jaws": "Jaws is a film that Steven Spielberg directed.", "spielberg": "Spielberg was born in Cincinnati.",
         "ohio": "Cincinnati is in Ohio.", "shark": "Sharks swim."}
CRITIQUES = ["Fault: no birthplace is named\nSearch: Steven Spielberg birthplace",
             "- **Fault:** the state is missing\n- **Search:** \"Cincinnati state\"", "NO FAULTS"]
DRAFTS = [REFUSAL, "<Answer>Cincinnati [2]</Answer>", "<Answer>Cincinnati, Ohio [2] [3]</Answer>"]


def played(critiques=CRITIQUES, drafts=DRAFTS, changes=None, retrieval="once", **settings):
    """The scene, and the answer."""
    scene = Told(FOUND, {"critique": [*critiques], "answer": [*drafts]}, texts=TEXTS)
    return scene, scene.play(retrieval, reasoning({"kind": "reflect", "iterations": 3, **settings}), **(changes or {}))


def test_what_each_check_finds_and_its_searches_bring_reaches_the_next_draft_and_the_next_check():
    scene, answer = played()
    assert scene.purposes == ["answer", "critique", "answer", "critique", "answer", "critique"]
    assert scene.searched == [QUESTION, "Steven Spielberg birthplace", "Cincinnati state"]
    assert [call.shown for call in scene.calls] == [(1,), (1,), (1, 2), (1, 2), (1, 2, 3), (1, 2, 3)]
    _, first, second, third, fourth, fifth = (scene.prompt(place) for place in range(6))
    assert REFUSAL in first
    assert "[2]\nSpielberg was born in Cincinnati." in second
    assert "no birthplace is named\nMissing: Steven Spielberg birthplace" in second
    assert "<draft>\nCincinnati [2]\n</draft>" in third
    assert "[3]\nCincinnati is in Ohio." in fourth
    assert ("<faults>\nno birthplace is named\nMissing: Steven Spielberg birthplace\nthe state is missing\n"
            "Missing: Cincinnati state\n</faults>") in fourth
    assert "<draft>\nCincinnati, Ohio [2] [3]\n</draft>" in fifth
    assert (answer.outcome, answer.text, answer.cited) == ("answered", "Cincinnati, Ohio [2] [3]", (2, 3))
    assert answer.figures == {"iterations": 3.0, "revised": 1.0}
    assert decided(answer) == [("searches again", "check 1 asks for 1 search"),
                               ("searches again", "check 2 asks for 1 search"),
                               ("accepts the draft", "check 3 found no fault")]


def test_iterations_bound_the_checks():
    scene, answer = played(iterations=1)
    assert scene.purposes == ["answer", "critique", "answer"]
    assert answer.text == "Cincinnati [2]"


def test_a_draft_without_fault_is_the_answer():
    scene, answer = played(["NO FAULTS"], ["Cincinnati [1]"])
    assert scene.purposes == ["answer", "critique"]
    assert (answer.text, answer.figures) == ("Cincinnati [1]", {"iterations": 1.0, "revised": 0.0})


def test_without_searches_no_query_is_asked_for_or_searched():
    scene, _ = played(["Fault: a\nSearch: b", "NO FAULTS"], ["x", "<Answer>y</Answer>"], searches=False)
    assert scene.searched == [QUESTION]
    assert "Search:" not in scene.prompt(1)
    assert "Missing" not in scene.prompt(2)
    assert "Search:" in played()[0].prompt(1)


def test_a_revision_that_changes_nothing_over_the_same_evidence_is_the_last():
    scene, answer = played(["Fault: a"], ["x [1]", "<Answer>X [1].</Answer>"])
    assert scene.purposes == ["answer", "critique", "answer"]
    assert decided(answer) == [("stops", "check 1 changed nothing")]


def test_a_search_that_brings_nothing_new_changes_nothing():
    scene, _ = played(["Search: Steven Spielberg birthplace", "NO FAULTS"], ["x", "<Answer>y</Answer>"],
                      retrieval="none")
    assert [call.shown for call in scene.calls] == [()] * 4


@each(("text", "critique"), [
    ("NO FAULTS", Critique()), ("No faults.", Critique()), ("There are no faults in the draft.", Critique()),
    ("None", Critique()), ("", Critique()), ("Nothing to mend.", Critique()), ("**NO FAULTS**", Critique()),
    ("Fault: none", Critique()), ("Fault: no faults found\nSearch: none", Critique()),
    ("<think>Fault: x</think>NO FAULTS", Critique()),
    ("It is wrong.\nSearch: none", Critique(("It is wrong.",))), ("Search: none", Critique()),
    ("Nothing in it is cited.", Critique(("Nothing in it is cited.",))),
    ("Fault: nothing is cited", Critique(("nothing is cited",))),
    ("1. Fault: a\n2) Faults: b", Critique(("a", "b"))), ("Fault 1: a", Critique(("a",))),
    ("It is wrong.\nAll of it.", Critique(("It is wrong. All of it.",))),
    ("NO FAULTS\nSearch: Spielberg [1]", Critique((), ("Spielberg",))),
    ("Search: \"a b\"\nSearch: A b\nSearch: c", Critique((), ("a b", "c"))),
    (f"Fault: x\nSearch: {QUESTION}", Critique(("x",), ()))])
def test_a_critique_is_read_in_the_forms_that_models_write(text, critique):
    assert read_critique(text, QUESTION) == critique
