"""The user's own JSON Lines, and choosing questions by tag, sample and limit."""
import json

import pytest

from ragbed.documents import BenchmarkError
from ragbed.experiments import ANSWERS, Gold, Step
from ragbed.experiments.benchmarks import OwnQuestions


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
    path = write({"question": "How long?", "id": 4, "answer": 24, "answers": ["2 years", "24"], "answerable": False,
                  "gold_chunks": ["c1"], "gold_documents": ["a.html", {"document": "b.pdf", "page": 3}, "a.html"],
                  "options": ["24", "30"], "sub_questions": ["Which?", "How long is this?"],
                  "sub_answers": ["this", 24], "steps": ["It is this.", "This is 24."],
                  "tags": {"topic": "time", "team": ["a", "b"]}})
    question = OwnQuestions(path=path).load().questions[0]
    assert question.id == "4"
    assert question.answers == ("A", "24", "2 years")
    assert question.gold == (Gold("", chunk="c1"), Gold("a.html"), Gold("b.pdf", page=3))
    assert question.options == (("A", "24"), ("B", "30"))
    assert (question.sub_questions, question.sub_answers) == (("Which?", "How long is #1?"), ("this", "24"))
    assert question.steps == (Step("It is this."), Step("This is 24."))
    assert question.tags == {"topic": ("time",), "team": ("a", "b")}
    assert not question.answerable


@pytest.mark.parametrize("answer", [None, "", " "])
def test_fields_with_null_count_as_left_out(write, answer):
    path = write({"question": "Who?", "id": None, "answer": answer, "answerable": False, "options": None, "tags": None})
    question = OwnQuestions(path=path).load().questions[0]
    assert (question.answers, question.answerable, question.options, question.tags) == ((), False, (), {})


def test_blank_lines_a_byte_order_mark_and_korean_are_fine(write):
    path = write(raw=b"\xef\xbb\xbf" + '{"question": "왜?"}\r\n\r\n{"question": "언제?"}'.encode())
    assert [question.text for question in OwnQuestions(path=path).load().questions] == ["왜?", "언제?"]


@pytest.mark.parametrize(("record", "complaint"), [
    ({"question": "?", "anwser": "x"}, "line 1, field anwser: expected one of the fields question, id, answer, "),
    ({"question": 5}, "field question: expected a valid string, found 5"),
    ({"question": "?", "answer": True}, "field answer: expected a valid string, found True"),
    ({"question": "?", "answer": None}, 'field answer: expected an answer; .* write "answerable": false'),
    ({"question": "?", "answerable": "no"}, "field answerable: expected a valid boolean, found 'no'"),
    ({"question": "?", "gold_documents": [{"document": "a.pdf", "page": 0}]},
     r"gold_documents\.0\.page: expected greater than or equal to 1, found 0"),
    ({"question": "?", "gold_documents": [{"document": "a.pdf", "pages": 1}]},
     r"gold_documents\.0\.pages: expected one of the fields document, page"),
    ({"question": "?", "sub_questions": ["a", "b"], "sub_answers": ["x"]},
     r"field sub_answers: expected 2, one for each of sub_questions, found \['x'\]"),
    ({"question": "?", "sub_answers": ["x"]}, "field sub_answers: expected 0, one for each of sub_questions"),
    ({"question": "?", "answer": "c", "options": ["a", "b"]},
     "field answer: expected one of A, B, or the text of one, found 'c'"),
    ({"question": "  "}, "field question: expected text that is not blank, found '  '"),
    ({"question": "?", "answers": ["a", ""]}, r"field answers\.1: expected text that is not blank, found ''"),
    ({"question": "?", "answer": float("nan")}, "field answer: expected a number, found nan"),
    ({"question": "?", "answers": ["a", "b"], "options": ["a", "b"]},
     "field answers: expected other words for the option A, found 'b'"),
    ({"question": "?", "answer": "B", "options": {"A": "B", "B": "A"}}, "field answer: expected one of A, B, or the"),
    ({"question": "?", "options": [str(place) for place in range(27)]}, "field options: expected at most 26 texts, or"),
    ({"question": "?", "options": ["one"]}, "field options: expected two texts or more, none of them blank"),
    ({"question": "?", "options": ["one", "one "]}, "field options: expected labels that .* texts that differ"),
    ({"question": "?", "options": {"b": "x", "B": "y"}}, "field options: expected labels that differ in more than"),
    ({"question": "?", "options": {"": "x", "B": "y"}}, "field options: expected labels of 1 to 20 letters and digits"),
])
def test_a_line_that_does_not_fit_says_where_and_what(write, record, complaint):
    with pytest.raises(BenchmarkError, match=complaint) as caught:
        OwnQuestions(path=write(record)).load()
    assert "\n" not in str(caught.value)


