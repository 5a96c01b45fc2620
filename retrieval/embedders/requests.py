"""Requests to an OpenAI-compatible `/v1/embeddings`: sent, retried, and their replies checked."""
from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from documents.errors import CallError, ModelError, RagbedError
from retrieval.serving.servers import (
    Address,
    back_off,
    clean,
    error_of,
    is_compressed,
    is_loopback,
    is_transient,
    retry_after,
    server_message,
    unusable_environment,
)

if TYPE_CHECKING:
    import httpx2

    from retrieval.embedder import Matrix

MOST_BYTES = 256 << 20
"""Of one reply: 2,048 vectors of 4,096 numbers, written out, have a hundred megabytes."""

_SHORTEST = 1e-15
"""Length of a vector whose squares, and those of one as much longer than 1, single precision can still hold."""

_TOO_LONG = re.compile(r"too (?:large|long)|maximum \w+ length|context (?:size|window|length)", re.IGNORECASE)


class Limits(Protocol):
    """What a request may take; see `Server`."""

    @property
    def dimensions(self) -> int | None: ...

    @property
    def seconds(self) -> float: ...

    @property
    def attempts(self) -> int: ...


class Embeddings:
    """One model of one server. Thread-safe. Redirects are not followed: they would take texts and key elsewhere."""

    def __init__(self, at: Address, served: str, limits: Limits) -> None:
        self._at, self._served, self._limits = at, served, limits
        self._dimension: int | None = limits.dimensions

    def dimension(self) -> int:
        """The length of its vectors, asked for with a word if none came yet."""
        return self._dimension or self.embed(["dimension"]).shape[1]

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Vectors as the server sends them, float32 of shape (texts, dimension), each beside its text.

        Raises:
            ModelError: the key, the model or a text is refused; or not one vector came for each text, or one that is
                none.
            CallError: no reply came within the deadline or the attempts.
        """
        body: dict[str, Any] = {"model": self._served, "input": list(texts), "encoding_format": "float"}
        if self._limits.dimensions is not None:
            body["dimensions"] = self._limits.dimensions
        return self._checked(self._answer(json.dumps(body).encode()), len(texts))

    def _answer(self, body: bytes) -> Any:
        """The parsed reply to a request, sent until it is answered."""
        until, attempt = time.monotonic() + self._limits.seconds, 0
        while True:
            attempt += 1
            status, headers, content = self._send(body, until - time.monotonic())
            if status == 200:
                try:
                    return json.loads(content)
                except (ValueError, RecursionError):
                    raise self._failure("the reply is not JSON") from None
            asked = retry_after(headers)
            wait = back_off(attempt) if asked is None else asked
            failure = self._refusal(status, content, attempt)
            if isinstance(failure, ModelError) or attempt >= self._limits.attempts or time.monotonic() + wait >= until:
                raise failure
            time.sleep(wait)

    def _send(self, body: bytes, seconds: float) -> tuple[int, Any, bytes]:
        """Status, headers and content of one reply; status 0 and a reason where there is none."""
        import httpx2

        try:
            with self._client.stream("POST", f"{self._at.url}/embeddings", content=body,
                                     timeout=max(seconds, 0.1)) as reply:
                return reply.status_code, reply.headers, self._bounded(reply, time.monotonic() + seconds)
        except httpx2.HTTPError as error:
            return 0, {}, f"no whole reply: {type(error).__name__}: {error}".encode()

    def _bounded(self, reply: httpx2.Response, until: float) -> bytes:
        import httpx2

        content = bytearray()
        if is_compressed(reply.headers):
            raise self._failure("the reply is compressed, which was not asked for")
        for block in reply.iter_raw():
            content += block
            if len(content) > MOST_BYTES:
                raise self._failure(f"the reply is larger than {MOST_BYTES >> 20} MB")
            if time.monotonic() > until:
                raise httpx2.ReadTimeout(f"not within {self._limits.seconds:g} s")
        return bytes(content)

    def _checked(self, reply: Any, count: int) -> Matrix:
        """The vectors in the order of their texts, whatever order the reply has."""
        import numpy as np

        rows = reply.get("data") if isinstance(reply, dict) else None
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise self._failure("the reply holds no embeddings")
        places = [row.get("index", place) for place, row in enumerate(rows)]
        # True is an int, and 1.0 equals 1.
        if any(type(place) is not int for place in places) or sorted(places) != list(range(count)):
            raise self._failure(f"{count} texts were sent, and {len(rows)} embeddings came, or some twice")
        by_place = dict(zip(places, (row.get("embedding") for row in rows), strict=True))
        if not all(isinstance(numbers, list) and {*map(type, numbers)} <= {int, float}
                   for numbers in by_place.values()):
            raise self._failure("an embedding is no list of numbers")
        try:
            with np.errstate(over="ignore"):
                vectors: Matrix = np.array([by_place[at] for at in range(count)], np.float64).astype(np.float32)
        except (ValueError, OverflowError):
            raise self._failure("embeddings differ in length, or a number is too large") from None
        if not vectors.size:
            raise self._failure("an embedding is no list of numbers")
        return self._sound(vectors)

    def _sound(self, vectors: Matrix) -> Matrix:
        import numpy as np

        wanted = self._dimension or vectors.shape[1]
        if vectors.shape[1] != wanted:
            raise self._failure(f"an embedding has {vectors.shape[1]} numbers, not {wanted}: set dimensions to what "
                                "the server gives, or leave it out")
        lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
        if not ((lengths > _SHORTEST) & (lengths < 1 / _SHORTEST)).all():
            raise self._failure("an embedding is all zeros, or not all of it is numbers of a usable size")
        self._dimension = wanted
        return vectors

    def _refusal(self, status: int, content: bytes, attempts: int) -> RagbedError:
        said = server_message(error_of(content), self._at.key) or clean(content[:2_000].decode("utf-8", "replace"),
                                                                        self._at.key)
        if status and _TOO_LONG.search(said):
            return self._failure(f"HTTP {status}: {said}; set window to the tokens that it takes of one text")
        if is_transient(status, content) or status == 0:
            what = f"HTTP {status}: {said}" if status else said
            return CallError(f"{self._name}: {what}, after {attempts} attempts", f"http_{status}" if status else
                             "connection", attempts)
        if status in {401, 403}:
            return self._failure(f"{self._at.url} refuses the key (HTTP {status}); set {self._at.key_variable} to one "
                                 f"that it accepts: {said}")
        if 300 <= status < 400:
            return self._failure(f"the server redirects (HTTP {status}), which is not followed; give the final URL")
        return self._failure(f"HTTP {status}: {said}; check the model's name, the address and the settings")

    @property
    def _name(self) -> str:
        return f"embedder {self._served} at {self._at.url}"

    def _failure(self, what: str) -> ModelError:
        return ModelError(f"{self._name}: {what}")

    @cached_property
    def _client(self) -> httpx2.Client:
        import httpx2

        headers = {"Authorization": f"Bearer {self._at.key}", "Content-Type": "application/json",
                   "Accept-Encoding": "identity"}
        try:
            return httpx2.Client(headers=headers, follow_redirects=False, trust_env=not is_loopback(self._at.url))
        except (OSError, ValueError, ImportError) as error:
            raise unusable_environment(error) from None
