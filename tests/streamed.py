"""Replies as servers stream them: server-sent events of chat completion chunks."""
import json
import threading


def event(**chunk):
    """One event."""
    return f"data: {json.dumps(chunk)}\n\n".encode()


def delta(finish=None, **fields):
    """A piece of a message."""
    choice = {"index": 0, "delta": fields, "finish_reason": finish}
    return event(id="c", object="chat.completion.chunk", choices=[choice])


USAGE = {"prompt_tokens": 700, "completion_tokens": 12, "total_tokens": 712}
DONE = b"data: [DONE]\n\n"


def ending(finish="stop", usage=USAGE):
    """How a stream ends: with the reason, the tokens where they are asked for, and the mark of the end."""
    return [delta(finish), *([event(choices=[], usage=usage)] if usage else []), DONE]


def streamed(text, size=3):
    """A line for the scripted server: the text in pieces of so many characters."""
    pieces = [delta(content=text[at:at + size]) for at in range(0, len(text), size)]
    return {"pieces": [delta(role="assistant", content=""), *pieces, *ending()]}


def as_asked(say):
    """A script that streams where that is asked for.

    Args:
        say: the reply's text, from the request's body.
    """
    return lambda body: streamed(say(body)) if body.get("stream") else say(body)


class Told:
    """Keeps what a listener of one call is told."""

    def __init__(self):
        self.all = []
        self.first = threading.Event()

    def __call__(self, kind, text):
        self.all.append((kind, text))
        self.first.set()

    def text(self, kind="token"):
        return "".join(text for one, text in self.all if one == kind)