def test_an_option_goes_by_its_label_or_its_text_and_labels_may_be_words(write):
    options = {"1": "red", "Yes": "green", "가": "blue"}
    for said in ("Yes", "green", " green "):
        question, = OwnQuestions(path=write({"question": "?", "answer": said, "options": options})).load().questions
        assert question.answers[:2] == ("Yes", "green")
    assert question.options == (("1", "red"), ("Yes", "green"), ("가", "blue"))


@pytest.mark.parametrize(("raw", "complaint"), [
    ('{"question": "?", "answer": "a", "answer": "b"}\n', "line 1: expected one .* 'answer' is given twice"),
    ('{"question": "?", "answer": 1e400}\n', "line 1, field answer: expected a number, found inf"),
    ('{"question": "?"}\n[1]\n', "line 2: expected one JSON object, found"),
    ('{"question": \n', "line 1: expected one JSON object in UTF-8"),
    (b'{"question": "\xff"}\n', "line 1: expected one JSON object in UTF-8"),
    ('{"question": "\\ud800"}\n', "line 1: expected one JSON object in UTF-8"),
    ("[" * 100_000, "line 1: expected one JSON object in UTF-8"),
    ('{"question": "a", "id": 1}\n{"question": "b", "id": "1"}\n', "line 2, field id: expected a unique id"),
    ("\n", "contains no questions"),
])
def test_a_file_that_does_not_fit_says_where(write, raw, complaint):
    with pytest.raises(BenchmarkError, match=complaint):
        OwnQuestions(path=write(raw=raw)).load()


def numbered(write, count=20):
    return write(*({"question": f"q{at}", "id": str(at), "tags": {"odd": str(at % 2)}} for at in range(count)))


def ids(settings):
    return [question.id for question in settings.load().questions]


def test_a_limit_is_taken_of_a_sample_and_a_sample_may_be_larger_than_all(write):
    path = numbered(write)
    first = ids(OwnQuestions(path=path, sample=5, seed=1))
    assert first == sorted(first, key=int)
    assert ids(OwnQuestions(path=path, sample=5, seed=1, limit=2)) == first[:2]
    assert len(ids(OwnQuestions(path=path, sample=50))) == 20


def test_a_filter_keeps_what_has_the_tag_and_an_unknown_one_names_those_there(write):
    path = numbered(write)
    assert ids(OwnQuestions(path=path, filter={"odd": "1"}, limit=2)) == ["1", "3"]
    with pytest.raises(BenchmarkError, match="no question has even=1; there are: tags: odd"):
        OwnQuestions(path=path, filter={"even": "1"}).load()


