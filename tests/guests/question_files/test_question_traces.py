"""Questions and answers from traces and tests of other tools."""
import json

import pytest

from ragbed.documents import BenchmarkError, UserError
from ragbed.experiments import BENCHMARKS
from ragbed.experiments.answer_files import find_answer_format


def attribute(key, value):
    return {"key": key, "value": {"stringValue": value}}


def span(trace, parent, start, **attributes):
    return {"traceId": trace, "spanId": start, "parentSpanId": parent, "startTimeUnixNano": start,
            "attributes": [attribute(key.replace("__", "."), value) for key, value in attributes.items()]}


OTLP = {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"scope": {"name": "app"}, "spans": [
    span("t1", "1", "2", retrieval__documents__0__document__content="It lasts 24 months.",
         retrieval__documents__0__document__metadata='{"source": "terms.pdf"}', input__value="warranty"),
    span("t1", "", "1", openinference__span__kind="CHAIN", input__value='{"question": "How long?"}',
         output__value="24 months [1]"),
    span("t2", "", "3", openinference__span__kind="LLM", llm__input_messages__0__message__content="Be brief.",
         llm__input_messages__1__message__content="Who pays?", llm__output_messages__0__message__content="We do."),
    span("t3", "", "4", openinference__span__kind="EMBEDDING")]}]}]}
LANGFUSE = [{"id": "a", "input": {"messages": [{"role": "user", "content": "How long?"}]}, "sessionId": "s", "tags": [],
             "output": {"role": "assistant", "content": "24 months [1]"}}]
PROMPTFOO = {"evalId": "e", "results": {"version": 3, "results": [
    {"vars": {"question": "How long?"}, "provider": {"id": "openai:m", "label": label}, "response": {"output": said},
     "testCase": {"vars": {"question": "How long?"}, "metadata": {"topic": "terms"},
                  "assert": [{"type": "llm-rubric", "value": "polite"}, {"type": "icontains", "value": "24 months"}]}}
    for label, said in (("one", "24 months"), ("two", "a year"))]}}
CONFIG = ("prompts: [p.txt]\nproviders: [x]\ntests:\n- vars: {question: How long?}\n  assert:\n"
          "  - {type: contains-any, value: [24 months, two years]}\n- vars: {question: Who?}\n")


@pytest.fixture
def write(tmp_path):
    def write(content, name="file.json"):
        (tmp_path / name).write_text(content if isinstance(content, str) else json.dumps(content))
        return tmp_path / name
    return write


def loaded(file):
    return [(one.text, one.answers) for one in BENCHMARKS["questions"](path=str(file)).load().questions]


@pytest.mark.parametrize(("name", "content", "questions"), [
    ("spans.json", OTLP, [("How long?", ()), ("Who pays?", ())]),
    ("langfuse.json", LANGFUSE, [("How long?", ())]),
    ("items.jsonl", json.dumps({"id": "i", "input": {"question": "How long?"}, "expectedOutput": "24 months"}),
     [("How long?", ("24 months",))]),
    ("promptfoo.json", PROMPTFOO, [("How long?", ("24 months",))]),
    ("promptfooconfig.yaml", CONFIG, [("How long?", ("24 months", "two years")), ("Who?", ())]),
    ("tests.csv", "question,__expected1,__expected2\nHow long?,llm-rubric: polite,contains: 24 months\n",
     [("How long?", ("24 months",))]),
    ("tests.csv", "question,__expected\nHow long?,24 months\n", [("How long?", ("24 months",))])])
def test_traces_and_tests_are_questions_and_an_applications_answer_is_not_gold(write, name, content, questions):
    assert loaded(write(content, name)) == questions


@pytest.mark.parametrize(("format", "content", "answers"), [
    ("opentelemetry", OTLP, [("How long?", "24 months [1]", ["terms.pdf"], ""), ("Who pays?", "We do.", [], "")]),
    ("langfuse", LANGFUSE, [("How long?", "24 months [1]", [], "")]),
    ("promptfoo", PROMPTFOO, [("How long?", "24 months", [], "one"), ("How long?", "a year", [], "two")])])
def test_their_answers_can_be_scored(write, format, content, answers):
    found = find_answer_format(format).read(write(content))
    assert [(one.question, one.content["answer"], [context["document"] for context in one.content["contexts"]], one.run)
            for one in found] == answers


def test_answers_of_two_providers_become_a_run_with_two_cells(ragbed, write, tmp_path):
    asked = write("question,answer\nHow long?,24 months\n", "asked.csv")
    figures = ragbed.json("import", "promptfoo", write(PROMPTFOO), "--benchmark", "questions", asked,
                          "--out", tmp_path, "--name", "theirs")
    assert [(cell["model"], cell["metrics"]["right"]["mean"]) for cell in figures["cells"]] == [
        ("pipeline:one", 1.0), ("pipeline:two", 0.0)]


def test_the_command_writes_questions_to_review(ragbed, write, tmp_path):
    status, out, _ = ragbed("questions", "--from", write(OTLP), "--out", tmp_path / "q.jsonl", "--json")
    assert (status, json.loads(out)["n"]) == (0, 2)
    assert json.loads((tmp_path / "q.jsonl").read_text().splitlines()[0]) == {
        "question": "How long?", "tags": {"given": "24 months [1]"}}


@pytest.mark.parametrize("content", [
    {"resourceSpans": "x"}, {"resourceSpans": [{"scopeSpans": [{"spans": [3]}]}]}, {"results": {"results": [1]}},
    {"tests": [{"vars": 3}]}, {"resourceSpans": []}])
def test_a_damaged_file_is_refused_in_one_line(write, content):
    with pytest.raises((BenchmarkError, UserError)) as error:
        loaded(write(content))
    assert "\n" not in str(error.value)
