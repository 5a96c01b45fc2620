"""Find the model with a name such as `openai:gpt-4o-mini`, and open a client for it."""
from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel

from ragbed.agents.cassette import RECORDED, RecordedClient, load_recording
from ragbed.agents.client import Connect, ModelClient
from ragbed.agents.journal import Journal, Model
from ragbed.agents.model_settings import (
    NO_MODEL,
    PACE,
    PIPELINE_PREFIX,
    CallLimits,
    Context,
    Endpoint,
    Limits,
    LocalSettings,
    ModelConfig,
    ModelSettings,
)
from ragbed.agents.relevance_judge import RelevanceJudges
from ragbed.agents.replies import Pricer, fixed_price, free_price, listed_price
from ragbed.documents.errors import ModelError, did_you_mean
from ragbed.documents.http import SERVER_SCHEMES, Address, check_key, hold_key, parse_address
from ragbed.documents.keys import fill_header
from ragbed.documents.types import digest
from ragbed.guests import entries, load, loaded
from ragbed.retrieval.rerankers.reranker import judges_of
from ragbed.retrieval.types import RerankerDeps

OnProgress = Callable[[int, "int | None"], None]  # bytes received, bytes expected if known
FORMS = "openai:NAME, PROVIDER:NAME, http://host/v1#NAME, gguf:PATH, hf:OWNER/REPO/FILE.gguf, recorded:NAME"
REMOTE = frozenset({*PACE, "base_url", "max_tokens_field"})
"""Settings of a model that act only for a server; a model on this machine refuses them."""
SHARED_SERVERS = "RAGBED_LOCAL_SERVERS"
"""Environment variable with the local servers that a launcher has started: JSON of address and key by identity."""
_MAX_SEARCHES = 512  # maximum concurrent questions if there is no model; their searches are batched


@dataclass(frozen=True, slots=True)
class ModelTarget:
    """The model that a name refers to."""

    name: str  # as the user wrote it, without secrets
    identity: str  # its served name, or `sha256:` and the weights' hash
    served: str  # the name in the request body
    remote: Address | None = None  # its server; None for a local model
    weights: Path | None = None  # file of a local model; None if the model is remote or the file is missing
    start: Callable[[LocalSettings], Endpoint] | None = None  # starts the server of a local model
    fetch: Callable[[OnProgress], Path] | None = None  # downloads weights that are missing
    connect: Connect | None = None  # connects to a server that does not speak OpenAI's protocol
    given: str = ""  # name that the settings give to this model; empty if it has none

    @property
    def recorded_as(self) -> str:
        """Return the identity in the journal. A given name is part of it, so that one served model can take part with
        several settings or at several hosts."""
        return f"{self.identity} ({self.given})" if self.given else self.identity

    @property
    def place(self) -> str:
        """Return the server's address and the model's name there, or the identity of a local model."""
        query = "&".join(map("=".join, self.remote.query)) if self.remote else ""
        return f"{self.remote.url}?{query} {self.served}" if self.remote else self.identity


class ModelProvider(Protocol):
    """Resolves names of models. Guests add one in the slot `provider`, under "PREFIX:" or a model's whole name."""

    def unused(self, spec: str) -> Collection[str]:
        """Return the settings of `ModelConfig` that cannot act for this model."""
        ...

    def resolve(self, config: ModelConfig, *, calls: bool, known: str | None) -> ModelTarget:
        """Return the model that `config.model` names; see `resolve_model`."""
        ...

    def models(self) -> list[dict[str, Any]]:
        """Return rows for `ragbed list models`."""
        ...


def resolve_model(name: str, settings: ModelSettings | None = None, *, calls: bool = True,
                  known: str | None = None) -> ModelTarget:
    """Find the model with this name.

    Args:
        settings: settings that may define the name.
        calls: False in a replay, which needs neither a key nor weights.
        known: identity that a run recorded, for replaying a `gguf:` or `hf:` model without its weights.

    Raises:
        ModelError: the name is unknown or malformed, a key or file is missing, a hash is wrong, or a setting of the
            model cannot act.
    """
    settings = settings or ModelSettings()
    config = settings.config(name)
    given = name if name != config.model else ""
    check_config(name, settings)
    target = _resolve(config, calls, None if calls or not known else known.removesuffix(f" ({given})"))
    if target.remote is not None and config.headers:
        headers = tuple((key, fill_header(value, send=calls)) for key, value in config.headers.items())
        target = replace(target, remote=replace(target.remote, headers=(*target.remote.headers, *headers)))
    return replace(target, name=name, given=given)


def _resolve(config: ModelConfig, calls: bool, known: str | None) -> ModelTarget:
    spec = config.model
    if spec == NO_MODEL or spec.startswith(PIPELINE_PREFIX):
        return ModelTarget(spec, known or spec, spec)
    if spec.startswith(RECORDED):
        return ModelTarget(spec, load_recording(spec).identity, spec)
    provider = _provider(spec)
    if provider is None:
        address, served = parse_address(spec, calls=calls, key_env=config.key_env, base_url=config.base_url)
        return ModelTarget(spec, served, served, address)
    target: ModelTarget = provider.resolve(config, calls=calls, known=known)
    return target


def check_config(name: str, settings: ModelSettings) -> None:
    """Raise ModelError if the name of a model is unknown, or one of its own settings cannot act."""
    config = settings.config(name)
    spec = config.model
    if re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", name + spec):
        raise ModelError(f"models: {name!r}: a model's name cannot contain a line break or another control character")
    if spec == NO_MODEL or spec.startswith((PIPELINE_PREFIX, RECORDED)):
        idle: Collection[str] = {*REMOTE, "api_version", "context", "prices"}
    elif (provider := _provider(spec, settings)) is not None:
        idle = provider.unused(spec)
    else:
        idle = {"api_version", *(() if spec.startswith("openai:") else ("base_url",))}
    if useless := sorted(config.model_fields_set & set(idle)):
        raise ModelError(f"models: {name}: {useless[0]} has no effect on {spec}; remove it")


