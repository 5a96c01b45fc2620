"""table_first: facts are collected in a table, looked up, and reasoned over."""
import pytest
from disciplined import Told, decided
from each_case import each
from growth import grows_linearly

from ragbed.documents import Chunk
from ragbed.experiments.guests.more_strategies.parts.quotes import FactRow, check_rows, format_rows, read_rows
from ragbed.strategies import Passage
from ragbed.strategies.settings.strategy_config import reasoning

TEXTS = {"jaws": "Jaws made $476 million in 1975.", "et": "E.T. made $793 million in 1982.", "shark": "Sharks swim."}
REPLY = """| subject | property | value | document |
|---|---|---|---|
| Jaws | gross | $476 million | [1] |
| E.T. | gross | $793 million | [1] |
| E.T. | budget | ten million | [2] |
| Jaws 2 | gross | $208 million | [9] |"""


def played(reply=REPLY, answer="<Answer>E.T. [2]</Answer>", changes=None, **settings):
    """The scene, and the answer."""
    scene = Told({"": "jaws et shark"}, {"table": reply, "answer": answer}, texts=TEXTS)
    return scene, scene.play("once", reasoning({"kind": "table_first", **settings}), **(changes or {}))


def test_the_rows_reach_the_prompt_of_the_answer_each_with_the_document_that_has_its_value():
    scene, answer = played()
    assert scene.purposes == ["table", "answer"]
    assert [call.shown for call in scene.calls] == [(1, 2, 3)] * 2
    assert ("<table>\n| Jaws | gross | $476 million | [1] |\n| E.T. | gross | $793 million | [2] |\n"
            "| E.T. | budget | ten million | [2] |\n</table>") in scene.prompt(1)
    assert scene.calls[0].messages[1].parts[0] == scene.calls[1].messages[1].parts[0]
    assert answer.text == "E.T. [2]"
    assert answer.figures == {"rows": 3.0, "rows_found": 0.5}
    assert decided(answer) == [("drops rows", "1 of 4 name a document that was not shown")]


@pytest.mark.parametrize("reply", ["NONE", "", "There is no such fact.", "| subject | property | value | [1] |", "|||"])
def test_without_a_row_the_answer_is_asked_for_over_the_documents(reply):
    scene, answer = played(reply)
    assert "<table>" not in scene.prompt(1)
    assert (answer.text, answer.notes, answer.figures) == ("E.T. [2]", ("no_table",), {})
    assert decided(answer) == [("answers without a table", "no row could be read")]


def test_closed_book_and_documents_without_numbers_ask_for_rows_without_them():
    for changes in ({"rules": "closed-book"}, {"separators": False}):
        reply = "| Jaws | gross | $476 million |\n| E.T. | gross | 1 |"
        scene, answer = played(reply, "<Answer>E.T.</Answer>", changes)
        assert "[1]" not in scene.prompt(0)
        assert "<table>\n| Jaws | gross | $476 million |\n| E.T. | gross | 1 |\n</table>" in scene.prompt(1)
        assert answer.figures.get("rows_found") == (0.5 if "separators" in changes else None)


@each(("line", "row"), [
    ("| a | b | c | [2] |", FactRow(("a", "b", "c"), 2)), ("a | b | c | 2", FactRow(("a", "b", "c"), 2)),
    ("| a | b | c | Document [2] |", FactRow(("a", "b", "c"), 2)),
    ("| a | b | c [2] |", FactRow(("a", "b", "c [2]"), 2)),
    ("| a | b | 1975 |", FactRow(("a", "b", "1975"))), ("| a | [2] |", None), ("|:--|--:|", None), ("| a |", None),
    ("no table", None), ("| a | b | c | - |", FactRow(("a", "b", "c", "-")))])
def test_rows_are_read_in_the_forms_that_models_write(line, row):
    assert read_rows(line, 9, True) == ([row] if row else [])


def test_a_value_of_one_figure_is_looked_up_too_and_never_inside_a_longer_one():
    evidence = (Passage(1, Chunk("c", "d", "plain", 0, 9, "It has 15 legs.")),
                Passage(2, Chunk("e", "d", "plain", 0, 9, "It has 5 legs.")))
    assert check_rows([FactRow(("a", "legs", "5"), 1)], evidence) == [FactRow(("a", "legs", "5"), 2, True)]
    assert format_rows([FactRow(("a", "b"), 2), FactRow(("a", "b"))], True) == "| a | b | [2] |\n| a | b | - |"


@pytest.mark.parametrize("piece", ["|", "| ", "|a", "\n", "|-", "[1]|"])
def test_a_monstrous_table_takes_no_time(piece):
    grows_linearly(lambda n: read_rows(piece * (n // len(piece)), 12, True), 12_000)
