"""Worked examples in prompts: after the documents and before the rules, as the strategy answers; read strictly."""
import contextlib
import json

import pytest

from ragbed.documents import SettingsError
from ragbed.experiments.guests.datasets.mrke import Mrke
from ragbed.experiments.running.checks import check_exemplars
from ragbed.strategies import CRESTS, Exemplar, template
from ragbed.strategies.settings.exemplars import read_exemplars

MILL = {"question": "Which mill opened first?", "documents": ["The north mill opened in 1871.", "The south in 1880."],
        "reasoning": "1871 comes before 1880.", "answer": "The north mill [1]"}


@pytest.fixture
def write(tmp_path):
    def write(*lines):
        path = tmp_path / "examples.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path
    return write


def test_every_field_is_read(write):
    assert read_exemplars(write(MILL, {"question": "Why?", "answer": "So."})) == (
        Exemplar(MILL["question"], MILL["answer"], tuple(MILL["documents"]), MILL["reasoning"]),
        Exemplar("Why?", "So."))


@pytest.mark.parametrize(("line", "says"), [
    ({"question": "Why?"}, "line 1, field answer: expected text, found nothing"),
    ({"question": " ", "answer": "x"}, "line 1, field question: expected text, found ' '"),
    ({"question": "Why?", "answer": 3}, "field answer: expected text, found 3"),
    ({"question": "Why?", "answer": "x", "thinking": ""},
     "field thinking: expected one of the fields question, answer, documents, reasoning, found 'thinking'"),
    ({"question": "Why?", "answer": "x", "documents": "one"}, "field documents"),
    ({"question": "Why?", "answer": "x", "reasoning": 3}, "field reasoning")])
def test_a_line_that_does_not_fit_says_where_and_what(write, line, says):
    with pytest.raises(SettingsError, match=r"^exemplars: .*examples\.jsonl, line 1, field ") as refused:
        read_exemplars(write(line))
    assert says in str(refused.value)


def first(server):
    """The first user message of each request."""
    return [body["messages"][1]["content"] for body, _ in server.requests]


@pytest.mark.slow
def test_they_stand_between_documents_and_rules_with_the_reasoning_where_one_is_asked_for(serve, town, ragbed, write):
    server = serve(town.reply)
    path = town.config(server.url, reasoning=list(CRESTS), exemplars=str(write(MILL)), concurrency=1)
    assert ragbed("run", path)[0] == 0
    shown = [text for text in first(server) if "Which mill" in text]
    assert all(text.startswith(f"{template('framed_documents')}\n\n<documents>\n[1]\n") for text in shown)
    assert all(text.index("\n\nWorked examples") < text.index("Example 1:") < text.index("Rules:") for text in shown)
    example = ("Example 1:\n\nDocuments:\n\n[1]\nThe north mill opened in 1871.\n\n[2]\nThe south in 1880.\n\n"
               "Question: Which mill opened first?\n\n")
    direct = [text for text in shown if template("direct_cited") in text]
    assert len(direct) == 6
    assert all(example + "The north mill [1]\n\nRules:" in text for text in direct)
    tagged = example + ("<Thinking>1871 comes before 1880.</Thinking>\n<Answer>The north mill [1]</Answer>\n\nRules:")
    assert all(tagged in text for text in shown if text not in direct)
    assert not any("Which mill" in text for text in first(server) if "simpler questions" in text)


def test_closed_book_shows_them_without_documents(serve, town, ragbed, write):
    server = serve(town.reply)
    assert ragbed("run", town.config(server.url, conditions="closed-book", exemplars=str(write(MILL))))[0] == 0
    assert all("Example 1:\n\nQuestion: Which mill" in text and "Documents" not in text for text in first(server))


def test_a_changed_file_is_asked_again_and_its_hash_is_in_the_manifest(serve, town, ragbed, write):
    path = town.config(serve(town.reply).url, exemplars=str(write(MILL)))
    assert ragbed("run", path)[0] == 0
    assert len(json.loads((town.run / "manifest.json").read_text())["exemplars"]) >= 32
    write({**MILL, "answer": "The south mill"})
    status, _, err = ragbed("run", path)
    assert status == 0
    assert "changed since the last run: different worked examples" in err
    assert "6 calls sent and 0 reused" in err


def test_an_example_that_is_one_of_the_questions_is_refused(serve, town, ragbed, write):
    told = {"question": "How many people live in town 2?", "answer": "222"}
    server = serve(town.reply)
    ragbed.refuses("run", town.config(server.url, exemplars=str(write(MILL, told))),
                   says=["exemplars: example 2 asks the question non_refusal-2 of", "would reveal its answer"])


CHAIN = {"id": "orl", "context": [["Tessel", ["The Orlo family runs Tessel."]], "Tessel sits in Marn."],
         "question": "In which city is what the Orlo family runs?", "answer": "Marn",
         "sub_questions": ["What does the Orlo family run?", "In which city is #1?"], "sub_answers": ["Tessel", "Marn"]}


@pytest.mark.parametrize(("question", "documents", "refused"), [
    ("in which CITY is what the Orlo family runs", ["Another document."], True),
    ("What does the Orlo family run?", ["The Orlo family runs Tessel."], True),
    ("What does the Orlo family run?", ["Another document."], True), ("In which city is #1?", [], True),
    ("In which city is Tessel?", [], True),
    ("Say in a word: in which city is Tessel?", ["Tessel sits in Marn"], True),
    ("Say in a word: what does the Orlo family run?", ["The Orlo family runs Tessel."], True),  # without its title
    ("Say in a word: in which city is Tessel?", ["So they say: Tessel sits in Marn. It rains there."], True),
    ("Say in a word: in which city is Tessel?", ["Tessel is elsewhere."], False),
    ("In which city is Boral?", ["Tessel sits in Marn."], False), ("What?", ["Tessel sits in Marn."], False)])
def test_an_example_that_asks_a_part_of_a_question_is_refused_too(tmp_path, write, question, documents, refused):
    (tmp_path / "mrke.jsonl").write_text(json.dumps(CHAIN))
    benchmark = Mrke(path=str(tmp_path / "mrke.jsonl")).load()
    exemplars = read_exemplars(write(MILL, {"question": question, "answer": "x", "documents": documents}))
    with pytest.raises(SettingsError, match="example 2 asks the question orl of mrke, or a part of it"
                       ) if refused else contextlib.nullcontext():
        check_exemplars(exemplars, benchmark)