def _provider(spec: str, settings: ModelSettings | None = None) -> ModelProvider | None:
    """Return the guest that resolves a name; None for the forms of the core."""
    form, colon, _ = spec.partition(":")
    if form in SERVER_SCHEMES and colon:
        return None
    providers = entries("provider")
    provider = providers.get(f"{form}:" if colon else spec.lower())
    if provider is not None:
        found: ModelProvider = load(provider)
        return found
    names = [*(name for name in (settings.models if settings else ()) if name != spec),
             *(name for name in providers if not name.endswith(":"))]
    forms = [f"{one}:" for one in SERVER_SCHEMES] + [name for name in providers if name.endswith(":")]
    meant = did_you_mean(spec, names) or (did_you_mean(f"{form}:", forms) if colon else "")
    raise ModelError(f"unknown model {spec!r}; {meant}choose from {', '.join(names)}, or write {FORMS}; `ragbed list "
                     "models` has the providers")


def describe_model(spec: str, settings: ModelSettings) -> tuple[Context | None, Pricer]:
    """Return a model's context, or None if unknown, and its pricer. Neither key nor weights are needed."""
    target, settings = resolve_model(spec, settings, calls=False), settings.of(spec)
    return _context(target, settings), _price(spec, target, settings)


@contextlib.asynccontextmanager
async def open_model(spec: str, settings: ModelSettings, *, calls: bool = True,
                     known: str | None = None) -> AsyncIterator[ModelClient]:
    """Open a client for a model, and close it at the end; see `resolve_model` for the arguments and errors.

    A local server starts with the first call, or with `ready()`. Without `calls`, a call raises ModelError.
    """
    target = await asyncio.to_thread(resolve_model, spec, settings, calls=calls, known=known)  # may hash a large file
    config, settings = settings.config(spec), settings.of(spec)
    limits, served, context = settings.calls, target.served, None
    served_by: str | None = None
    if config.model.startswith(RECORDED):
        yield RecordedClient(spec, config, target.recorded_as, settings)
        return
    if config.model == NO_MODEL or not calls:
        why = "a replay makes no calls" if config.model != NO_MODEL else (
            "the model `none` cannot be called; it is for reasoning: search_only")
        endpoint: Endpoint | Address = NoCalls(why)
        limits = CallLimits(concurrency=_MAX_SEARCHES) if config.model == NO_MODEL else limits
    elif target.remote is not None:
        endpoint = target.remote
        check_key(endpoint)
        for request_context in () if target.connect else loaded("context").values():
            served, context = await request_context(endpoint, served, settings.context)
        sent = digest(json.dumps([config.headers, config.max_tokens_field], sort_keys=True, default=repr))
        served_by = f"{target.place} {sent}{f' {context.tokens}' if context else ''}"
    else:
        assert target.start is not None
        shared = json.loads(os.environ.get(SHARED_SERVERS, "{}")).get(target.identity)
        endpoint = Address(*shared) if shared else target.start(settings.local)
        # One slot, because the server caches one prompt's prefix. At most two attempts, so that a prompt that crashes
        # the server fails soon. The next question restarts the server.
        limits = CallLimits(seconds=limits.seconds, attempts=min(limits.attempts, 2), concurrency=1)
        served_by = f"local, context {settings.local.context}"  # the server cuts replies at the context
    client = ModelClient(target.name, target.recorded_as, served, endpoint, _price(spec, target, settings), limits,
                         settings.temperature, settings.reasoning_effort, context or _context(target, settings),
                         config, target.connect, served_by)
    try:
        with hold_key(endpoint) if isinstance(endpoint, Address) else contextlib.nullcontext():
            yield client
    finally:
        await client.aclose()


@contextlib.asynccontextmanager
async def open_reranker_deps(retriever: BaseModel, settings: ModelSettings,
                             limits: Limits | None = None) -> AsyncIterator[RerankerDeps]:
    """Open the models of a retriever's relevance judges. Their calls are not stored."""
    most = (limits or Limits()).max_tokens
    async with contextlib.AsyncExitStack() as stack:
        models = {name: Model(await stack.enter_async_context(open_model(name, settings)), Journal(None), most)
                  for name in dict.fromkeys(judge.model for judge in judges_of(retriever))}
        yield RerankerDeps(RelevanceJudges(models.__getitem__, limits))


@dataclass(frozen=True, slots=True)
class NoCalls:
    """An endpoint that rejects every call, for the reason `why`."""

    why: str

    async def address(self) -> Address:
        raise ModelError(self.why)

    async def aclose(self) -> None:
        return None


def _price(spec: str, target: ModelTarget, settings: ModelSettings) -> Pricer:
    given = settings.prices.get(spec)
    if given is not None:
        return fixed_price(given)
    if target.served.startswith(PIPELINE_PREFIX):
        return lambda *tokens: None
    return listed_price(target.remote.url, target.served) if target.remote is not None else free_price


def _context(target: ModelTarget, settings: ModelSettings) -> Context | None:
    if target.served == NO_MODEL or target.served.startswith((PIPELINE_PREFIX, RECORDED)):
        return None
    if target.remote is None:
        return Context(settings.local.context, whole_reply=False)
    return Context(settings.context) if settings.context is not None else None
