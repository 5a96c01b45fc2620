"""Replies in pieces: what comes of them is what one reply would be, whatever the server does on the way."""
import asyncio
import gzip
import json
import threading

import pytest
from streamed import DONE, USAGE, Told, delta, ending, event, streamed

from ragbed.agents import CallLimits, ModelSettings, open_model
from ragbed.agents.http_errors import NOT_STREAMED, StreamMode, StreamNegotiator
from ragbed.documents import CallError, CallTimeout, CallTooLong
from ragbed.strategies import Generate, Message

KEY = "canary-7f3e9d21c0ffee"
ASK = Generate((Message("user", ("Where?",)),), "answer")
TOOLS = ({"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}},)


@pytest.fixture(autouse=True)
def _quick_and_keyed(monkeypatch):
    monkeypatch.setattr("ragbed.documents.http._FIRST_DELAY", 0.01)
    monkeypatch.setenv("RAGBED_API_KEY", KEY)


async def heard(server, action=ASK, tell=None, **limits):
    """A call somebody listens to, and what was told."""
    told = tell or Told()
    async with open_model(f"{server.url}#m", ModelSettings(calls=CallLimits(**limits))) as model:
        return await model.complete(action, max_tokens=64, tell=told), told


async def unheard(server, action=ASK):
    async with open_model(f"{server.url}#m", ModelSettings()) as model:
        return await model.complete(action, max_tokens=64)


async def test_pieces_are_told_as_they_come_and_make_the_reply_that_one_would_be(serve):
    gate, told = threading.Event(), Told()
    server = serve([{"pieces": [delta(content="Pa"), gate, delta(content="ris [1]"), *ending()]}])
    call = asyncio.create_task(heard(server, tell=told))
    assert await asyncio.to_thread(told.first.wait, 10)
    assert (told.all, call.done()) == ([("token", "Pa")], False)
    gate.set()
    done, _ = await call
    assert told.all == [("token", "Pa"), ("token", "ris [1]")]
    one = await unheard(serve(["Paris [1]"]))
    assert (done.reply, done.attempts) == (one.reply, one.attempts)


@pytest.mark.parametrize(("pieces", "text", "told_of"), [
    (["a\ud83d", "\ude00b"], "a\U0001f600b", ["a", "\U0001f600b"]),
    (["\ud83d", "\ude00"], "\U0001f600", ["\U0001f600"]),
    (["a\ud83d", "b"], "a\ufffdb", ["a", "\ufffdb"]), (["a\ud83d"], "a\ufffd", ["a", "\ufffd"])])
@pytest.mark.parametrize(("name", "kind"), [("content", "token"), ("reasoning", "reasoning")])
async def test_a_character_that_comes_in_two_halves_is_told_whole(serve, pieces, text, told_of, name, kind):
    done, told = await heard(serve([{"pieces": [*(delta(**{name: piece}) for piece in pieces), *ending()]}]))
    assert told.all == [(kind, piece) for piece in told_of]
    assert (done.reply.text if name == "content" else done.reply.reasoning) == told.text(kind) == text


async def test_only_who_listens_is_streamed_to(serve):
    server = serve([streamed("Paris"), "Paris"])
    await heard(server)
    await unheard(server)
    bodies = [body for body, _ in server.requests]
    assert bodies[0].pop("stream") is True
    assert bodies[0].pop("stream_options") == {"include_usage": True}
    assert bodies[0] == bodies[1]


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
async def test_reasoning_timings_and_cached_tokens_are_kept(serve, name):
    usage = USAGE | {"prompt_tokens_details": {"cached_tokens": 600}}
    server = serve([{"pieces": [delta(**{name: "Let me "}), delta(**{name: "see."}), delta(content="Paris"),
                                delta("length"), event(choices=[], usage=usage, timings={"prompt_ms": 1.5}), DONE]}])
    done, told = await heard(server)
    assert (done.reply.reasoning, done.reply.text, done.reply.finish_reason) == ("Let me see.", "Paris", "length")
    assert (done.reply.usage.cached_tokens, done.server_timings) == (600, {"prompt_ms": 1.5})
    assert told.text("reasoning") == "Let me see."


def call_piece(index, id=None, name=None, arguments=None):
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    place = {} if index is None else {"index": index}
    return {**place, **({"id": id, "type": "function"} if id else {}), "function": function}


@pytest.mark.parametrize("pieces", [
    [call_piece(0, "a", "search", ""), call_piece(0, arguments='{"query": '), call_piece(0, arguments='"x"}'),
     call_piece(1, "b", "search", '{"query"'), call_piece(1, arguments=': "y"}')],
    [call_piece(0, "a", "search", '{"query": "x"}'), call_piece(0, "b", "search", '{"query": "y"}')],
    [call_piece(None, "a", "search", '{"query": "x"}'), call_piece(None, "b", "search", '{"query": "y"}')]])
async def test_tool_calls_come_together_as_one_reply_has_them(serve, pieces):
    action = Generate(ASK.messages, "answer", tools=TOOLS)
    calls = [{"id": id, "type": "function", "function": {"name": "search", "arguments": json.dumps({"query": query})}}
             for id, query in (("a", "x"), ("b", "y"))]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    one = await unheard(serve([{"message": message, "finish_reason": "tool_calls"}]), action)
    done, _ = await heard(serve([{"pieces": [delta(tool_calls=[piece]) for piece in pieces] + ending("tool_calls")}]),
                          action)
    assert done.reply == one.reply
    assert [call["id"] for call in done.reply.tool_calls] == ["a", "b"]


@pytest.mark.parametrize("broken", [
    {"pieces": [delta(content="Par")], "cut": True}, {"pieces": [delta(content="Par"), DONE]}, {"pieces": []},
    {"pieces": [delta(content="Par"), b"data: {oops\n\n"]}, {"pieces": [delta(content="Par"), b"data: \xff\n\n"]},
    {"pieces": [delta(content="Par"), event(error={"message": "overloaded", "code": 503})]},
    {"pieces": [delta(content="Par"), event(error="gone")]}, {"status": 500}, {"drop": True}])
async def test_a_stream_that_breaks_off_is_a_failed_attempt_and_the_listener_is_told_that_it_begins_anew(serve, broken):
    server = serve([broken, streamed("Paris")])
    done, told = await heard(server)
    assert (done.reply.text, done.attempts, done.reply.usage.calls) == ("Paris", 2, 1)
    kinds = [kind for kind, _ in told.all]
    assert kinds.count("retry") == 1
    assert "".join(text for _, text in told.all[kinds.index("retry") + 1:]) == "Paris"


@pytest.mark.parametrize(("error", "kind", "of"), [
    ({"message": "no", "code": 400}, "http_400", CallError), ({"message": "busy", "code": 503}, "http_503", CallError),
    ({"message": "odd", "code": "x"}, "http_500", CallError), ({"message": "m", "code": "502"}, "http_502", CallError),
    ({"message": "m", "type": "timeout"}, "http_504", CallError),
    ({"message": "big", "code": 400, "type": "exceed_context_size_error"}, "too_long", CallTooLong)])
async def test_an_error_inside_the_stream_means_what_its_status_would(serve, error, kind, of):
    with pytest.raises(of) as caught:
        await heard(serve(lambda _: {"pieces": [delta(content="P"), event(error=error)]}), attempts=2)
    assert caught.value.kind == kind


@pytest.mark.parametrize(("pieces", "kind"), [
    ([delta("error"), DONE], "http_500"), ([*ending("content_filter")], "content_filter"),
    ([event(choices=[{"index": 0, "delta": {}, "error": {"code": 400, "message": "no"}}])], "http_400"),
    ([event(object="error", message="no", code=400), DONE], "http_400"),
    ([event(error={"code": "x"}, choices=[{"index": 0, "delta": {}, "finish_reason": "error"}])], "http_500"),
    ([b'event: error\ndata: {"type": "error", "message": "gone", "status": 502}\n\n'], "http_502")])
async def test_an_error_in_any_field_of_a_piece_ends_the_stream_as_that_error(serve, pieces, kind):
    with pytest.raises(CallError) as caught:
        await heard(serve(lambda _: {"pieces": [delta(content="P"), *pieces]}), attempts=1)
    assert caught.value.kind == kind


async def test_pieces_without_choices_are_no_errors(serve):
    empty = [event(choices=None, error=None), event(choices=[], prompt_filter_results=[{"index": 0}])]
    done, _ = await heard(serve([{"pieces": [*empty, delta(content="Paris"), *ending()]}]))
    assert (done.reply.text, done.attempts) == ("Paris", 1)


@pytest.mark.parametrize(("line", "says"), [
    ({"pieces": [b"data: " + b"x" * (65 << 20)]}, "larger than 64 MB"),
    ({"pieces": [delta(content="x" * (1 << 20))] * 17}, "larger than 16 MB"),
    ({"pieces": [gzip.compress(DONE)], "headers": {"Content-Encoding": "gzip"}}, "compressed"),
    ({"pieces": [event(choices=[]), b"data: []\n\n"]}, "not a chunk of a reply"),
    ({"text": "x" * (17 << 20)}, "larger than 16 MB")])
async def test_a_stream_beyond_any_size_or_form_is_final(serve, line, says):
    server = serve([line])
    with pytest.raises(CallError, match=says) as caught:
        await heard(server)
    assert (caught.value.kind, len(server.requests)) == ("bad_response", 1)


async def test_a_server_that_sends_one_reply_anyway_is_taken_as_it_is(serve):
    done, told = await heard(serve(["Paris"]))
    assert (done.reply.text, done.reply.usage.prompt_tokens, done.attempts, told.all) == ("Paris", 700, 1, [])


async def test_tokens_that_a_stream_leaves_out_are_counted_from_the_next_reply_on_where_they_can_be(serve):
    def script(body):
        return {"pieces": [delta(content="Paris"), *ending(usage=None)]} if body.get("stream") else "Paris"

    server = serve(script)
    async with open_model(f"{server.url}#m", ModelSettings()) as model:
        used = [(await model.complete(ASK, max_tokens=9, tell=Told())).reply.usage.prompt_tokens for _ in range(3)]
    assert used == [0, 700, 700]
    never = serve(lambda body: script(body) if body.get("stream") else {"text": "Paris", "usage": None})
    async with open_model(f"{never.url}#m", ModelSettings()) as model:
        for _ in range(4):
            await model.complete(ASK, max_tokens=9, tell=Told())
    assert [body.get("stream") for body, _ in never.requests] == [True, None, True, True]


async def test_keys_are_hidden_from_the_listener_even_where_they_come_in_pieces(serve, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", other := "canary-77 of another server")
    said = f"It is {KEY} or {other}, and canary-7 is none."
    done, told = await heard(serve([streamed(said)]))
    hidden = "It is [key] or [key], and canary-7 is none."
    assert (told.text(), done.reply.text) == (hidden, hidden)


async def test_a_stream_that_dawdles_ends_at_the_calls_deadline(serve):
    hold = threading.Event()
    with pytest.raises(CallTimeout) as caught:
        await heard(serve([{"pieces": [delta(content="Par"), hold]}]), seconds=0.3)
    hold.set()
    assert caught.value.kind == "timeout_call"


async def test_who_stops_listening_ends_the_connection(serve):
    told, hold = Told(), threading.Event()
    server = serve([{"pieces": [delta(content="Par"), hold]}, streamed("Paris")])
    async with open_model(f"{server.url}#m", ModelSettings(calls=CallLimits(concurrency=1))) as model:
        call = asyncio.create_task(model.complete(ASK, max_tokens=9, tell=told))
        assert await asyncio.to_thread(told.first.wait, 10)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert model._chat._http._transport._all == set()
        assert (await model.complete(ASK, max_tokens=9, tell=Told())).reply.text == "Paris"
    hold.set()


STREAM = {"status": 400, "error": {"message": "Your organization must be verified to stream this model."}}
OPTIONS = {"status": 422, "body": b'{"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs"}]}'}


@pytest.mark.parametrize(("refused", "sent"), [(("stream", "stream_options"), 10), (("stream_options", "stream"), 15)])
async def test_every_call_that_is_under_way_when_a_stream_is_refused_is_asked_again(serve, refused, sent):
    def script(body):
        for name in refused:
            if name in body:
                return {"delay": 0.05, **(STREAM if name == "stream" else OPTIONS)}
        return "Paris"

    server = serve(script)
    async with open_model(f"{server.url}#m", ModelSettings()) as model:
        done = await asyncio.gather(*(model.complete(ASK, max_tokens=9, tell=Told()) for _ in range(5)))
        assert [one.reply.text for one in done] == ["Paris"] * 5
        assert len(server.requests) == sent
        assert (await model.complete(ASK, max_tokens=9, tell=Told())).attempts == 1


def test_a_server_that_refuses_only_to_count_goes_on_in_pieces_for_every_call():
    ways = StreamNegotiator()
    asked = [ways.next() for _ in range(3)]
    assert asked == [StreamMode(pieces=True, counted=True)] * 3
    assert [ways.refuses(way, 422, OPTIONS["body"]) for way in asked] == [True] * 3
    assert ways.next() == StreamMode(pieces=True)


def test_a_refusal_of_a_call_that_asked_for_no_pieces_is_of_the_call():
    assert not StreamNegotiator().refuses(NOT_STREAMED, 400, json.dumps(STREAM).encode())


def test_several_uncounted_streams_at_once_are_followed_by_a_counted_reply():
    ways = StreamNegotiator()
    asked = [ways.next() for _ in range(3)]
    for way in asked:
        ways.note_missing_counts(way)
    assert ways.next() == NOT_STREAMED
