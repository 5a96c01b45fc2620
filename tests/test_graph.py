"""The state machine: how questions end, how evidence is numbered, how a saved question goes on, what is streamed."""
import asyncio
import json
from dataclasses import replace

import pytest

from ragbed.agents import CallLimits, Journal, Limits, Model, ModelSettings, State, build_graph, open_model
from ragbed.agents.checkpoint import restore
from ragbed.agents.graph import recursion_limit
from ragbed.agents.session import Runtime, Session
from ragbed.documents import CallError, CallTimeout, Chunk, Document, IndexFolderError, RecipeMismatch
from ragbed.strategies import REFUSAL, Draft, Recipe, Reply, Search, Task, ask
from ragbed.strategies.settings.strategy_config import reasoning, retrieval

PAGES = [Document(name, f"{name}.txt", name, "", text) for name, text in
         (("oslo", "Oslo is the capital of Norway."), ("bergen", "Bergen is a port."), ("rome", "Rome is in Italy."))]
CHUNKS = {page.id: Chunk.of(page, "plain", 0, len(page.plain)) for page in PAGES}
FOUND = {"first": ["oslo", "bergen"], "second": ["rome", "oslo"], "Where is Oslo?": ["oslo", "rome"]}
BY_ID = {chunk.id: chunk for chunk in CHUNKS.values()}


def two_searches(task: Task) -> Recipe:
    """Searches, asks, searches again, and asks over both findings."""
    first = yield Search("first")
    yield ask(task, "Answer.", first, "look")
    second = yield Search("second")
    reply: Reply = yield ask(task, "Answer.", second, "answer")
    return Draft.from_reply(reply)


def many_at_once(task: Task) -> Recipe:
    """Two searches at once, three calls at once, none at all, and an answer made of what came back, in order."""
    left, right = yield [Search("first"), Search("second")]
    evidence = left + right
    replies = yield [ask(replace(task, question=f"slow {n}"), "Answer.", evidence, "solve") for n in (3, 2, 1)]
    none = yield []
    return Draft.from_reply(Reply(" ".join(reply.text for reply in replies) + f" {none} [1] [3]"))


class Player:
    """Plays every state anew from its results, as LangGraph's Studio does."""

    def __init__(self, runtime: Runtime, recipe) -> None:
        self.runtime = runtime
        self.recipe = recipe

    def session(self, state: State) -> Session:
        task = Task(state["id"], state["question"], retrieval("once"))
        play = Session(task, self.recipe, self.runtime)
        restore(play, state.get("results", ()))
        return play


async def find(search: Search) -> list[Chunk]:
    return [CHUNKS[name] for name in FOUND[search.query]]


async def state_of(server, recipe, limits: Limits | None = None, calls: CallLimits | None = None, results=(),
                   find=find) -> State:
    """The graph's last state."""
    limits = limits or Limits()
    async with open_model(f"{server.url}#m", ModelSettings(calls=calls or CallLimits(attempts=1))) as client:
        await client.ready()
        model = Model(client, Journal(None), 64)
        runtime = Runtime(find, model.ask, model.key, BY_ID.__getitem__, limits)
        start: State = {"id": "q", "question": "Where is Oslo?", "results": list(results)}
        return await build_graph(Player(runtime, recipe)).ainvoke(start, recursion_limit(limits))


async def answer_of(server, recipe, *args, **more) -> dict:
    return (await state_of(server, recipe, *args, **more))["answer"]


@pytest.mark.parametrize(("line", "outcome", "text"), [
    ("<Answer>Norway [1]</Answer>", "answered", "Norway [1]"), (f"<Answer>{REFUSAL}</Answer>", "refused", REFUSAL),
    ("", "malformed", ""), ("<Answer></Answer>", "malformed", ""), ("[1]", "malformed", "[1]"),
    ("<Answer> [1-2]</Answer>", "malformed", "[1-2]"), ("[3, 7]", "answered", "[3, 7]"),
    ({"status": 500}, "error", ""),
    ({"status": 400, "error": {"code": "context_length_exceeded", "message": "too long"}}, "too_long", ""),
    ({"text": "late", "delay": 2}, "timeout", "")])
async def test_a_question_ends_with_the_outcome_of_what_happened(serve, line, outcome, text):
    limits = CallLimits(attempts=1, seconds=0.4 if outcome == "timeout" else 60)
    answer = await answer_of(serve([line]), reasoning("direct"), calls=limits)
    assert (answer["outcome"], answer["text"], answer["refused"]) == (outcome, text, outcome == "refused")
    assert bool(answer["failure"]) == (outcome in ("error", "too_long", "timeout"))


