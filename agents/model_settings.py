"""Settings of model calls, questions and local servers, with their limits, and the size of a model's context."""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from ragbed.documents.errors import CallTooLong, ModelError
from ragbed.documents.http import Address, check_url
from ragbed.documents.keys import HeaderValue, check_header
from ragbed.strategies.types import Message, Usage

PIPELINE_PREFIX = "pipeline:"  # prefix of a pipeline's name, which replaces the model's name
NO_MODEL = "none"  # model name for a strategy that calls no model
PROMPT_CUT = "prompt_cut"  # note on an answer for which the server cut a prompt
DEFAULT_MODEL = "smollm2-135m"  # a small local model, used if no other is found


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CallLimits(_Settings):
    """Limits per model call.

    Attributes:
        seconds: time limit of a call with all its attempts and waits, except waiting for a free slot.
        attempts: maximum number of times a request is sent. A rate limit (HTTP 429) does not count as an attempt.
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


_OWN_FIELDS = {  # fields of a request that ragbed fills itself, and what to do instead of giving them in `extra_body`
    **dict.fromkeys(("temperature", "reasoning_effort"), "give the model's own setting of this name"),
    **dict.fromkeys(("max_tokens", "max_completion_tokens"), "give the model's `max_tokens` and `max_tokens_field`"),
    **dict.fromkeys(("model", "messages", "stream", "stream_options", "tools", "tool_choice", "response_format", "stop",
                     "seed", "n", "extra_body"), "ragbed fills it; remove it")}
_SECRET = re.compile(r"api.?key|secret|password|authorization|(?:access|auth|bearer).?token", re.IGNORECASE)


def _check_body(body: dict[str, Any]) -> dict[str, Any]:
    for name in body:
        if name in _OWN_FIELDS:
            raise ValueError(f"{name}: {_OWN_FIELDS[name]}")
        if _SECRET.search(name):
            raise ValueError(f"{name}: the body of requests is recorded, so it must not hold secrets; send it in "
                             "`headers`, as {env: NAME}")
    return body


def _check_headers(headers: dict[str, HeaderValue]) -> dict[str, HeaderValue]:
    for name, value in headers.items():
        check_header(name, value, bool(_SECRET.search(name)))
    return headers


def _check_base(url: str) -> str:
    try:
        return check_url(url, "base_url")
    except ModelError as error:
        raise ValueError(str(error)) from None


def _unset() -> Any:
    return Field(default=None, exclude_if=lambda value: value is None)


class ModelConfig(_Settings):
    """A model with its own settings. They replace those of `calls` for this model.

    Attributes:
        name: name of the model in this run, its tables and other settings. By default `model`. A model with another
            `name` has its own replies, so one served model can take part several times.
        model: the model, such as `openai:gpt-5-mini`; see `ragbed list models`.
        key_env: environment variable with the key, which is sent to this model's address only; `none` sends no key. By
            default the provider's variable, or RAGBED_API_KEY for an address.
        base_url: address of the server instead of the provider's.
        api_version: version of Azure's API, for a resource that does not serve `/openai/v1`.
        headers: headers of each request. A secret is written `{env: NAME}` or `${NAME}`, so that it is never stored.
        extra_body: further fields of the request's body, such as `top_p`.
        max_tokens_field: name of the field that limits the reply. Found out by itself if the server names the other.
        max_tokens: largest number of tokens in a reply, unless the strategy sets one.
        temperature: as in `calls`; `none` never sends one.
        reasoning_effort: as in `calls`.
        requests_per_minute: largest number of requests per minute, evenly spaced.
        concurrency: largest number of concurrent calls.
        context: tokens that prompt and reply may have together.
        prices: prices of this model.
        seconds: time limit of a call, as in `calls.calls`.
        attempts: maximum number of times a request is sent, as in `calls.calls`.
    """

    name: str | None = Field(default=None, min_length=1, exclude_if=lambda value: value is None)
    model: str = Field(min_length=1)
    key_env: Annotated[str | None, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] = _unset()
    base_url: Annotated[str, AfterValidator(_check_base)] | None = _unset()
    api_version: Annotated[str | None, Field(pattern=r"^[\w.-]+$")] = _unset()
    headers: Annotated[dict[str, HeaderValue], AfterValidator(_check_headers)] = Field(
        default_factory=dict, exclude_if=lambda value: not value)
    extra_body: Annotated[dict[str, Any], AfterValidator(_check_body)] = Field(
        default_factory=dict, exclude_if=lambda value: not value)
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = _unset()
    max_tokens: Annotated[int, Field(ge=1)] | None = _unset()
    temperature: Annotated[float, Field(ge=0, allow_inf_nan=False)] | Literal["none"] | None = _unset()
    reasoning_effort: Annotated[str, Field(min_length=1)] | None = _unset()
    requests_per_minute: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = _unset()
    concurrency: Annotated[int, Field(ge=1)] | None = _unset()
    context: Annotated[int, Field(ge=256)] | None = _unset()
    prices: Price | None = _unset()
    seconds: Annotated[float, Field(gt=0)] | None = _unset()
    attempts: Annotated[int, Field(ge=1)] | None = _unset()

    @model_validator(mode="before")
    @classmethod
    def _read_null(cls, fields: Any) -> Any:
        """Read `temperature: null` as `none`, as in `calls`."""
        none = isinstance(fields, dict) and "temperature" in fields and fields["temperature"] is None
        return {**fields, "temperature": "none"} if none else fields


PACE = ("key_env", "headers", "requests_per_minute", "concurrency", "seconds", "attempts")
"""Settings of a model that do not change its replies."""


class ModelSettings(_Settings):
    """How models are called, including the judge.

    Attributes:
        temperature: default temperature, which a strategy may override. `null` never sends one: many models require
            this.
        reasoning_effort: sent to the server as it is. The model's documentation lists the values.
        context: tokens that prompt and reply may have together. Calls that do not fit are not sent. If omitted, they
            are sent, and the server rejects them. Ollama's context is known, and a larger one is requested from it.
        prices: prices by model name. They override the provider's list.
        calls: limits per call.
        local: how local models are served.
        models: models with their own settings, by the name that other settings use. An object in the run's `models` is
            added here.
    """

    temperature: float | None = Field(default=0.0, ge=0, allow_inf_nan=False)
    reasoning_effort: str | None = Field(default=None, min_length=1)
    context: int | None = Field(default=None, ge=256)
    prices: dict[str, Price] = Field(default_factory=dict)
    calls: CallLimits = CallLimits()
    local: LocalSettings = LocalSettings()
    models: dict[str, ModelConfig] = Field(default_factory=dict, exclude_if=lambda value: not value)

    def shared(self, parts: int) -> ModelSettings:
        """Return the settings for one of `parts` concurrent processes, with its share of the concurrent calls and of
        the requests per minute."""
        limits = self.calls.model_copy(update={"concurrency": max(self.calls.concurrency // parts, 1)})
        models = {name: one.model_copy(update={
            "concurrency": one.concurrency and max(one.concurrency // parts, 1),
            "requests_per_minute": one.requests_per_minute and one.requests_per_minute / parts})
            for name, one in self.models.items()}
        return self.model_copy(update={"calls": limits, "models": models})

    def config(self, name: str) -> ModelConfig:
        """Return the settings of the model with this name. A name that is not in `models` is the model itself."""
        return self.models.get(name) or ModelConfig.model_construct(model=name)

    def of(self, name: str) -> ModelSettings:
        """Return these settings with those of one model instead of the general ones."""
        one = self.config(name)
        given = {key: value for key in ("reasoning_effort", "context")
                 if (value := getattr(one, key)) is not None}
        if one.temperature is not None:
            given["temperature"] = None if one.temperature == "none" else one.temperature
        if one.context is not None:
            given["local"] = self.local.model_copy(update={"context": one.context})
        if one.prices is not None:
            given["prices"] = {**self.prices, name: one.prices}
        limits = {key: value for key in ("seconds", "attempts", "concurrency")
                  if (value := getattr(one, key)) is not None}
        return self.model_copy(update={**given, "calls": self.calls.model_copy(update=limits)})


def define_models(fields: Any, key: str) -> Any:
    """Move models that are given as objects under `key`, or as YAML texts of them, to `calls.models`, and leave their
    names.

    Raises:
        ValueError: an object is malformed or names no model, or two have the same name.
    """
    if not isinstance(fields, dict):
        return fields
    given = fields.get(key)
    try:
        listed = [yaml.safe_load(one) if isinstance(one, str) and one.startswith("{") else one
                  for one in (given if isinstance(given, list) else [given])]
    except yaml.YAMLError:
        raise ValueError(f"{key}: expected a model's name, or an object such as {{model: openai:NAME}}") from None
    if not any(isinstance(one, dict) for one in listed):
        return fields
    calls = fields.get("calls") or {}
    if isinstance(calls, BaseModel):
        calls = calls.model_dump()
    known = dict(calls.get("models") or {})
    names: list[Any] = []
    for one in listed:
        if isinstance(one, dict):
            if not isinstance(one.get("model"), str):
                raise ValueError(f"{key}: an object needs the key `model`, as in {{name: small, model: openai:NAME}}")
            name = one.get("name") or one["model"]
            if name in names or known.get(name, one) != one:
                raise ValueError(f"{key}: two models have the name {name}; give each a different `name`")
            known[name] = one
            one = name
        names.append(one)
    return {**fields, key: names if isinstance(given, list) else names[0], "calls": {**calls, "models": known}}


class Limits(_Settings):
    """Limits per question. A recipe that needs more ends with the outcome `budget` or `timeout`.

    Attributes:
        calls: largest number of model calls.
        tokens: largest number of tokens in prompts and replies together. A question that exceeds it, even by its last
            call, ends without an answer.
        searches: largest number of searches.
        tools: largest number of calls of tools.
        seconds: seconds from the question's start to its end.
        max_tokens: largest number of tokens in a reply, unless the strategy sets one.
    """

    calls: int = Field(default=40, ge=1)
    tokens: int = Field(default=1_000_000, ge=1)
    searches: int = Field(default=40, ge=0)
    tools: int = Field(default=100, ge=0, exclude_if=lambda count: count == 100)
    seconds: float = Field(default=900.0, gt=0)
    max_tokens: int = Field(default=1024, ge=1)


class Endpoint(Protocol):
    """A local model server, which may have to be started. A remote server is only an `Address`."""

    async def address(self) -> Address:
        """Return the address for the next request. Raises ModelError if the model cannot be reached."""
        ...

    async def aclose(self) -> None:
        """Stop the server."""
        ...


MAX_IN_FLIGHT = 4_096  # questions or calls at once that a user may ask for
_WORD = re.compile(r"[^\W_]\S*")  # a word with a letter or digit
# scripts without spaces between words: Thai, Lao, Burmese, Khmer, kana, Han.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
                       "\U00020000-\U0003ffff]+")
_CHARACTERS = 8  # characters in the longest usual tokens of these scripts


def min_tokens(text: str) -> int:
    """Return a lower bound of the number of tokens, which holds for all common tokenisers.

    Counts one token per word with a letter or digit, and one per eight characters of scripts without spaces. The actual
    number is about 1.3 times as large for English, and six times for Chinese.
    """
    words = len(_WORD.findall(text))
    unspaced = 0 if text.isascii() else sum(map(len, _UNSPACED.findall(text)))
    return max(words, unspaced // _CHARACTERS)


def _most_min_tokens(text: str) -> int:
    """Return an upper bound of `min_tokens`, at a tenth of its time."""
    return max(len(text.split()), 0 if text.isascii() else len(text) // _CHARACTERS)


def is_prompt_cut(messages: Sequence[Message], usage: Usage) -> bool:
    """Return whether a server counted fewer prompt tokens than the messages have, so it must have cut the prompt.

    `min_tokens` is a safe bound in all scripts. No common tokeniser joins words across white space, and tokens of
    scripts without spaces rarely have more than eight characters. Code, base64, long numbers and runs of spaces have
    more tokens than words. Chat templates and tools only add tokens. Cached tokens are added to the count, because
    some servers leave them out. Without a count, return False.
    """
    counted = usage.prompt_tokens and usage.prompt_tokens + usage.cached_tokens
    texts = [message.content for message in messages]
    return 0 < counted < sum(_most_min_tokens(text) for text in texts) and counted < sum(map(min_tokens, texts))


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
        """Tell whether this many characters certainly fit, since a word with its space has at least two."""
        return characters // 2 + 1 <= self.room(reply)

    def check(self, messages: Sequence[Message], reply: int) -> None:
        """Raise CallTooLong, with the sizes of prompt and context, if a prompt cannot fit."""
        # names of tool calls are not counted, because their form depends on the model's template
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
