"""Recipes in lockstep: one list at a time, searches first, equal actions once, drafts in order."""
import pytest

from ragbed.documents import Chunk
from ragbed.strategies import Decision, Draft, Failure, Generate, Message, Passage, Reply, Search, Usage
from ragbed.strategies.parts.conversation import Lockstep

EVIDENCE = {"a": (Passage(1, Chunk("c1", "d", "plain", 0, 1, "x")),), "b": ()}


def ask(text, **changes):
    return Generate((Message("user", (text,)),), "step", **changes)


def said(draft):
    return Draft(draft, (), False, True, None)


def play(recipe, replies=lambda call: f"re {call.messages[0].content}"):
    """Every list and decision that goes out, and what the recipe returns."""
    out, result = [], None
    while True:
        try:
            asked = recipe.send(result)
        except StopIteration as end:
            return out, end.value
        out.append(asked)
        result = None if isinstance(asked, Decision) else [
            EVIDENCE[one.query] if isinstance(one, Search) else Reply(replies(one), usage=Usage(10, 5, calls=1))
            for one in asked]


def shape(out):
    return [[one.query if isinstance(one, Search) else f"{one.messages[0].content}#{one.sample}" for one in asked]
            for asked in out if not isinstance(asked, Decision)]


def test_searches_of_all_go_out_before_the_calls_and_results_go_back_where_they_belong():
    def quick():
        reply = yield ask("q")
        return said(f"quick {reply.text}")

    def slow():
        first = yield Search("a")
        second, empty = yield [Search("a"), Search("b")]
        reply, = yield [ask(f"s{len(first)}{len(second)}{len(empty)}")]
        return said(f"slow {reply.text}")

    out, drafts = play(Lockstep().run([quick(), slow()]))
    assert shape(out) == [["a"], ["b"], ["q#0", "s110#0"]]
    assert [draft.text for draft in drafts] == ["quick re q", "slow re s110"]


def test_equal_actions_go_out_once_in_this_run_and_in_later_ones():
    def recipe():
        yield Search("a")
        reply = yield ask("q")
        again = yield ask("q")
        return said(reply.text + again.text)

    lockstep = Lockstep()
    out, drafts = play(lockstep.run([recipe(), recipe()]))
    assert shape(out) == [["a"], ["q#0"]]
    assert [draft.text for draft in drafts] == ["re qre q"] * 2
    assert shape(play(lockstep.run([recipe()]))[0]) == []
    assert lockstep.tokens == 15


def test_calls_are_rewritten_by_recipe_over_all_runs_and_then_differ():
    def recipe():
        return said((yield ask("q")).text)

    lockstep = Lockstep(lambda place, call: ask("q", sample=place))
    assert shape(play(lockstep.run([recipe(), recipe()]))[0]) == [["q#0", "q#1"]]
    assert shape(play(lockstep.run([recipe()]))[0]) == [["q#2"]]
    assert lockstep.tokens == 45


def test_decisions_pass_through_with_their_recipe_and_empty_lists_as_they_are():
    def recipe(word):
        assert (yield []) == []
        assert (yield Decision("stops", word)) is None
        return said(word)
        yield

    assert play(Lockstep().run([recipe("x"), recipe("")])) == (
        [[], Decision("stops", "1: x"), [], Decision("stops", "2")], [said("x"), said("")])
    assert play(Lockstep().run([recipe("x")]))[0] == [[], Decision("stops", "x")]


def test_a_failure_that_is_seen_is_not_remembered():
    def recipe():
        first = yield ask("q", see_failure=True)
        second = yield ask("q", see_failure=True)
        return said(f"{type(first).__name__} {type(second).__name__}")

    playing = Lockstep().run([recipe(), recipe()])
    assert shape([playing.send(None)]) == [["q#0"]]
    assert shape([playing.send([Failure("http_500", "x")])]) == [["q#0"]]
    with pytest.raises(StopIteration) as ended:
        playing.send([Reply("y")])
    assert [draft.text for draft in ended.value.value] == ["Failure Reply"] * 2


def test_a_question_that_is_stopped_closes_every_recipe():
    closed = []

    def recipe(name):
        try:
            yield ask(name)
        finally:
            closed.append(name)

    playing = Lockstep().run([recipe("a"), recipe("b")])
    playing.send(None)
    playing.close()
    assert closed == ["a", "b"]


def test_calls_that_differ_in_what_cannot_be_hashed_are_told_apart():
    def recipe(schema):
        return said((yield ask("q", schema=schema)).text)

    assert shape(play(Lockstep().run([recipe({"a": 1}), recipe({"a": 2}), recipe({"a": 1})]))[0]) == [["q#0", "q#0"]]
