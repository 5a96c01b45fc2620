"""Replies that come in pieces: told as they come, and put together into the body that they would have been in one."""
from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agents.replies import BadReply, text_of
from retrieval.servers import hide, is_secret

Tell = Callable[[str, str], None]
"""Told of what happens to a call: `token` and `reasoning` with a piece of text, `retry` with why all before is void."""

MOST_BYTES = 16 << 20  # of one reply; the longest replies of models are some hundred kilobytes
MOST_STREAMED = 4 * MOST_BYTES  # of one that comes in pieces, each of which repeats the names of its fields
_KINDS = {"content": "token", "refusal": "token", "reasoning_content": "reasoning", "reasoning": "reasoning"}
_SAID_OF_STREAMS = 2_000  # bytes of a refusal


class Assembly:
    """Takes the chunks of a streamed chat completion.

    Args:
        tell: told each piece of text.
    """

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._texts: dict[str, list[str]] = {}
        self._halves: dict[str, str] = {}
        self._calls: list[dict[str, Any]] = []
        self._rest: dict[str, Any] = {}
        self._finish: Any = None
        self._size = 0

    @property
    def whole(self) -> bool:
        """Whether the server said why it ended; a stream that only stops was broken off."""
        return self._finish is not None

    def add(self, chunk: Any) -> None:
        """Take one chunk.

        Raises:
            BadReply: it is none, or the reply becomes larger than any may be.
        """
        if not isinstance(chunk, dict):
            raise BadReply("the stream holds something other than chunks of a reply")
        self._rest |= {name: chunk[name] for name in ("usage", "timings") if isinstance(chunk.get(name), dict)}
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and not choice.get("index"):
                self._take(choice.get("delta"))
                self._finish = choice.get("finish_reason") or self._finish

    def body(self) -> bytes:
        """The body of the same completion in one. What was held back of its texts is told."""
        for name, half in self._halves.items():
            self._tell(_KINDS[name], text_of(half))
        message: dict[str, Any] = {"role": "assistant", **{name: "".join(self._texts[name]) for name in self._texts}}
        if self._calls:
            message["tool_calls"] = [{**call, "function": {name: "".join(said) for name, said in
                                                           call["function"].items()}} for call in self._calls]
        choice = {"index": 0, "message": message, "finish_reason": self._finish}
        return json.dumps({"choices": [choice], **self._rest}).encode()

    def _take(self, delta: Any) -> None:
        if not isinstance(delta, dict):
            return
        for name in _KINDS:
            said = delta.get(name)
            piece = said if isinstance(said, str) else text_of(said)
            if piece:
                self._texts.setdefault(name, []).append(piece)
                self._grow(piece)
                # Some servers send their reasoning under both names.
                if name != "reasoning" or not delta.get("reasoning_content"):
                    self._tell_of(name, piece)
        calls = delta.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                self._take_call(call)

    def _tell_of(self, name: str, piece: str) -> None:
        """Tell a piece, but for the first half of a surrogate pair that ends it: the other half may come with the
        next."""
        text = self._halves.pop(name, "") + piece
        if "\ud800" <= text[-1] <= "\udbff":
            self._halves[name], text = text[-1], text[:-1]
        if text:
            self._tell(_KINDS[name], text_of(text))

    def _take_call(self, call: Mapping[str, Any]) -> None:
        """Add to the tool call that a piece belongs to: name and arguments come bit by bit."""
        known = self._call(call)
        known |= {name: value for name, value in call.items() if name not in ("index", "function") and value}
        function = call.get("function")
        for name, said in function.items() if isinstance(function, dict) else ():
            if isinstance(said, str):
                known["function"].setdefault(name, []).append(said)
                self._grow(said)

    def _call(self, piece: Mapping[str, Any]) -> dict[str, Any]:
        """The tool call of a piece: that of its index; a new one where its id is new, as some servers send no index."""
        index, id = piece.get("index"), piece.get("id")
        at = index if type(index) is int and 0 <= index < len(self._calls) else len(self._calls) - 1
        fresh = type(index) is int and index >= len(self._calls)
        if fresh or at < 0 or (id and self._calls[at].get("id") not in (None, id)):
            self._grow("{}")
            self._calls.append({"function": {}})
            at = -1
        return self._calls[at]

    def _grow(self, piece: str) -> None:
        self._size += len(piece)
        if self._size > MOST_BYTES:
            raise BadReply(f"the reply is larger than {MOST_BYTES >> 20} MB")


class Hiding:
    """Tells pieces without the server's key, also where that comes in several: what may begin it is held back."""

    def __init__(self, tell: Tell, key: str) -> None:
        self._tell = tell
        self._key = key if is_secret(key) else ""
        self._held: dict[str, str] = {}

    def __call__(self, kind: str, piece: str) -> None:
        text = hide(self._held.pop(kind, "") + piece, self._key)
        longest = min(len(self._key) - 1, len(text))
        held = next((size for size in range(longest, 0, -1) if self._key.startswith(text[-size:])), 0)
        self._held[kind] = text[len(text) - held:]
        if len(text) > held:
            self._tell(kind, text[:len(text) - held])

    def flush(self) -> None:
        """The reply has ended."""
        for kind, text in self._held.items():
            if text:
                self._tell(kind, text)
        self._held.clear()


@dataclass(frozen=True, slots=True)
class Way:
    """How one request asks for its reply.

    Attributes:
        pieces: whether in pieces rather than in one.
        counted: whether with the tokens that the pieces took, which a reply in one says unasked.
    """

    pieces: bool = False
    counted: bool = False

    def body(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The request's body with these wishes."""
        return {**body, **({"stream": True} if self.pieces else {}),
                **({"stream_options": {"include_usage": True}} if self.counted else {})}


IN_ONE = Way()


class Ways:
    """How a server is asked for replies in pieces; learns from what it refuses, and from what it leaves out.

    Many requests are under way at once, so each is judged by the way in which it was itself asked.
    """

    def __init__(self) -> None:
        self._refused = self._uncounted = self._never_counted = False
        self._counts = True

    def next(self) -> Way:
        """How the next request for pieces is best asked."""
        pieces = not self._refused and not self._uncounted
        return Way(pieces, pieces and self._counts)

    def refuses(self, way: Way, status: int, body: bytes) -> bool:
        """Whether a server's refusal is of the pieces rather than the call, which may be sent again in another way."""
        said = body[:_SAID_OF_STREAMS]
        if status not in {400, 422, 501} or not way.pieces or b"stream" not in said:
            return False
        if way.counted and b"stream_options" in said:
            self._counts = False
        else:
            self._refused = True
        return True

    def came(self, way: Way, counted: bool) -> None:
        """A reply came, with its tokens or without. A question's budget counts them, so after one in pieces that has
        none the next is asked for in one; where that has none either, nothing is gained by it."""
        if not counted and way.pieces:
            self._uncounted = not self._never_counted
        elif not counted:
            self._uncounted, self._never_counted = False, True