def test_questions_are_chosen_by_id_by_any_tag_and_by_several_values(write):
    path = numbered(write)
    assert ids(OwnQuestions(path=path, filter={"id": ["2", "11", "5"]})) == ["2", "5", "11"]
    assert ids(OwnQuestions(path=path, filter={"tag": "1", "id": ["2", "5"]})) == ["5"]
    for chosen, says in (({"id": ["2", "111"]}, "no question has id=111; did you mean '11'[?] there are: id: "),
                         ({"ods": "1"}, "no question has ods=1; did you mean 'odd'[?] there are: tags: odd"),
                         ({"id": "2", "odd": "1"}, "no question has odd=1 and also the other values of the filter")):
        with pytest.raises(BenchmarkError, match=says):
            OwnQuestions(path=path, filter=chosen).load()


CHOICE = {"id": "a", "question": "Which lamp?", "answer": "red", "options": ["green", "red"]}
CHAIN = {"id": "b", "question": "Where was Eve's aunt born?", "answer": "Rome",
         "sub_questions": ["Who is Eve's aunt?", "Where was #1 born?"], "sub_answers": ["Ada", "Rome"]}
STEPS = {"id": "c", "question": "Who moved?", "answer": "Bo", "steps": ["Bo was not at home.", "The cart left."]}


def reply(body):
    last = body["messages"][-1]["content"]
    asked = last[last.rindex("Question: "):]
    said = next((answer for words, answer in {"lamp": "B", "Who is Eve": "Ada", "Where was": "Rome"}.items()
                 if words in asked), "Bo")
    return f"<Thinking>Bo was not at home.</Thinking><Answer>{said}</Answer>"


@pytest.mark.parametrize(("questions", "columns", "figures"), [
    ([{"question": "Why?"}], ANSWERS.columns, {"well_formed": 1}),
    ([CHOICE, CHAIN], (*ANSWERS.columns, "accuracy", "unparsed", "joint_em / joint_f1", "chain_correct / lucky"),
     {"unified": 1, "accuracy": 1, "unparsed": 0, "joint_em": 1, "sub_em@2": 1, "lucky": 0}),
    ([CHOICE, STEPS], (*ANSWERS.columns, "accuracy", "unparsed"), {"unified": 1, "correct": 1, "accuracy": 1}),
    ([{**CHOICE, "steps": STEPS["steps"]}], ("em / f1", "accuracy", "unparsed", "reasoning_score", "gm"),
     {"em": 1, "accuracy": 1, "reasoning_score": 0.5, "gm": 0.5 ** 0.5})])
def test_what_is_scored_follows_from_what_the_lines_hold(ragbed, serve, town, questions, columns, figures):
    config = town.config(serve(reply).url, benchmark=town.own(*questions), conditions="closed-book",
                         reasoning="chain_of_thought")
    run = ragbed.json("run", config)
    assert run["columns"] == list(columns)
    (cell,) = run["cells"]
    assert {name: cell["metrics"][name]["mean"] for name in figures} == pytest.approx(figures)
    breakdowns = [view["name"] for view in run["views"] if view["section"] == "Breakdowns"]
    assert breakdowns == ["chain"] * (CHAIN in questions)


def test_the_steps_of_own_questions_are_judged_again(ragbed, serve, town):
    config = town.config(serve(reply).url, benchmark=town.own(STEPS), conditions="closed-book",
                         reasoning="chain_of_thought")
    assert ragbed("run", config)[0] == 0
    judge = serve(lambda _: "Held: [0]")
    found = json.loads(ragbed("judge", town.run, "--judge", f"{judge.url}#j", "--json")[1])
    assert (found["rubric"], found["pairs"][0]["agree"]) == ("steps", 1.0)


@pytest.mark.parametrize(("settings", "says"), [({"filled": "gold"}, "filled: "),
                                                ({"sub_answers": "in_prompt"}, "sub_answers: ")])
def test_what_is_said_of_sub_questions_is_refused_where_none_is_scored(ragbed, town, settings, says):
    own = town.own({"question": "Where?", "sub_questions": ["Who?"]})
    ragbed.refuses("run", town.config("http://127.0.0.1:9/v1", benchmark=own, conditions="closed-book", **settings),
                   says=[says, "does not score sub-questions"])
