"""Resolve names of models at providers, such as `groq:llama-3.3-70b`, by the table in `providers.toml`."""
from __future__ import annotations

import os
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbed.agents.models import ModelTarget
from ragbed.documents.errors import MissingExtra, ModelError
from ragbed.documents.http import Address, check_name, check_url, find_key, host_of, is_at
from ragbed.documents.keys import read_key

if TYPE_CHECKING:
    from ragbed.agents.client import Chat
    from ragbed.agents.model_settings import CallLimits, ModelConfig

LANGCHAIN = "langchain:"
_AZURE = "azure"
_NO_QUERY: tuple[tuple[str, str], ...] = ()
_AWS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")  # secrets that boto3 reads itself


@dataclass(frozen=True, slots=True)
class Provider:
    """A row of `providers.toml`, which explains the fields."""

    name: str
    url: str = ""
    url_env: str = ""
    key: str = ""
    hosts: tuple[str, ...] = ()
    optional: bool = False
    key_header: str = ""
    rename: Mapping[str, str] = field(default_factory=dict)
    langchain: str = ""
    package: str = ""
    source: str = ""

    def address(self, config: ModelConfig, served: str, send: bool) -> Address:
        """Return the address of a model at this provider, with its key. Raises ModelError if one of them is missing, or
        if the key belongs to another host."""
        of_env = os.environ.get(self.url_env, "")
        given = config.base_url or of_env or self.url
        if not given and not self.langchain:
            raise ModelError(f"{self.name}: no address; set {self.url_env}, or base_url in the model's settings")
        url, query = check_url(given, self.url_env or "base_url") if given else "", _NO_QUERY
        if self.name == _AZURE:
            url, query = _azure_address(url, served, config.api_version)
        if not self.key:  # LangChain's client reads its provider's own variable
            return Address(url, read_key(config.key_env, required=send) if config.key_env else "", config.key_env)
        hosts = [*map(host_of, filter(None, [of_env])), *(self.hosts or [host_of(self.url)] * (not self.optional))]
        own = next((one for one in hosts if is_at(host_of(url), one)), None)
        if own is None and self.hosts and self.optional and config.key_env is None:
            return Address(url, "none", query=query)  # a server of the user's own, such as Ollama, needs no key
        at = find_key(url, self.key, config.key_env, own=own or next(iter(hosts), None), required=not self.optional,
                      send=send)
        headers = ((self.key_header, at.key), ("Authorization", "")) if self.key_header and at.key != "none" else ()
        return Address(at.url, at.key, at.key_variable, headers, query, at.general)


def _azure_address(url: str, served: str, version: str | None) -> tuple[str, tuple[tuple[str, str], ...]]:
    resource = url.partition("/openai")[0]
    return (f"{resource}/openai/deployments/{served}", (("api-version", version),)) if version else (
        f"{resource}/openai/v1", _NO_QUERY)


@cache
def providers() -> dict[str, Provider]:
    """Return the providers of the table by prefix."""
    table = tomllib.loads((Path(__file__).parent / "providers.toml").read_text(encoding="utf-8"))
    return {name: Provider(name, **{**row, "hosts": tuple(row.get("hosts", ()))}) for name, row in table.items()}


class Providers:
    """A `ModelProvider` for the providers of the table, and for the others that LangChain knows."""

    def unused(self, spec: str) -> Collection[str]:
        """Return the settings that cannot act for a provider."""
        provider, _ = _split(spec)
        return [*["api_version"] * (provider.name != _AZURE), *["max_tokens_field"] * bool(provider.langchain)]

    def resolve(self, config: ModelConfig, *, calls: bool, known: str | None) -> ModelTarget:
        """Return the model at its provider. Raises ModelError if its address or key is missing, and MissingExtra if
        LangChain's client for it is."""
        provider, served = _split(config.model)
        at = provider.address(config, served, calls)
        if not provider.langchain:
            connect = partial(_connect_renaming, provider.rename) if provider.rename else None
            return ModelTarget(config.model, served, served, at, connect=connect)
        if calls:
            MissingExtra.check("langchain", "langchain", *[provider.package] * bool(provider.package))
        for variable in _AWS if provider.package == "langchain_aws" else ():
            read_key(variable, required=False)
        return ModelTarget(config.model, served, served, at, connect=partial(_connect_langchain, provider, config))

    def models(self) -> list[dict[str, Any]]:
        """Return one row per provider for `ragbed list models`."""
        return [{"name": f"{one.name}:NAME", "kind": "provider", "size": "", "licence": "",
                 "here": one.optional or bool(os.environ.get(one.key)),
                 "note": f"{one.url or one.url_env or 'AWS'}, key in {one.key}", "sha256": ""}
                for one in providers().values()]


PROVIDER = Providers()


def _split(spec: str) -> tuple[Provider, str]:
    """Return the provider in a name, and the model's name there."""
    prefix, _, served = spec.partition(":")
    if prefix != LANGCHAIN[:-1]:
        return providers()[prefix], check_name(served)
    prefix, _, served = served.partition(":")
    if not prefix or not served:
        raise ModelError(f"{spec!r}: expected langchain:PROVIDER:NAME, with a provider of LangChain's init_chat_model")
    known = next((one for one in providers().values() if one.langchain == prefix), None)
    return known or Provider(prefix, langchain=prefix), check_name(served)


def _connect_renaming(rename: Mapping[str, str], at: Address, served: str, limits: CallLimits) -> Chat:
    from ragbed.agents.openai_chat import connect

    return connect(at, served, limits.concurrency, rename)


def _connect_langchain(provider: Provider, config: ModelConfig, at: Address, served: str, limits: CallLimits) -> Chat:
    from ragbed.experiments.guests.providers.langchain_chat import connect

    return connect(provider.langchain, config, at, served, limits)
