"""Continue a client's trace by W3C Trace Context: read `traceparent`, and send it on to the model's server."""
from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.datastructures import Headers

_PARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_STATE = re.compile(r"[\x20-\x7e]{1,512}")
_MAX_PARENT = 200  # characters


@dataclass(frozen=True, slots=True)
class TraceContext:
    """The trace that a request belongs to.

    Attributes:
        trace: trace id, 32 hexadecimal digits.
        span: id of the answer's span, 16 hexadecimal digits. It is the parent of the model server's spans.
        parent: id of the client's span; empty if the trace starts here.
        sampled: whether the trace is recorded.
        state: the client's `tracestate`, which is sent on unchanged.
    """

    trace: str
    span: str
    parent: str = ""
    sampled: bool = True
    state: str = ""

    @classmethod
    def start(cls) -> TraceContext:
        """Return the context of a new trace."""
        return cls(secrets.token_hex(16), secrets.token_hex(8))

    @classmethod
    def read(cls, headers: Headers) -> TraceContext | None:
        """Return the context in a request's headers; None if there is none, or it is malformed."""
        given = headers.getlist("traceparent")
        found = _PARENT.fullmatch(given[0].strip()) if len(given) == 1 and len(given[0]) <= _MAX_PARENT else None
        if found is None or found[1] == "ff" or (found[1] == "00" and found[5]) or not (int(found[2], 16)
                                                                                        and int(found[3], 16)):
            return None
        state = ",".join(headers.getlist("tracestate"))
        return cls(found[2], secrets.token_hex(8), found[3], bool(int(found[4], 16) & 1),
                   state if _STATE.fullmatch(state) else "")

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the headers for the model's server."""
        state = {"tracestate": self.state} if self.state else {}
        return {"traceparent": f"00-{self.trace}-{self.span}-{int(self.sampled):02x}", **state}
