"""Find the model that a name such as `openai:gpt-4o-mini` stands for, and open a client for it."""
from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel

from ragbed.agents.client import ModelClient
from ragbed.agents.journal import Journal, Model
from ragbed.agents.recorded import RECORDED, RecordedClient, load_recording
from ragbed.agents.relevance import RelevanceJudges
from ragbed.agents.replies import Pricer, fixed_price, free_price, listed_price
from ragbed.agents.settings import CallLimits, Context, Endpoint, Limits, LocalSettings, ModelSettings
from ragbed.documents.errors import ModelError
from ragbed.documents.http import SERVER_SCHEMES, Address, parse_address
from ragbed.guests import entries, load
from ragbed.retrieval.rerankers.reranker import RerankerDeps, judges_of

OnProgress = Callable[[int, "int | None"], None]  # bytes received, bytes expected if known
FORMS = "openai:NAME, http://host/v1#NAME, gguf:PATH, hf:OWNER/REPO/FILE.gguf, recorded:NAME"
PIPELINE_PREFIX = "pipeline:"  # prefix of a pipeline's name, used instead of a model's name
NO_MODEL = "none"  # model name for a strategy that calls no model
SHARED_SERVERS = "RAGBED_LOCAL_SERVERS"
"""Environment variable with the local servers that a launcher has started: JSON of address and key by identity."""
_MAX_SEARCHES = 512  # concurrent questions without a model; their searches are batched


@dataclass(frozen=True, slots=True)
class ModelTarget:
    """A named model."""

    name: str  # as the user wrote it; never holds a secret
    identity: str  # identity in the journal: its served name, or `sha256:` and the weights' hash
    served: str  # the name in the request body
    remote: Address | None = None  # its server; None for a local model
    weights: Path | None = None  # file of a local model; None if the model is remote or the file missing
    start: Callable[[LocalSettings], Endpoint] | None = None  # starts the server of a local model
    fetch: Callable[[OnProgress], Path] | None = None  # downloads weights that are missing


class ModelProvider(Protocol):
    """Resolves names of models. Guests add one in the slot `provider`, under "PREFIX:" or a model's whole name."""

    def resolve(self, spec: str, *, calls: bool, known: str | None) -> ModelTarget:
        """Return the model with this name; see `resolve_model`."""
        ...

    def models(self) -> list[dict[str, Any]]:
        """Return rows for `ragbed list models`."""
        ...


def resolve_model(spec: str, *, calls: bool = True, known: str | None = None) -> ModelTarget:
    """Find the model with this name.

    Args:
        calls: False in a replay, which needs neither a key nor weights.
        known: identity that a run recorded, for replaying a `gguf:` or `hf:` model without its weights.

    Raises:
        ModelError: the name is unknown or malformed, a key or file is missing, or a hash is wrong.
    """
    if spec == NO_MODEL or spec.startswith(PIPELINE_PREFIX):
        return ModelTarget(spec, known or spec, spec)
    if spec.startswith(RECORDED):
        return ModelTarget(spec, load_recording(spec).identity, spec)
    form, colon, _ = spec.partition(":")
    known = None if calls else known
    if form in SERVER_SCHEMES and colon:
        address, served = parse_address(spec, calls=calls)
        return ModelTarget(spec, served, served, address)
    providers = entries("provider")
    provider = providers.get(f"{form}:" if colon else spec.lower())
    if provider is not None:
        target: ModelTarget = load(provider).resolve(spec, calls=calls, known=known)
        return target
    names = [name for name in providers if not name.endswith(":")]
    near = get_close_matches(spec.lower(), names, n=1)
    meant = f"did you mean {near[0]}? " if near else ""
    raise ModelError(f"unknown model {spec!r}; {meant}choose from {', '.join(names)}, or write {FORMS}")


def describe_model(spec: str, settings: ModelSettings) -> tuple[Context | None, Pricer]:
    """Return a model's context (None if unknown) and its pricer without opening it. Needs neither key nor weights."""
    target = resolve_model(spec, calls=False)
    return _context(target, settings), _price(spec, target, settings)


@contextlib.asynccontextmanager
async def open_model(spec: str, settings: ModelSettings, *, calls: bool = True,
                     known: str | None = None) -> AsyncIterator[ModelClient]:
    """Open a client for a model, and close it at the end; see `resolve_model` for the arguments and errors.

    A local server starts with the first call, or with `ready()`. Without `calls`, a call raises ModelError.
    """
    target = await asyncio.to_thread(resolve_model, spec, calls=calls, known=known)  # may hash a large file
    limits = settings.calls
    if spec.startswith(RECORDED):
        yield RecordedClient(spec, settings)
        return
    if spec == NO_MODEL:
        endpoint: Endpoint | Address = NoCalls("the model `none` cannot be called; it is for reasoning: search_only")
        limits = CallLimits(concurrency=_MAX_SEARCHES)
    elif not calls:
        endpoint = NoCalls("a replay makes no calls")
    elif target.remote is not None:
        endpoint = target.remote
    else:
        assert target.start is not None
        shared = json.loads(os.environ.get(SHARED_SERVERS, "{}")).get(target.identity)
        endpoint = Address(*shared) if shared else target.start(settings.local)
        # One slot, because the server caches one prompt's prefix. Two attempts: a prompt that crashes the server twice
        # fails, and the next question starts it again.
        limits = CallLimits(seconds=limits.seconds, attempts=min(limits.attempts, 2), concurrency=1)
    client = ModelClient(target.name, target.identity, target.served, endpoint, _price(spec, target, settings), limits,
                         settings.temperature, settings.reasoning_effort, _context(target, settings))
    try:
        yield client
    finally:
        await client.aclose()


@contextlib.asynccontextmanager
async def open_reranker_deps(retriever: BaseModel, settings: ModelSettings,
                             limits: Limits | None = None) -> AsyncIterator[RerankerDeps]:
    """Open the models of a retriever's relevance judges, without a journal."""
    most = (limits or Limits()).max_tokens
    async with contextlib.AsyncExitStack() as stack:
        models = {name: Model(await stack.enter_async_context(open_model(name, settings)), Journal(None), most)
                  for name in dict.fromkeys(judge.model for judge in judges_of(retriever))}
        yield RerankerDeps(RelevanceJudges(models.__getitem__, limits))


@dataclass(frozen=True, slots=True)
class NoCalls:
    """An endpoint that refuses every call, with the reason `why`."""

    why: str

    async def address(self) -> Address:
        raise ModelError(self.why)

    async def aclose(self) -> None:
        return None


def _price(spec: str, target: ModelTarget, settings: ModelSettings) -> Pricer:
    given = settings.prices.get(spec)
    if given is not None:
        return fixed_price(given)
    if spec.startswith(PIPELINE_PREFIX):
        return lambda *tokens: None
    return listed_price(target.remote.url, target.served) if target.remote is not None else free_price


def _context(target: ModelTarget, settings: ModelSettings) -> Context | None:
    if target.name == NO_MODEL or target.name.startswith((PIPELINE_PREFIX, RECORDED)):
        return None
    if target.remote is None:
        return Context(settings.local.context, whole_reply=False)
    return Context(settings.context) if settings.context is not None else None
