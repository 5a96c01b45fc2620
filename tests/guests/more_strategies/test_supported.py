"""supported: sentences are checked against what they cite; mended once, refused, or kept and noted."""
import pytest
from disciplined import TEXTS, Told, decided
from gathering import QUESTION

from ragbed.experiments.guests.answer_support.statements import read_grades
from ragbed.strategies import REFUSAL

LIBRARY = {QUESTION: "jaws spielberg shark"}
GOOD = "Steven Spielberg, who directed Jaws, was born in Cincinnati [1] [2]."
BAD = "He was born in Springfield, Illinois, in 1950 [2]."
LONG = f"{GOOD} {BAD}"
REPAIR = {"kind": "supported"}
REFUSE = {**REPAIR, "otherwise": "refuse"}
KEEP = {**REPAIR, "otherwise": "keep"}
MODEL = {**REPAIR, "by": "model"}


def scene(*answers, library=LIBRARY, **replies):
    return Told(library, {"answer": list(answers), **replies})


def test_a_supported_answer_costs_no_call_and_stays_as_it_is():
    told = scene(GOOD)
    answer = told.play("once", REPAIR)
    assert (answer.text, answer.cited, told.purposes) == (GOOD, (1, 2), ["answer"])
    assert (answer.figures, answer.notes, decided(answer)) == ({"sentences_supported": 1.0, "repaired": 0.0}, (), [])


def test_an_unsupported_sentence_is_mended_by_a_call_that_shows_documents_answer_and_finding():
    told = scene(LONG, GOOD)
    answer = told.play("once", REPAIR)
    assert (answer.text, answer.outcome, told.purposes) == (GOOD, "answered", ["answer", "answer"])
    assert answer.figures == {"sentences_supported": 1.0, "repaired": 1.0}
    assert decided(answer) == [("repairs", "1 of 2 statements are supported")]
    first, second = told.calls
    assert first.messages[1].parts[0] == second.messages[1].parts[0]
    assert second.shown == (1, 2, 3)
    shown = told.prompt(1)
    assert f"<earlier_answer>\n{LONG}\n</earlier_answer>" in shown
    assert ('<findings>\n- "He was born in Springfield, Illinois, in 1950.": its documents do not say 1950\n'
            "</findings>") in shown
    assert GOOD[:60] not in shown.partition("<findings>")[2]


def test_what_is_not_mended_is_refused_where_less_than_the_share_is_supported():
    told = scene(BAD, BAD)
    answer = told.play("once", REPAIR)
    assert (answer.outcome, answer.text, answer.cited) == ("refused", REFUSAL, ())
    assert (answer.figures, answer.notes) == ({"sentences_supported": 0.0, "repaired": 1.0}, ("unsupported",))
    assert [what for what, _ in decided(answer)] == ["repairs", "refuses"]
    half = scene(LONG, LONG)
    assert half.play("once", REPAIR).figures == {"sentences_supported": 0.5, "repaired": 1.0}
    assert scene(LONG, LONG).play("once", {**REPAIR, "share": 0.6}).outcome == "refused"


def test_a_mended_answer_that_is_worse_or_cannot_be_read_leaves_the_first_one():
    for second, note in ((BAD, "repair_worse"), ("", "repair_unread"), ("It is so.", "repair_worse")):
        answer = scene(LONG, second).play("once", REPAIR)
        assert (answer.text, answer.notes) == (LONG, (note,))
        assert answer.figures == {"sentences_supported": 0.5, "repaired": 1.0}


def test_refuse_and_keep_ask_for_nothing_more():
    for settings, outcome, text in ((REFUSE, "refused", REFUSAL), (KEEP, "answered", BAD)):
        told = scene(BAD)
        answer = told.play("once", settings)
        assert (answer.outcome, answer.text, told.purposes) == (outcome, text, ["answer"])
        assert (answer.figures, answer.notes) == ({"sentences_supported": 0.0, "repaired": 0.0}, ("unsupported",))


def test_missing_citations_and_those_of_nothing_that_was_shown_are_flaws():
    for said, flaw in (("Cincinnati", "it cites no document"),
                       ("Cincinnati [9]", "it cites [9], which no document has")):
        told = scene(said, "Cincinnati [1] [2]")
        answer = told.play("once", REPAIR)
        assert (answer.text, answer.figures["sentences_supported"]) == ("Cincinnati [1] [2]", 1.0)
        assert f'- "Cincinnati": {flaw}\n</findings>' in told.prompt(1)


def test_a_short_answer_is_looked_for_with_the_questions_words_in_what_it_cites():
    assert scene("Cincinnati [2]").play("once", KEEP).figures["sentences_supported"] == 1.0
    assert scene("Cincinnati [1]").play("once", KEEP).figures["sentences_supported"] == 0.0
    assert scene("Yes [2]").play("once", {**KEEP, "threshold": 0.6}).figures["sentences_supported"] == 0.0


