"""Embedders behind an OpenAI-compatible `/v1/embeddings`: batched requests, retries, and checks of the replies."""
from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from itertools import count
from typing import TYPE_CHECKING, Annotated, Any, cast

import numpy as np
from pydantic import BaseModel, Field, StrictFloat, StrictInt, ValidationError

from ragbed.documents.chunkers.spans import Span
from ragbed.documents.errors import CallError, ModelError, RagbedError, TextRefused
from ragbed.documents.http import (
    Response,
    backoff_delay,
    check_key,
    error_message,
    is_compressed,
    is_loopback,
    is_transient,
    parse_address,
    parse_error,
    proxy_error,
    retry_after,
    sanitize_line,
    unwrap_error,
)
from ragbed.documents.types import digest
from ragbed.retrieval.embedders.embedder_settings import Server
from ragbed.retrieval.embedders.prefixes import PrefixedEmbedder, Prefixes
from ragbed.retrieval.embedders.windows import cut_by_estimate, pool_windows, to_unit_length, truncate_by_estimate
from ragbed.retrieval.types import Matrix

if TYPE_CHECKING:
    import httpx2
    from openai import OpenAI

_MAX_TEXTS = 256  # maximum texts to embed at once, unless a batch has more; a killed process loses at most these
_MAX_BYTES = 256 << 20  # maximum bytes of one reply: 2,048 vectors of 4,096 numbers take 180 MB
_OPENAI = "https://api.openai.com/v1"
_MIN_LENGTH = 1e-15  # minimum length of a vector, so that its squares fit into float32; the maximum is 1e15
_TOO_LONG = re.compile(r"(?<!took )(?<!taking )too (?:large|long|big)|maximum (?:\w+ ){0,3}(?:length|size)|batch size|"
                       r"context (?:size|window|length)|exceed.*token|token.*exceed|than \d+ tokens", re.IGNORECASE)
_LIMIT = re.compile(r"batch|tokens|texts|inputs|items|instances|length|\bsize|limit|max|at most|exceed|"
                    "less than|larger|too many|最大|最多|超", re.IGNORECASE)  # words about the size of a request


class _Embedding(BaseModel):
    embedding: Annotated[list[StrictFloat], Field(min_length=1)]
    index: StrictInt | None = None


class _Reply(BaseModel):
    data: list[_Embedding]


