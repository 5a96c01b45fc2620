"""react: searches by tool calls over real HTTP, by lines of text, and what it does where tools are not understood."""
import pytest
from calling import FINISH, called, reply_of, searching
from gathering import QUESTION, Scene, chunk, decisions

from ragbed.agents import CallLimits, Journal, Limits, Model, ModelSettings, State, build_graph, open_model
from ragbed.agents.graph import recursion_limit
from ragbed.agents.session import Runtime, Session
from ragbed.strategies import Task
from ragbed.strategies.settings.strategy_config import reasoning as chosen
from ragbed.strategies.settings.strategy_config import retrieval

LIBRARY = {QUESTION: "jaws", "director of Jaws": "spielberg jaws", "Spielberg born": "ohio spielberg", "sharks": "fish"}
ANSWER = "<Answer>Cincinnati [3]</Answer>"


class Seen:
    """One question played over HTTP.

    Attributes:
        rounds: the queries that were searched for at one time.
    """

    def __init__(self, server, **settings):
        self.server, self.settings, self.rounds = server, settings, []
        self.play: Session | None = None

    def session(self, state):
        assert self.play is not None
        return self.play

    async def answer(self, **changes):
        async with open_model(f"{self.server.url}#m", ModelSettings(calls=CallLimits(attempts=1))) as client:
            await client.ready()
            model = Model(client, Journal(None), 64)
            runtime = Runtime(self.find, model.ask, model.key, chunk, Limits())
            task = Task("q", QUESTION, retrieval("once"), **changes)
            self.play = Session(task, chosen({"kind": "react", **self.settings}), runtime)
            state: State = {"id": "q", "question": QUESTION}
            await build_graph(self).ainvoke(state, recursion_limit(runtime.limits))
            return self.play.answer()

    async def find(self, search):
        self.rounds.append(search.query)
        return [chunk(name) for name in LIBRARY.get(search.query, "").split()]

    def sent(self, number):
        """The messages of a request, from 0."""
        return self.server.requests[number][0]["messages"]


async def test_what_each_call_finds_reaches_the_next_prompt_as_the_result_of_that_call(serve):
    seen = Seen(serve([searching("director of Jaws"), searching("Spielberg born"), FINISH, ANSWER]))
    answer = await seen.answer()
    assert (answer.text, answer.cited, answer.notes) == ("Cincinnati [3]", (3,), ())
    assert seen.rounds == [QUESTION, "director of Jaws", "Spielberg born"]
    *_, third, last = seen.sent(2), seen.sent(3)
    assert [m["role"] for m in last] == ["system", "user", *["assistant", "tool"] * 3, "user"]
    assert [m["tool_call_id"] for m in last if m["role"] == "tool"] == ["id0search", "id0search", "id0finish"]
    assert "[2]\nText of spielberg." in third[3]["content"]
    assert "[3]\nText of ohio." in third[5]["content"]
    assert "Text of spielberg." not in third[5]["content"]
    assert third[2]["tool_calls"] == [{"id": "id0search", "type": "function", "function": {
        "name": "search", "arguments": '{"query": "director of Jaws"}'}}]
    assert third[2]["content"] is None
    for number in range(3):
        assert seen.sent(number + 1)[:len(seen.sent(number))] == seen.sent(number)
    assert decisions(answer) == [("goes on", "iteration 1 of 4 brought 1 new passage"),
                                 ("goes on", "iteration 2 of 4 brought 1 new passage"), ("stops", "finish is called")]


async def test_the_tools_stay_in_view_for_the_answer_and_can_no_longer_be_called(serve):
    server = serve([searching("director of Jaws"), FINISH, ANSWER])
    await Seen(server).answer()
    first, _, last = (body for body, _ in server.requests)
    assert [tool["function"]["name"] for tool in first["tools"]] == ["search", "finish"]
    assert last["tools"] == first["tools"]
    assert ("tool_choice" in first, last["tool_choice"]) == (False, "none")