@pytest.mark.parametrize(("changes", "figures", "notes"), [
    ({"rules": "choice", "options": (("A", "x"), ("B", "y"))}, {}, ("support_skipped",)),
    ({"rules": "closed-book"}, {}, ("support_skipped",)),
    ({"rules": "reading"}, {"sentences_supported": 0.0, "repaired": 0.0}, ("unsupported",)),
    ({"rules": "open"}, {"repaired": 0.0}, ("support_skipped",)),
    ({"separators": False}, {"sentences_supported": 0.0, "repaired": 0.0}, ("unsupported",))])
def test_rules_without_citations_are_checked_against_all_documents_or_not_at_all(changes, figures, notes):
    told = scene("B")
    answer = told.play("once" if changes.get("rules") != "closed-book" else "none", REFUSE, **changes)
    assert (answer.figures, answer.notes, told.purposes) == (figures, notes, ["answer"])
    assert answer.refused is (changes == {"separators": False})


def test_without_numbers_an_answer_is_supported_by_any_document():
    assert scene("Cincinnati").play("once", REFUSE, separators=False).figures["sentences_supported"] == 1.0
    assert scene("Cincinnati").play("once", REFUSE, rules="reading").figures["sentences_supported"] == 1.0


def test_refusals_and_what_is_no_answer_are_left_alone():
    for said, outcome in ((REFUSAL, "refused"), ("", "malformed")):
        answer = scene(said).play("once", REPAIR)
        assert (answer.outcome, answer.figures, answer.notes) == (outcome, {}, ())


def test_fields_of_an_object_are_checked_with_the_citations_beside_the_answer():
    from ragbed.strategies import Reply
    said = Reply('{"x": 1}', parsed={"answer": "Cincinnati", "citations": [1, 2], "refused": False})
    told = scene(said)
    assert told.play("once", REPAIR, answer_format="json").figures == {"sentences_supported": 1.0, "repaired": 0.0}
    wrong = Reply("{}", parsed={"answer": "Springfield", "citations": [1], "refused": False})
    told = scene(wrong, said)
    assert told.play("once", REPAIR, answer_format="json").figures == {"sentences_supported": 1.0, "repaired": 1.0}
    assert told.calls[1].schema is not None
    assert "JSON" in told.prompt(1)


def test_a_model_judges_all_statements_in_one_call_over_the_same_documents():
    told = scene(LONG, check="1: yes\n2: partly")
    answer = told.play("once", {**MODEL, "threshold": 0.5})
    assert (told.purposes, answer.figures) == (["answer", "check"], {"sentences_supported": 1.0, "repaired": 0.0})
    assert told.calls[0].messages[1].parts[0] == told.calls[1].messages[1].parts[0]
    assert ("<statements>\n1. Steven Spielberg, who directed Jaws, was born in Cincinnati. (documents [1] [2])\n"
            "2. He was born in Springfield, Illinois, in 1950. (documents [2])\n</statements>") in told.prompt(1)


def test_a_model_that_judges_again_after_mending_sees_the_mended_answer():
    told = scene(LONG, GOOD, check=["1: yes\n2: no", "1: yes"])
    answer = told.play("once", MODEL)
    assert told.purposes == ["answer", "check", "answer", "check"]
    assert "Springfield" in told.prompt(1)
    assert "its documents do not say so" in told.prompt(2)
    assert "Springfield" not in told.prompt(3)
    assert (answer.text, answer.figures) == (GOOD, {"sentences_supported": 1.0, "repaired": 1.0})


@pytest.mark.parametrize("said", ["", "All are fine, I think.", "1: two: 3:", "<statements>", "9: no", "1: perhaps"])
def test_a_judgement_that_cannot_be_read_neither_mends_nor_refuses(said):
    told = scene(LONG, check=said)
    answer = told.play("once", MODEL)
    assert (answer.text, answer.figures, answer.notes) == (LONG, {"repaired": 0.0}, ("support_unread",))


@pytest.mark.parametrize(("text", "grades"), [
    ("1: yes\n2: no\n3: partly", [1.0, 0.0, 0.5]), ("**1.** Yes, [2] says so\n- 2) no", [1.0, 0.0, None]),
    ("Statement 3: no\n3: yes", [None, None, 1.0]), ("<think>1: no</think>1 - yes", [1.0, None, None]),
    ("4: yes\n0: no", [None] * 3), ("[1]: 예\n(2) 아니요", [1.0, 0.0, None])])
def test_grades_are_read_from_lines(text, grades):
    assert read_grades(text, 3) == grades


def test_it_goes_around_other_checks_and_sees_what_they_gathered():
    library = {QUESTION: "jaws", "birthplace": "spielberg"}
    told = scene(BAD.replace("[2]", "[1]"), "Cincinnati [2] [1]", library=library,
                 sufficiency=["Missing: birthplace\nSufficiency: 2", "Sufficiency: 8"])
    answer = told.play("once", {**REPAIR, "of": {"kind": "sufficient", "of": "direct"}})
    assert told.purposes == ["sufficiency", "sufficiency", "answer", "answer"]
    assert told.calls[3].shown == (1, 2)
    assert TEXTS["spielberg"] in told.prompt(3)
    assert (answer.text, answer.cited) == ("Cincinnati [2] [1]", (2, 1))
    assert answer.figures == {"sufficiency": 0.8, "sentences_supported": 1.0, "repaired": 1.0}
