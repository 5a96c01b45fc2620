"""Settings and limits of model calls, questions and local servers, and the size of a model's context."""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field

from ragbed.documents.errors import CallTooLong
from ragbed.documents.http import Address
from ragbed.strategies.types import Message

DEFAULT_MODEL = "smollm2-135m"  # a small local model, used if no other is found


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CallLimits(_Settings):
    """Limits per model call.

    Attributes:
        seconds: seconds for a call with all its attempts. Waits that the server requests count; waits for a free slot
            do not.
        attempts: requests sent before a failure is final. A rate limit (HTTP 429) is not a failure: the request is sent
            again while there is time.
        concurrency: largest number of concurrent calls per model. It is lowered while the server rejects calls. A local
            model gets one call at a time, because its server caches the beginning of one prompt.
    """

    seconds: float = Field(default=120.0, gt=0)
    attempts: int = Field(default=5, ge=1)
    concurrency: int = Field(default=16, ge=1)


class LocalSettings(_Settings):
    """How a local model is served.

    Attributes:
        context: tokens that prompt and reply may have together.
        threads: number of threads. By default one fewer than there are cores.
        start_seconds: seconds that loading the model may take.
    """

    context: int = Field(default=8192, ge=256)
    threads: int | None = Field(default=None, ge=1)
    start_seconds: float = Field(default=180.0, gt=0)


class Price(_Settings):
    """Price of a model, in US dollars per million tokens.

    Attributes:
        prompt: price of prompt tokens.
        cached: price of prompt tokens that the server has cached. By default, that of other prompt tokens.
        completion: price of reply tokens.
    """

    prompt: float = Field(ge=0, allow_inf_nan=False)
    cached: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    completion: float = Field(ge=0, allow_inf_nan=False)


class ModelSettings(_Settings):
    """How models are called, including the judge.

    Attributes:
        temperature: default temperature. A strategy may set another. `null` never sends one, as many reasoning models
            demand.
        reasoning_effort: sent unchanged; the model's documentation has the values.
        context: tokens that prompt and reply may have together. Calls that cannot fit are not sent. If omitted, the
            server has to reject them.
        prices: prices by model name. They override the provider's list.
        calls: limits per call.
        local: how local models are served.
    """

    temperature: float | None = Field(default=0.0, ge=0, allow_inf_nan=False)
    reasoning_effort: str | None = Field(default=None, min_length=1)
    context: int | None = Field(default=None, ge=256)
    prices: dict[str, Price] = Field(default_factory=dict)
    calls: CallLimits = CallLimits()
    local: LocalSettings = LocalSettings()

    def shared(self, parts: int) -> ModelSettings:
        """Return the settings for one of several concurrent parts, with its share of the concurrent calls."""
        limits = self.calls.model_copy(update={"concurrency": max(self.calls.concurrency // parts, 1)})
        return self.model_copy(update={"calls": limits})


class Limits(_Settings):
    """Limits per question. A recipe that needs more ends with the outcome `budget` or `timeout`.

    Attributes:
        calls: largest number of model calls.
        tokens: largest number of tokens in prompts and replies. After these, a question makes no further call. If its
            last call exceeds them, it ends without an answer.
        searches: largest number of searches.
        seconds: seconds from the question's start to its end.
        max_tokens: largest number of tokens in a reply, unless the strategy sets one.
    """

    calls: int = Field(default=40, ge=1)
    tokens: int = Field(default=1_000_000, ge=1)
    searches: int = Field(default=40, ge=0)
    seconds: float = Field(default=900.0, gt=0)
    max_tokens: int = Field(default=1024, ge=1)


class Endpoint(Protocol):
    """A local server, which may have to be started. A remote server is just an `Address`."""

    async def address(self) -> Address:
        """Return the address for the next request. Raises ModelError if the model cannot be reached."""
        ...

    async def aclose(self) -> None:
        """Stop the server."""
        ...


_WORD = re.compile(r"[^\W_]\S*")  # a word with a letter or digit
# scripts without spaces between words: Thai, Lao, Burmese, Khmer, kana, Han.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
                       "\U00020000-\U0003ffff]+")
_CHARACTERS = 8  # characters of an unspaced script in the longest usual tokens


def min_tokens(text: str) -> int:
    """Return a lower bound of the number of tokens, for any usual tokeniser.

    Counts one per word with a letter or digit, and one per eight characters of scripts without spaces. English has
    about 1.3 times as many tokens, Chinese about six times.
    """
    words = len(_WORD.findall(text))
    unspaced = 0 if text.isascii() else sum(map(len, _UNSPACED.findall(text)))
    return max(words, unspaced // _CHARACTERS)


@dataclass(frozen=True, slots=True)
class Context:
    """Size of a model's context. With `whole_reply`, a prompt must leave room for the longest reply, as most servers
    require. llama.cpp's server shortens the reply instead."""

    tokens: int  # tokens of prompt and reply together
    whole_reply: bool = True

    def room(self, reply: int) -> int:
        """Return the maximum tokens of a prompt if the reply has `reply` tokens."""
        return self.tokens - (reply if self.whole_reply else 1)

    def holds(self, characters: int, reply: int) -> bool:
        """Tell whether this many characters certainly fit: a word with its space has at least two."""
        return characters // 2 + 1 <= self.room(reply)

    def check(self, messages: Sequence[Message], reply: int) -> None:
        """Raise CallTooLong, with the sizes of prompt and context, if a prompt cannot fit."""
        # leaves out names of tool calls, whose form depends on the model's template
        functions = [call.get("function") for message in messages for call in message.tool_calls]
        contents = [*(message.content for message in messages),
                    *(str(one.get("arguments", "")) for one in functions if isinstance(one, Mapping))]
        if self.holds(sum(map(len, contents)) + len(contents), reply):
            return
        size = sum(map(min_tokens, contents))
        if size > self.room(reply):
            asked = f" and {reply} for the reply" if self.whole_reply else ""
            raise CallTooLong(f"the prompt has at least {size} tokens{asked}, and the model's context has "
                              f"{self.tokens}; nothing was sent", "too_long", 0)