@pytest.mark.parametrize("framing", ["delimited", "none"])
async def test_results_are_as_well_protected_as_the_first_documents_and_declared_as_shown(serve, framing):
    seen = Seen(serve([searching("director of Jaws"), FINISH, ANSWER]))
    answer = await seen.answer(framing=framing)
    _, opening, _, result, *_ = seen.sent(2)
    assert ("<documents>\n[1]\nText of jaws." in opening["content"]) == (framing == "delimited")
    assert ("<documents>\n[2]\nText of spielberg." in result["content"]) == (framing == "delimited")
    assert [step.shown for step in answer.trace if hasattr(step, "shown")] == [(1,), (1, 2), (1, 2)]


async def test_several_calls_of_one_reply_are_searched_at_once_and_each_gets_its_own_result(serve):
    seen = Seen(serve([searching("director of Jaws", "Spielberg born"), FINISH, ANSWER]))
    await seen.answer()
    first, second = (m for m in seen.sent(1) if m["role"] == "tool")
    assert "Text of spielberg." in first["content"]
    assert "Text of ohio." in second["content"]
    assert "Text of spielberg." not in second["content"]


@pytest.mark.parametrize("arguments", [
    "not json", '"Jaws"', "[]", "{}", '{"query": 3}', '{"query": ""}', '{"q": "Jaws"}', "[" * 10_000, ""])
async def test_arguments_that_cannot_be_read_are_told_so_and_sent_back_as_an_empty_object(serve, arguments):
    seen = Seen(serve([called(("search", arguments)), FINISH, ANSWER]))
    answer = await seen.answer()
    assert seen.rounds == [QUESTION]
    assistant, result = seen.sent(1)[2:]
    assert assistant["tool_calls"][0]["function"] == {"name": "search", "arguments": "{}"}
    assert result["content"].startswith("Error: this call could not be read.")
    assert decisions(answer)[0] == ("goes on", "iteration 1: no call could be read")
    assert answer.outcome == "answered"


async def test_another_name_is_told_so_and_fifty_calls_are_bounded(serve):
    many = [f"query {number}" for number in range(49)]
    seen = Seen(serve([called(("browse", {"url": "x"}), *(("search", {"query": query}) for query in many)), FINISH,
                       ANSWER]))
    await seen.answer()
    assert seen.rounds == [QUESTION, *many[:3]]
    assistant, *results = seen.sent(1)[2:]
    assert [call["function"]["name"] for call in assistant["tool_calls"]] == ["browse", "search", "search", "search"]
    assert results[0]["content"].startswith("Error: this call could not be read.")
    assert results[-1]["content"].endswith("Error: 46 more calls of this turn were left out; at most 4 are carried out "
                                           "at once.")


async def test_iterations_bound_the_calls(serve):
    seen = Seen(serve([searching("director of Jaws"), searching("Spielberg born"), ANSWER]), iterations=2)
    assert (await seen.answer()).outcome == "answered"
    assert seen.sent(2)[-2]["role"] == "tool"
    assert "[3]\nText of ohio." in seen.sent(2)[-2]["content"]


REFUSED = [(400, "m does not support tools"), (422, "tools: Extra inputs are not permitted"), (501, "no tool calls"),
           (400, '"auto" tool choice requires --enable-auto-tool-choice'), (500, "tools param requires --jinja flag"),
           (404, "No endpoints found that support tool use")]


@pytest.mark.parametrize(("status", "message"), REFUSED)
async def test_where_the_server_refuses_tools_it_goes_on_in_text(serve, status, message):
    def reply(body):
        if "tools" in body:
            return {"status": status, "error": {"message": message}}
        turn = sum(m["role"] == "assistant" for m in body["messages"])
        return ["Thought: who directed it?\nSearch: director of Jaws", "Thought: born?\nSearch[Spielberg born]",
                "Thought: known.\nFinish", ANSWER][turn]

    seen = Seen(serve(reply))
    answer = await seen.answer()
    assert (answer.outcome, answer.cited) == ("answered", (3,))
    assert seen.rounds == [QUESTION, "director of Jaws", "Spielberg born"]
    assert decisions(answer)[0] == ("goes on in text", "the server takes no tools")
    assert "[2]\nText of spielberg." in seen.sent(2)[-1]["content"]
    assert "[3]\nText of ohio." in seen.sent(3)[-1]["content"]
    assert [call["stop"][0] for call, _ in seen.server.requests[1:4]] == ["\nResult:"] * 3


