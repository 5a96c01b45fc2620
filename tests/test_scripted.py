"""The scripted model, with which a strategy is tested without a server."""
import pytest

from ragbed.agents import DecisionStep, Limits, Scripted, drive
from ragbed.agents.scripted import answer_reply, example_value, tool_call_reply, unsatisfied_reply
from ragbed.documents import ScriptEnded
from ragbed.strategies import (
    REASONING,
    REFUSAL,
    RETRIEVAL,
    Decision,
    Draft,
    Failure,
    Generate,
    Message,
    Recipe,
    Reply,
    Search,
    Task,
    answer,
    ask,
)

JAWS = "Spielberg of Cincinnati directed Jaws."


def looks_up(task: Task) -> Recipe:
    """Asks what is missing, searches for it, and answers."""
    evidence = yield from task.gather(task.question)
    reply: Reply = yield ask(task, "What is missing?", evidence, "missing")
    evidence += yield from task.gather(reply.text)
    return (yield from answer(task, "direct", evidence, thinks=False))


def test_a_strategy_is_played_over_lines_by_purpose_and_texts_by_query():
    model = Scripted({"missing": "Who directed Jaws?", "answer": "Cincinnati [1]"}, {"Who directed Jaws?": [JAWS]})
    found = model.play(looks_up, "Where was he born?")
    assert (found.text, found.cited, model.searched) == ("Cincinnati [1]", (1,), ["Where was he born?",
                                                                                  "Who directed Jaws?"])
    assert JAWS in model.prompts("answer")[0]
    assert JAWS not in model.prompts("missing")[0]


def test_lines_come_in_order_and_a_script_that_ends_too_early_says_for_which_call():
    script = ["Who directed Jaws?", "Cincinnati"]
    assert Scripted(script, [JAWS]).play(looks_up).text == "Cincinnati"
    with pytest.raises(ScriptEnded, match=r"the script has no reply left for call 2 \(purpose 'answer'\)"):
        Scripted(script[:1], [JAWS]).play(looks_up)
    with pytest.raises(ScriptEnded, match=r"the script has no reply left for call 1 \(purpose 'missing'\)"):
        Scripted({"answer": "Cincinnati"}).play(looks_up)
    twice = Scripted({"answer": ["one", "two"]})
    assert [twice.play("direct").text for _ in range(2)] == ["one", "two"]


def test_lines_may_come_from_a_function_be_json_where_fields_are_asked_for_or_be_a_failure():
    json = Scripted(['{"refused": false, "answer": "Cincinnati", "citations": [1]}'], [JAWS])
    assert json.play("direct", answer_format="json").cited == (1,)
    assert Scripted(lambda call: f"for {call.purpose}").play("direct").text == "for answer"
    assert Scripted([Failure("http_500", "it failed")]).play("direct").outcome == "error"


def test_a_question_ends_at_its_limits_and_where_a_search_fails():
    assert Scripted({"missing": "x", "answer": "y"}, limits=Limits(calls=1)).play(looks_up).outcome == "budget"
    task = Task("q", "Where?", RETRIEVAL["once"])
    ended = drive(REASONING["direct"], task, lambda calls: [], lambda searches: [Failure("index", "it is gone")])
    assert (ended.outcome, ended.failure.message, ended.trace[0].query) == ("error", "it is gone", "Where?")


def test_an_answer_takes_the_form_that_the_call_asks_for():
    def played(form, text, **said):
        return Scripted(lambda call: answer_reply(call, text, **said), [JAWS]).play("direct", answer_format=form)

    assert [played(form, "Ohio [1]").cited for form in ("tags", "json")] == [(1,), (1,)]
    assert [played(form, REFUSAL, refused=True).outcome for form in ("tags", "json")] == ["refused", "refused"]


@pytest.mark.parametrize("lists", [True, False])
def test_a_model_that_is_never_content_never_says_the_same_to_another_prompt_or_draw(lists):
    one = Generate((Message("user", ("a",)),), "plan")
    said = [unsatisfied_reply(call, 200, lists).text for call in (
        one, Generate(one.messages, "plan", sample=1), Generate((Message("user", ("b",)),), "plan"))]
    assert len(set(said)) == (1 if lists else 3)
    assert min(map(len, said)) > 4 * 200 / 2


def test_tools_are_called_with_arguments_as_objects_or_as_they_are_sent():
    first, second = tool_call_reply([("search", {"query": "Ada"}), ("finish", "{")]).tool_calls
    assert first["function"] == {"name": "search", "arguments": '{"query": "Ada"}'}
    assert (second["function"]["arguments"], second["id"]) == ("{", "call_1")
    react = Scripted({"react": [tool_call_reply([("search", {"query": "Ada"})]), tool_call_reply([("finish", {})])],
                      "answer": "Ohio"},
                     {"Ada": [JAWS]})
    assert (react.play("react", "Where?").text, react.searched) == ("Ohio", ["Where?", "Ada"])


def test_a_schema_gets_the_least_or_the_most_that_fits():
    schema = {"type": "object", "properties": {
        "enough": {"type": "boolean"}, "queries": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        "kind": {"enum": ["a", "b"]}, "score": {"type": "integer", "minimum": 0, "maximum": 9},
        "form": {"const": "x"}, "place": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}
    assert example_value(schema, "t", most=False, items=0) == {
        "enough": False, "queries": [], "kind": "a", "score": 0, "form": "x", "place": "t"}
    assert example_value(schema, "t", most=True, items=8) == {
        "enough": True, "queries": ["t", "t 0.333", "t 0.667"], "kind": "b", "score": 9, "form": "x", "place": "t"}


def test_what_a_search_asks_for_bounds_what_it_finds():
    def asks_for_one(task: Task) -> Recipe:
        evidence = yield Search("x", k=1)
        return (yield from answer(task, "direct", evidence, thinks=False))

    assert len(Scripted(["Ohio"], ["One.", "Two."]).play(asks_for_one).evidence) == 1


def test_as_many_decisions_as_one_likes_may_stand_between_steps_up_to_that():
    def decides(task: Task) -> Recipe:
        for _ in range(3):
            for number in range(199):
                yield Decision(f"number {number}")
            yield Search("next")
        return Draft("Norway", (), False, True, None)

    answer = Scripted([]).play(decides, retrieval="none")
    assert answer.outcome == "answered"
    assert sum(isinstance(step, DecisionStep) for step in answer.trace) == 597


def test_a_decision_is_one_short_line():
    def talks(task: Task) -> Recipe:
        yield Decision("searches\nagain " * 50, "why " * 10_000)
        return Draft("Norway", (), False, True, None)

    (step,) = Scripted([]).play(talks, retrieval="none").trace
    assert (len(step.what), len(step.why), step.what[:16]) == (80, 300, "searches again s")
    assert (step.what[-1], step.why[-1], "\n" in step.what) == ("…", "…", False)
