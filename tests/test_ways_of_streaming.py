"""Servers that refuse streams, or count no tokens in them, are judged call by call, however many are under way."""
import asyncio

import pytest

from agents import ModelSettings, open_model
from agents.refusals import IN_ONE, Way, Ways
from strategies import Generate, Message

ASK = Generate((Message("user", ("Who?",)),), "answer")
STREAM, OPTIONS = "stream is not supported", "unknown field stream_options"


@pytest.mark.parametrize(("refused", "sent"), [(("stream", "stream_options"), 10), (("stream_options", "stream"), 15)])
async def test_every_call_that_is_under_way_when_a_stream_is_refused_is_asked_again(serve, refused, sent):
    def script(body):
        for name in refused:
            if name in body:
                return {"status": 400, "error": {"message": STREAM if name == "stream" else OPTIONS}, "delay": 0.05}
        return "Paris"

    server = serve(script)
    async with open_model(f"{server.url}#m", ModelSettings()) as model:
        done = await asyncio.gather(*(model.complete(ASK, max_tokens=9, tell=lambda *told: None) for _ in range(5)))
        assert [one.reply.text for one in done] == ["Paris"] * 5
        assert len(server.requests) == sent
        assert (await model.complete(ASK, max_tokens=9, tell=lambda *told: None)).attempts == 1


def test_a_server_that_refuses_only_to_count_goes_on_in_pieces_for_every_call():
    ways = Ways()
    asked = [ways.next() for _ in range(3)]
    assert asked == [Way(pieces=True, counted=True)] * 3
    assert [ways.refuses(way, 400, OPTIONS.encode()) for way in asked] == [True] * 3
    assert ways.next() == Way(pieces=True)


def test_a_refusal_of_a_call_that_asked_for_no_pieces_is_of_the_call():
    assert not Ways().refuses(IN_ONE, 400, STREAM.encode())


def test_several_uncounted_streams_at_once_are_followed_by_a_counted_reply():
    ways = Ways()
    asked = [ways.next() for _ in range(3)]
    for way in asked:
        ways.came_uncounted(way)
    assert ways.next() == IN_ONE


def test_a_server_that_counts_in_no_way_is_asked_in_pieces():
    ways = Ways()
    ways.came_uncounted(ways.next())
    ways.came_uncounted(ways.next())
    assert ways.next().pieces
    ways.came_uncounted(ways.next())
    assert ways.next().pieces