async def test_a_failure_of_another_sort_ends_the_question_and_so_does_a_refusal_where_tools_are_demanded(serve):
    answer = await Seen(serve(lambda body: {"status": 500, "error": {"message": "out of memory"}})).answer()
    assert (answer.outcome, answer.failure and answer.failure.kind) == ("error", "http_500")
    server = serve(lambda body: {"status": 400, "error": {"message": "no tools here"}})
    answer = await Seen(server, tools="native").answer()
    assert (answer.outcome, len(server.requests)) == ("error", 1)


async def test_where_the_first_reply_calls_no_tool_it_goes_on_in_text_unless_tools_are_demanded(serve):
    seen = Seen(serve(["Spielberg is from Ohio.", "Search: director of Jaws", "Finish", ANSWER]))
    answer = await seen.answer()
    assert decisions(answer)[0] == ("goes on in text", "the first reply calls no tool")
    assert seen.rounds == [QUESTION, "director of Jaws"]
    assert "tools" not in seen.server.requests[1][0]
    seen = Seen(serve(["Spielberg is from Ohio.", ANSWER]), tools="native")
    assert decisions(await seen.answer()) == [("stops", "the reply calls no tool")]
    assert seen.rounds == [QUESTION]


async def test_with_tools_text_none_are_sent(serve):
    server = serve(["Finish", ANSWER])
    assert (await Seen(server, tools="text").answer()).outcome == "answered"
    assert not any("tools" in body for body, _ in server.requests)


@pytest.mark.parametrize("text", [
    '```json\n{"name": "search", "arguments": {"query": "director of Jaws"}}\n```',
    '<tool_call>\n{"name":"search","arguments":{"query":"director of Jaws"}}\n</tool_call>',
    '{{"name": "search", "arguments": {"query": "director of Jaws"}}}'])
async def test_a_call_that_the_model_writes_out_in_its_text_counts_as_one(serve, text):
    seen = Seen(serve([text, FINISH, ANSWER]))
    await seen.answer()
    assert seen.rounds == [QUESTION, "director of Jaws"]
    assistant, result = seen.sent(1)[2:]
    assert (assistant["content"], assistant["tool_calls"][0]["id"]) == (None, result["tool_call_id"])


CONVERSING = [("react", {"kind": "react", "tools": "native"}), ("react", {"kind": "react", "tools": "text"}),
              ("ircot", "ircot")]


@pytest.mark.parametrize(("purpose", "said"), CONVERSING)
def test_one_search_that_finds_the_same_does_not_end_it_and_two_do(purpose, said):
    turns = [reply_of(searching(query), f"Search: {query}") for query in ("sharks", "whales")]
    scene = Scene({"": "jaws spielberg"}, {purpose: turns})
    answer = scene.play("once", chosen(said))
    assert decisions(answer) == [("goes on", "iteration 1 of 4 brought 0 new passages"),
                                 ("stops", "2 iterations in a row brought nothing new")]
    assert [call.purpose for call in scene.calls] == [purpose, purpose, "answer"]


@pytest.mark.parametrize(("purpose", "said", "ends"), [
    (*CONVERSING[0], "finish is called"), (*CONVERSING[1], "finish"), (*CONVERSING[2], "the thought holds the answer")])
def test_over_placed_evidence_it_goes_on_until_it_finishes_and_searches_once(purpose, said, ends):
    turns = [reply_of(searching("sharks"), "Search: sharks"), reply_of(searching("whales"), "Search: whales"),
             reply_of(FINISH, "So the answer is Ohio.\nFinish")]
    scene = Scene({"": "jaws spielberg"}, {purpose: turns})
    answer = scene.play("once", chosen(said), placed=True)
    assert scene.searched == [QUESTION]
    assert [call.purpose for call in scene.calls] == [purpose] * 3 + ["answer"]
    assert all(text.startswith("Everything that can be found is shown above.") for text in scene.prompts(purpose)[1:])
    assert decisions(answer)[-1] == ("stops", ends)
