"""The user's own JSON Lines, and choosing questions by tag, sample and limit."""
import json

import pytest
from pydantic import TypeAdapter, ValidationError

from documents.errors import BenchmarkError
from experiments.benchmarks import BenchmarkSettings, OwnQuestions
from experiments.question import Gold


@pytest.fixture
def write(tmp_path):
    def write(*records, raw=None):
        content = "".join(json.dumps(record) + "\n" for record in records) if raw is None else raw
        (tmp_path / "own.jsonl").write_bytes(content.encode() if isinstance(content, str) else content)
        return str(tmp_path / "own.jsonl")
    return write


def test_a_question_alone_is_enough(write):
    question = OwnQuestions(path=write({"question": "Why?"})).load().questions[0]
    assert (question.text, question.answers, question.answerable, question.gold) == ("Why?", (), True, ())
    assert len(question.id) == 12


def test_every_field_is_read(write):
    path = write({"question": "How long?", "id": 4, "answer": 24, "answers": ["24 months", "24"], "answerable": False,
                  "gold_chunks": ["c1"], "gold_documents": ["a.html", {"document": "b.pdf", "page": 3}, "a.html"],
                  "options": ["x", "y"], "sub_questions": ["Which?"], "tags": {"topic": "time", "team": ["a", "b"]}})
    question = OwnQuestions(path=path).load().questions[0]
    assert question.id == "4"
    assert question.answers == ("24", "24 months")
    assert question.gold == (Gold("", chunk="c1"), Gold("a.html"), Gold("b.pdf", page=3))
    assert question.options == (("A", "x"), ("B", "y"))
    assert question.sub_questions == ("Which?",)
    assert question.tags == {"topic": ("time",), "team": ("a", "b")}
    assert not question.answerable


def test_blank_lines_a_byte_order_mark_and_korean_are_fine(write):
    path = write(raw=b"\xef\xbb\xbf" + '{"question": "왜?"}\r\n\r\n{"question": "언제?"}'.encode())
    assert [question.text for question in OwnQuestions(path=path).load().questions] == ["왜?", "언제?"]


@pytest.mark.parametrize(("record", "complaint"), [
    ({"question": "?", "anwser": "x"}, "line 1, field anwser: expected one of the fields question, id, answer, "),
    ({"answer": "x"}, "field question: expected it to be there, found nothing"),
    ({"question": 5}, "field question: expected a valid string, found 5"),
    ({"question": "?", "answer": True}, "field answer: expected a valid string, found True"),
    ({"question": "?", "answer": None}, 'field answer: expected an answer; .* write "answerable": false instead'),
    ({"question": "?", "answer": " "}, 'field answer: expected an answer; .* write "answerable": false instead'),
    ({"question": "?", "answerable": "no"}, "field answerable: expected a valid boolean, found 'no'"),
    ({"question": "?", "gold_documents": [{"document": "a.pdf", "page": 0}]},
     r"gold_documents\.0\.page: expected greater than or equal to 1, found 0"),
    ({"question": "?", "gold_documents": [3]}, r"gold_documents\.0: expected a valid dictionary"),
    ({"question": "?", "gold_documents": [{"document": "a.pdf", "pages": 1}]},
     r"gold_documents\.0\.pages: expected one of the fields document, page"),
])
def test_a_line_that_does_not_fit_says_where_and_what(write, record, complaint):
    with pytest.raises(BenchmarkError, match=complaint) as caught:
        OwnQuestions(path=write(record)).load()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("raw", "complaint"), [
    ('{"question": "?"}\n[1]\n', "line 2: expected one JSON object, found"),
    ('{"question": \n', "line 1: expected one JSON object in UTF-8"),
    (b'{"question": "\xff"}\n', "line 1: expected one JSON object in UTF-8"),
    ('{"question": "\\ud800"}\n', "line 1: expected one JSON object in UTF-8"),
    ("[" * 100_000, "line 1: expected one JSON object in UTF-8"),
    ('{"question": "a", "id": 1}\n{"question": "b", "id": "1"}\n', "line 2, field id: expected an id of its own"),
    ("\n", "no question in it"),
])
def test_a_file_that_does_not_fit_says_where(write, raw, complaint):
    with pytest.raises(BenchmarkError, match=complaint):
        OwnQuestions(path=write(raw=raw)).load()


def test_a_missing_file_is_one_line():
    with pytest.raises(BenchmarkError, match=r"absent\.jsonl: no such file"):
        OwnQuestions(path="absent.jsonl").load()


def numbered(write, count=20):
    return write(*({"question": f"q{at}", "id": str(at), "tags": {"odd": str(at % 2)}} for at in range(count)))


def ids(settings):
    return [question.id for question in settings.load().questions]


def test_a_limit_takes_the_first_in_order(write):
    assert ids(OwnQuestions(path=numbered(write), limit=3)) == ["0", "1", "2"]


def test_a_sample_is_seeded_and_keeps_the_order(write):
    path = numbered(write)
    first, again, other = (ids(OwnQuestions(path=path, sample=5, seed=seed)) for seed in (1, 1, 2))
    assert first == again != other
    assert first == sorted(first, key=int)
    assert len(set(first)) == 5
    assert ids(OwnQuestions(path=path, sample=5, seed=1, limit=2)) == first[:2]
    assert len(ids(OwnQuestions(path=path, sample=50))) == 20


def test_a_filter_keeps_what_has_the_tag_and_an_unknown_one_names_those_there(write):
    path = numbered(write)
    assert ids(OwnQuestions(path=path, filter={"odd": "1"}, limit=2)) == ["1", "3"]
    with pytest.raises(BenchmarkError, match="no question has the tags even=1; there are: odd: 0, 1"):
        OwnQuestions(path=path, filter={"even": "1"}).load()


def test_settings_are_closed_and_name_the_kinds():
    adapter = TypeAdapter(BenchmarkSettings)
    assert adapter.validate_python({"kind": "demo", "limit": 2}).limit == 2
    for wrong, complaint in (({"kind": "crst"}, "'crest', .*'demo', 'jsonl'"), ({"kind": "demo", "lmit": 2}, "lmit"),
                             ({"kind": "demo", "limit": 0}, "greater than 0")):
        with pytest.raises(ValidationError, match=complaint):
            adapter.validate_python(wrong)
