"""Settings of model calls and of the local server, where a model is reached, and how much its context holds."""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field

from ragbed.documents.errors import CallTooLong
from ragbed.documents.http import Address
from ragbed.strategies.types import Message


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CallLimits(_Settings):
    """Limits of one model call.

    Attributes:
        seconds: deadline of one call with all its attempts, from the moment that it has a place. What the server
            asks it to wait counts, what it waits for a place behind other calls does not.
        attempts: requests sent before a failure is final. One that is refused for the number of requests (HTTP 429)
            is no failure: it is sent again while there is time.
        concurrency: calls at once to one model, at most; fewer while its server refuses them for their number. One for
            a local model, whose server keeps the beginning of one prompt.
    """

    seconds: float = Field(default=120.0, gt=0)
    attempts: int = Field(default=5, ge=1)
    concurrency: int = Field(default=16, ge=1)


class LocalSettings(_Settings):
    """Settings of the server of a local model."""

    context: int = Field(default=8192, ge=256)  # tokens that prompt and reply may have together
    threads: int | None = Field(default=None, ge=1)  # None means one fewer than the cores
    start_seconds: float = Field(default=180.0, gt=0)  # how long loading may take


class Price(_Settings):
    """Price of a model, in US dollars per million tokens.

    Attributes:
        cached: of prompt tokens that come from the server's cache; None means that they cost what the others do.
    """

    prompt: float = Field(ge=0, allow_inf_nan=False)
    cached: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    completion: float = Field(ge=0, allow_inf_nan=False)


class ModelSettings(_Settings):
    """Settings of every model call, the judge's included.

    Attributes:
        temperature: where the strategy names none; None sends none, whatever the strategy names, as many reasoning
            models demand.
        reasoning_effort: sent as it is, where given; the server knows the words.
        context: tokens that prompt and reply may have together in a model that is served elsewhere; what cannot fit
            is not sent. None where it is unknown: the server says so itself.
        prices: by the model's name as the settings have it; goes before the price that its provider lists.
    """

    temperature: float | None = Field(default=0.0, ge=0, allow_inf_nan=False)
    reasoning_effort: str | None = Field(default=None, min_length=1)
    context: int | None = Field(default=None, ge=256)
    prices: dict[str, Price] = Field(default_factory=dict)
    calls: CallLimits = CallLimits()
    local: LocalSettings = LocalSettings()

    def shared(self, parts: int) -> ModelSettings:
        """Return how each of so many parts calls that go on side by side: with its share of the calls at once."""
        limits = self.calls.model_copy(update={"concurrency": max(self.calls.concurrency // parts, 1)})
        return self.model_copy(update={"calls": limits})


class Limits(_Settings):
    """Limits of one question. A recipe that asks for more ends with the outcome `budget` or `timeout`.

    Attributes:
        tokens: of prompts and replies together; a question that has used them makes no further call, and one whose
            calls have used more ends without an answer, even if the last of them brought one.
    """

    calls: int = Field(default=40, ge=1)
    tokens: int = Field(default=1_000_000, ge=1)
    searches: int = Field(default=40, ge=0)
    seconds: float = Field(default=900.0, gt=0)  # from the question's start to its end
    max_tokens: int = Field(default=1024, ge=1)  # of one reply, where the strategy names no number


class Endpoint(Protocol):
    """A server of our own, which may have to start first; one that somebody else runs is an `Address` alone."""

    async def address(self) -> Address:
        """Return where to send the next request; raise ModelError where the model cannot be reached at all."""
        ...

    async def aclose(self) -> None:
        """Stop what was started."""
        ...


_WORD = re.compile(r"[^\W_]\S*")  # what stands between spaces, from its first letter or digit on
# Scripts that put no space between words: Thai, Lao, Burmese, Khmer, kana, Han.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
                       "\U00020000-\U0003ffff]+")
_CHARACTERS = 8  # of an unspaced script, that the longest usual tokens hold


def min_tokens(text: str) -> int:
    """Count tokens so that no usual tokeniser stays below: nothing is counted twice, or by its length. One for each
    word between spaces that has a letter or digit, since tokens do not reach over spaces; one for every eight
    characters of scripts without spaces. English has about 1.3 times as many, Chinese about six times."""
    words = len(_WORD.findall(text))
    unspaced = 0 if text.isascii() else sum(map(len, _UNSPACED.findall(text)))
    return max(words, unspaced // _CHARACTERS)


@dataclass(frozen=True, slots=True)
class Context:
    """A model's context. With `whole_reply` a prompt is refused that leaves less than the reply may take, as servers
    with a stated context do; llama.cpp's replies with what is left."""

    tokens: int  # that prompt and reply may have together
    whole_reply: bool = True

    def room(self, reply: int) -> int:
        """Return the tokens that a prompt may have where its reply may have `reply`."""
        return self.tokens - (reply if self.whole_reply else 1)

    def holds(self, characters: int, reply: int) -> bool:
        """Say whether so many characters surely fit by `min_tokens`: a word and its space are two."""
        return characters // 2 + 1 <= self.room(reply)

    def check(self, messages: Sequence[Message], reply: int) -> None:
        """Refuse what cannot fit before it is sent, by CallTooLong with both sizes."""
        # Names and marks of tool calls are left out: how they are written is the template's.
        functions = [call.get("function") for message in messages for call in message.tool_calls]
        contents = [*(message.content for message in messages),
                    *(str(one.get("arguments", "")) for one in functions if isinstance(one, Mapping))]
        if self.holds(sum(map(len, contents)) + len(contents), reply):
            return
        size = sum(map(min_tokens, contents))
        if size > self.room(reply):
            asked = f" and {reply} for the reply" if self.whole_reply else ""
            raise CallTooLong(f"the prompt has at least {size} tokens{asked}, and the model's context holds "
                              f"{self.tokens}; nothing was sent", "too_long", 0)