@pytest.mark.parametrize("limits", [Limits(calls=1), Limits(searches=1), Limits(tokens=500)])
async def test_a_question_over_its_budget_says_so_even_when_it_was_resumed_at_every_step(serve, limits):
    server = serve(["<Answer>Norway</Answer>"] * 2)
    answer = await answer_of(server, two_searches, limits)
    assert answer["outcome"] == "budget"
    assert answer["failure"].startswith("limit of ")
    assert len(server.requests) == 1


@pytest.mark.parametrize("recipe", [two_searches, many_at_once])
async def test_the_questions_deadline_ends_a_search_and_its_trace_says_so_even_when_resumed(serve, recipe):
    async def never(search: Search) -> list[Chunk]:
        await asyncio.Event().wait()
        return []

    server = serve([])
    state = await state_of(server, recipe, Limits(seconds=0.2), find=never)
    assert (state["answer"]["outcome"], server.requests) == ("timeout", [])
    assert state["answer"]["failure"] == "the question's deadline passed during a search"
    assert json.loads(json.dumps(state)) == state
    again = await state_of(server, recipe, results=state["results"])
    assert again["answer"] == state["answer"]


async def test_a_search_that_fails_ends_those_beside_it(serve):
    ended = []

    async def fails(search: Search) -> list[Chunk]:
        try:
            await asyncio.sleep(0 if search.query == "first" else 30)
            raise CallError("it is gone", "connection")
        finally:
            ended.append(search.query)

    assert ((await answer_of(serve([]), many_at_once, find=fails))["outcome"], ended) == ("error", ["first", "second"])


@pytest.mark.parametrize(("error", "outcome"), [
    (CallError("the embedder is gone", "connection"), "error"), (CallTimeout("late", "timeout_call"), "timeout")])
async def test_a_failed_call_of_a_search_ends_the_question_and_what_the_user_can_mend_the_run(serve, error, outcome):
    async def fails(search: Search) -> list[Chunk]:
        raise error

    answer = await answer_of(serve([]), reasoning("direct"), find=fails)
    assert (answer["outcome"], answer["failure"]) == (outcome, str(error))
    error = IndexFolderError("make the index again")
    with pytest.raises(IndexFolderError):
        await answer_of(serve([]), reasoning("direct"), find=fails)


async def test_a_chunk_keeps_its_number_over_two_searches_and_only_numbers_that_a_prompt_showed_are_cited(serve):
    server = serve(["looked", "<Answer>Norway [3] [9] [1] [2]</Answer>"])
    answer = await answer_of(server, two_searches)
    assert answer["evidence"] == [{"number": n, "chunk": CHUNKS[name].id}
                                           for n, name in ((1, "oslo"), (2, "bergen"), (3, "rome"))]
    second = server.requests[1][0]["messages"][1]["content"]
    assert "[3]\nRome is in Italy.\n\n[1]\nOslo is the capital of Norway.\n" in second
    assert "[2]" not in second.split("Rules")[0]
    assert [one["number"] for one in answer["citations"]] == [3, 1, 2]
    assert answer["invalid_citations"] == [9]


async def test_actions_of_a_list_are_performed_at_once_and_come_back_in_order(serve):
    server = serve(lambda body: {"text": (n := body["messages"][1]["content"].split("slow ")[1][0]),
                                 "delay": 0.1 * int(n)})
    state = await state_of(server, many_at_once)
    assert state["answer"]["text"] == "3 2 1 [] [1] [3]"
    assert [one["number"] for one in state["answer"]["evidence"]] == [1, 2, 3]
    assert server.busiest == 3


async def test_the_state_is_json_and_holds_neither_prompts_nor_chunk_texts(serve):
    state = await state_of(serve(["looked", "<Answer>Norway [1]</Answer>"]), two_searches)
    text = json.dumps(state)
    assert json.loads(text) == state
    assert "capital of Norway" not in text
    assert "Documents" not in text


async def test_a_saved_question_goes_on_where_it_was_and_ends_the_same(serve):
    lines = ["looked", "<Answer>Norway [1] [7]</Answer>"]
    whole = await state_of(serve(lines), two_searches)
    for done in range(5):
        server = serve(lines[done // 2:])
        resumed = await state_of(server, two_searches, results=whole["results"][:done])
        assert len(server.requests) == 2 - done // 2
        assert resumed["answer"] == whole["answer"]
        assert [entry["actions"] for entry in resumed["results"]] == [entry["actions"] for entry in whole["results"]]


async def test_results_of_another_prompt_are_refused(serve):
    state = await state_of(serve(["looked", "<Answer>Norway</Answer>"]), two_searches)
    with pytest.raises(RecipeMismatch, match="step 1 of the strategy differs"):
        await state_of(serve([]), reasoning("direct"), results=state["results"])
    with pytest.raises(RecipeMismatch, match="its prompts have changed"):
        await state_of(serve([]), two_searches, results=[state["results"][0], {
            **state["results"][1], "actions": ["of another prompt"]}])