class ServerEmbedder(PrefixedEmbedder):
    """A model behind a server. Thread-safe. The key is read when the first text is sent."""

    def __init__(self, settings: Server) -> None:
        at, self._served = parse_address(settings.model, calls=False)
        self._url = at.url
        self._name = f"embedder {self._served} at {self._url}"
        self.settings: Server = settings
        self.window = settings.window
        self.prefixes = Prefixes.choose(self._served, Prefixes(), settings.query_prefix, settings.passage_prefix)
        self._width = settings.dimensions
        self._largest = settings.batch  # texts per request; reduced when the server refuses a batch
        self._cuts = 0  # single texts that were shortened because the server refused them

    @property
    def at_once(self) -> int:
        """Number of texts to pass per call, so that all concurrent requests are used."""
        return max(min(self.settings.batch * self.settings.concurrency, _MAX_TEXTS), self.settings.batch)

    def identity_with(self, query_prefix: str | None) -> str:
        """Return the name and a hash of settings and address, because servers may use one name for different models."""
        where = "" if self._url == _OPENAI else self._url
        parts = [where, self._served, str(self.settings.dimensions), self.settings.long,
                 query_prefix or "", self.prefixes.passage]
        return f"served:{self._served}-{digest(*parts, str(self.settings.window))[:16]}"

    @cached_property
    def dimension(self) -> int:
        """Length of the vectors. If none has arrived yet, requests one from the server."""
        return self._width or self._request(["dimension"]).shape[1]

    def windows(self, texts: Sequence[str], header: str = "") -> list[list[Span]]:
        if self.settings.long == "truncated":
            return [[(0, len(text))] for text in texts]
        return cut_by_estimate(texts, self.window, self.prefixes.passage + header)

    def embed(self, texts: Sequence[str], prefix: str) -> Matrix:
        if self.settings.long == "truncated":
            return to_unit_length(self._vectors([truncate_by_estimate(prefix + text, self.window) for text in texts],
                                                prefix))
        spans = cut_by_estimate(texts, self.window, prefix)
        pieces = [prefix + text[start:end] for text, cuts in zip(texts, spans, strict=True) for start, end in cuts]
        return pool_windows(self._vectors(pieces, prefix), [len(cuts) for cuts in spans], normalise=True)

    def _vectors(self, pieces: Sequence[str], prefix: str) -> Matrix:
        size = self._largest
        batches = [pieces[first:first + size] for first in range(0, len(pieces), size)]
        with ThreadPoolExecutor(self.settings.concurrency, "embed") as workers:
            return np.concatenate(list(workers.map(partial(self._split, prefix=prefix), batches)))

    def _split(self, texts: Sequence[str], prefix: str) -> Matrix:
        """Request vectors. If the server refuses a batch as too large, send its halves, and keep later batches small.
        Raises TextRefused if the server refuses one text; with `long: truncated`, it is cut first."""
        size, sent = self._largest, self._cuts
        if len(texts) <= size:
            try:
                return self._request(texts)
            except TextRefused as error:
                if len(texts) == 1:
                    shorter = texts[0][:len(texts[0]) * 3 // 4]
                    if self.settings.long == "windows" or not error.too_long or len(shorter) <= len(prefix):
                        raise TextRefused(str(error), texts[0][len(prefix):]) from None
                    self._cuts += 1
                    return self._split([shorter], prefix)
                size = (len(texts) + 1) // 2
        found = np.concatenate([self._split(texts[at:at + size], prefix) for at in range(0, len(texts), size)])
        if self._cuts == sent:  # the batch was too large, not one of its texts
            self._largest = min(self._largest, size)
        return found

    def _request(self, texts: Sequence[str]) -> Matrix:
        """Return vectors as the server sends them, float32 of shape (texts, dimension), in the order of the texts.
        Raises ModelError if the server refuses the key, the model or a text, or does not return one valid vector per
        text. Raises CallError if there was no reply before the deadline or in any attempt."""
        body: dict[str, Any] = {"model": self._served, "input": list(texts), "encoding_format": "float"}
        if self.settings.dimensions is not None:
            body["dimensions"] = self.settings.dimensions
        try:
            rows = _Reply.model_validate_json(self._answer(body)).data
        except ValidationError as error:
            first = error.errors()[0]
            raise self._failure(f"the reply has no embeddings ({first['msg']})") from None
        places = [place if row.index is None else row.index for place, row in enumerate(rows)]
        if sorted(places) != list(range(len(texts))):
            raise self._failure(f"{len(texts)} texts were sent, but {len(rows)} embeddings came back, or some "
                                "have the same index")
        width = self._width or len(rows[0].embedding)
        if other := next((len(row.embedding) for row in rows if len(row.embedding) != width), None):
            raise self._failure(f"an embedding has {other} numbers, not {width}; set dimensions to what the server "
                                "returns, or leave it out")
        numbers = np.array([row.embedding for row in rows])[np.argsort(places)]
        with np.errstate(over="ignore", invalid="ignore"):
            lengths = np.linalg.norm(numbers, axis=1)
        if not ((lengths > _MIN_LENGTH) & (lengths < 1 / _MIN_LENGTH)).all():
            raise self._failure("an embedding is all zeros, or has numbers that are not finite or too large")
        self._width = width
        vectors: Matrix = numbers.astype(np.float32)
        return vectors

    def _answer(self, body: Mapping[str, Any]) -> bytes:
        import httpx2
        import openai

        until = time.monotonic() + self.settings.seconds
        for attempt in count(1):
            try:
                got = self._client.post("/embeddings", cast_to=httpx2.Response, body=body,
                                        options={"timeout": max(until - time.monotonic(), 0.1)})
                answer = Response(200, got.headers, got.content)
                if b'"embedding"' in got.content or (answer := unwrap_error(answer)).status == 200:
                    return got.content
                wait, failure = None, self._error_of_status(answer.status, answer.body, attempt)
            except openai.APIStatusError as error:
                wait = retry_after(error.response.headers)
                failure = self._error_of_status(error.response.status_code, error.response.content, attempt)
            except openai.APIConnectionError as error:
                wait, cause = None, error.__cause__ or error
                failure = CallError(f"{self._name}: no complete reply: {type(cause).__name__}: {cause}, after "
                                    f"{attempt} attempts", "connection", attempt)
            wait = backoff_delay(attempt) if wait is None else wait
            if isinstance(failure, ModelError) or attempt >= self.settings.attempts or time.monotonic() + wait >= until:
                raise failure
            time.sleep(wait)
        raise AssertionError

    def _error_of_status(self, status: int, content: bytes, attempts: int) -> RagbedError:
        key, variable = self._at.key, self._at.key_variable
        reason = error_message(parse_error(content), key) or sanitize_line(
            content[:2_000].decode("utf-8", "replace"), key)
        transient = is_transient(status, content)
        too_long = status == 413 or (bool(_TOO_LONG.search(reason)) and (status >= 500 or not transient))
        if too_long or (status in {400, 422} and _LIMIT.search(reason)):
            advice = ("set window to the tokens that the server accepts per text" if too_long
                      else "check the model's name, the address and the settings")
            return TextRefused(f"{self._name}: HTTP {status}: {reason}; {advice}", too_long=too_long)
        if transient:
            return CallError(f"{self._name}: HTTP {status}: {reason}, after {attempts} attempts", f"http_{status}",
                             attempts)
        if status in {401, 403}:
            return self._failure(f"{self._url} refuses the key (HTTP {status}); set {variable} to a valid "
                                 f"key: {reason}")
        if 300 <= status < 400:
            return self._failure(f"the server redirects (HTTP {status}), which is not followed; give the final URL")
        return self._failure(f"HTTP {status}: {reason}; check the model's name, the address and the settings")

    def _failure(self, what: str) -> ModelError:
        return ModelError(f"{self._name}: {what}")

    @cached_property
    def _client(self) -> OpenAI:
        """Client that does not follow redirects, which would send texts and key elsewhere."""
        import httpx2
        import openai

        self._at, _ = parse_address(self.settings.model)
        check_key(self._at)
        try:
            http = httpx2.Client(follow_redirects=False, trust_env=not is_loopback(self._url),
                                 headers={"Accept-Encoding": "identity"}, event_hooks={"response": [_read_whole]})
        except (OSError, ValueError, ImportError) as error:
            raise proxy_error(error) from None
        return openai.OpenAI(api_key=self._at.key, base_url=self._url, max_retries=0, http_client=http)


def _read_whole(response: httpx2.Response) -> None:
    """Read the body with limits on its size and total time, which the client does not have."""
    import httpx2

    if is_compressed(response.headers):
        raise httpx2.DecodingError("the server compressed its reply, although ragbed did not ask for that")
    stream = cast("httpx2.SyncByteStream", response.stream)
    until, body = time.monotonic() + response.request.extensions["timeout"]["read"], bytearray()
    for block in stream:
        body += block
        if len(body) > _MAX_BYTES:
            raise httpx2.RemoteProtocolError(f"the reply is larger than {_MAX_BYTES >> 20} MB")
        if time.monotonic() > until:
            raise httpx2.ReadTimeout("the reply did not end in time")
    stream.close()
    response.stream = httpx2.ByteStream(bytes(body))
