"""Ask a server for what its keys may not read, through every route, and note where it comes out."""
from __future__ import annotations

import json
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2

from ragbed.documents.errors import SettingsError
from ragbed.experiments.guests.access.access import Access, may_reach
from ragbed.experiments.guests.access.access_rule import AccessRule
from ragbed.experiments.guests.access.canaries import Canary, plant
from ragbed.experiments.guests.access.key_claims import Claims, read_claims
from ragbed.experiments.guests.access.leak_routes import ASKING, READING, SENT, Stages, Visitor, visit_again
from ragbed.experiments.guests.access.leak_watch import Watch
from ragbed.experiments.guests.operations.edge import EdgeSettings
from ragbed.experiments.guests.operations.serve_settings import ServeSettings
from ragbed.experiments.guests.serving.api_keys import Keys
from ragbed.experiments.guests.serving.middleware import GateSettings, Rate
from ragbed.experiments.guests.serving.state import ServerState
from ragbed.experiments.settings.file import read_content
from ragbed.retrieval.pool import RetrieverChoice

_AGAIN = ("search", "chat", "page", "side by side")  # routes that are asked after somebody else has got the answer
_PLEASE = " Answer in one sentence, please."  # makes a question new
_REPEATS = "http://localhost:9/v1#repeats"  # the model that repeats all that it sees; it is never connected to
_DEEP = 1_000  # chunks of the unrestricted search
ROUTES = (*ASKING, *READING)


@dataclass(frozen=True)
class Probe:
    """One request for a canary.

    Attributes:
        phase: `asked`, `cached` (after others got the answer), `stolen` (another's conversation) or `revoked` (after
            the key lost its claims).
        allowed: whether the key may read the canary.
        stages: where it was seen: `found` by a search or read by a tool, sent to the `model`, `said` in the answer,
            `cited` by it, `shown` in the response, `logged`.
        failure: why the server failed; empty if it did not.
    """

    route: str
    phase: str
    owner: str
    source: str
    allowed: bool
    stages: frozenset[str] = frozenset()
    failure: str = ""


@dataclass(frozen=True)
class LeakReport:
    """The probes. `recall` has for each key the share of what an unrestricted search finds first, among the documents
    that the key may read, that its own search finds."""

    rules: tuple[str, ...]
    probes: tuple[Probe, ...]
    recall: Mapping[str, float]


@dataclass
class _Attack:
    """A server under attack, with the keys of the principals."""

    server: ServerState
    keys: Keys
    rules: Sequence[AccessRule]
    canaries: Sequence[Canary]
    visitors: Mapping[str, Visitor]
    watch: Watch
    probes: list[Probe]

    def allows(self, owner: str, canary: Canary, claims: Claims | None = None) -> bool:
        return all(rule.allows(canary.fields, claims or self.keys.claims(owner)) for rule in self.rules)

    async def probe(self, route: str, phase: str, owner: str, canary: Canary, asked: Awaitable[Stages]) -> None:
        self.watch.begin()
        probe = Probe(route, phase, owner, canary.source, self.allows(owner, canary))
        sent = SENT[route](canary) if route in SENT else ""
        try:
            got = await asked
        except (ValueError, httpx2.HTTPError) as error:
            self.probes.append(replace(probe, failure=str(error)))
            return
        self.probes.append(replace(probe, stages=self.watch.stages(canary, got, sent)))

    async def ask(self, routes: Sequence[str]) -> None:
        """Ask as those who may not read a canary and those who may; then, what is new, first as those who may."""
        for phase, allowed in (("asked", False), ("asked", True), ("cached", True), ("cached", False)):
            for route in routes if phase == "asked" else [one for one in _AGAIN if one in routes]:
                for canary in self.canaries:
                    for owner, who in self.visitors.items():
                        if self.allows(owner, canary) is not allowed or not canary.has(route):
                            continue
                        wordings = None if route in ASKING and phase == "asked" else 1
                        for question in canary.questions[:wordings]:
                            words = question if phase == "asked" else question + _PLEASE
                            asked = {**ASKING, **READING}[route](who, canary, words)
                            await self.probe(route, phase, owner, canary, asked)

    async def revoke(self) -> None:
        """Start conversations on canaries, let others ask for them, take the key's claims, and ask again."""
        for owner, who in self.visitors.items():
            claims, none = self.keys.claims(owner), read_claims(owner, {}, owner)
            for canary in self.canaries:
                if not self.allows(owner, canary) or self.allows(owner, canary, none):
                    continue
                page, response = await who.ask_page(canary.questions[0]), await who.respond(canary.questions[0])
                others = [one for one in self.visitors if not self.allows(one, canary)][:1]
                for other in others:
                    for route, ask in visit_again(self.visitors[other], canary, page, response).items():
                        await self.probe(route, "stolen", other, canary, ask())
                self.keys.owners[owner] = none
                for route, ask in visit_again(who, canary, page, response).items():
                    await self.probe(route, "revoked", owner, canary, ask())
                self.keys.owners[owner] = claims

    async def recall(self, owner: str) -> float | None:
        """Return the recall of an owner's searches; None if no canary is allowed, whose questions could be asked."""
        name, whole = next(iter(self.server.configurations.items()))
        own, settings = self.server.narrow(name, owner).assistant, whole.assistant.settings
        how = RetrieverChoice(settings.retriever, settings.where, lambda: whole.assistant.deps)
        view = Access([one.text for one in self.rules], self.keys.claims).view(whole.assistant.index, owner)
        found = wanted = 0
        for question in (one for canary in self.canaries if self.allows(owner, canary) for one in canary.questions):
            (ranked,) = how.open(whole.assistant.index).search([question], _DEEP)
            best = [hit.chunk.id for hit in ranked if may_reach(view, hit.chunk.document)][:settings.k]
            got = {hit.chunk.id for hit in await own.searcher.hits(question, settings.k)}
            found, wanted = found + len(got.intersection(best)), wanted + len(best)
        return found / wanted if wanted else None


async def find_leaks(index: Path, principals: Path, given: Mapping[str, Any], *, each: int = 2,
                     routes: Sequence[str] = ROUTES, unprotected: bool = False,
                     make: Callable[..., Access] = Access) -> LeakReport:
    """Ask for canaries as each of the principals. Raises UserError if the file is malformed, or the index or model
    cannot be opened.

    Args:
        principals: YAML with `allow`, `principals`, and perhaps `canaries`.
        given: settings of the served configuration. Without a model, one answers that repeats all that it sees.
        each: canaries per group.
        unprotected: serve without the rule, to see what it prevents.
        make: makes the server's `Access` from rules and claims.
    """
    claims, rules, marked = _read(principals)
    async with AsyncExitStack() as stack:
        place, canaries = stack.enter_context(plant(index, rules, each, marked))
        tokens = {name: secrets.token_hex(16) for name in claims}
        keys = Keys([json.dumps({"name": name, "key": tokens[name], **one}) for name, one in claims.items()],
                    str(principals))
        watch = Watch("model" not in given)
        access = make([] if unprotected else [one.text for one in rules], keys.claims)
        server, client = await stack.enter_async_context(
            _served(place, {"model": _REPEATS, **given}, keys, access, watch))
        visitors = {name: Visitor(client, key, tuple(server.configurations)) for name, key in tokens.items()}
        attack = _Attack(server, keys, rules, canaries, visitors, watch, [])
        recall = {name: found for name in claims if (found := await attack.recall(name)) is not None}
        await attack.ask(routes)
        await attack.revoke()
    return LeakReport(tuple(one.text for one in rules), tuple(attack.probes), recall)


@asynccontextmanager
async def _served(index: Path, given: Mapping[str, Any], keys: Keys, access: Access, watch: Watch,
                  ) -> AsyncIterator[tuple[ServerState, Any]]:
    """Yield a server of an index, and its HTTP client. What is printed or logged goes to the watch."""
    from ragbed.experiments.guests.operations.server_settings import ServerSettings
    from ragbed.experiments.guests.serving.app import create_app, open_server
    from ragbed.experiments.guests.serving.configurations import read_target

    (first,) = read_target(index, given)
    other = first.settings.model_copy(update={"reasoning": "direct", "k": first.settings.k + 1})
    cached = replace(first, name="other", settings=other, serve=ServeSettings(cache=3600))
    handler = logging.StreamHandler(watch.log)
    logging.root.addHandler(handler)
    try:
        with TemporaryDirectory(prefix="ragbed-leaks-") as folder, redirect_stderr(watch.log), \
                redirect_stdout(watch.log):
            async with open_server([first, cached], ServerSettings(Path(folder)), access) as server:
                opened = next(iter(server.configurations.values())).assistant  # both share the index and the model
                watch.attach(opened.index, opened.client)
                app = create_app(server, GateSettings(keys, rate=Rate("999999999/second")), EdgeSettings(log="json"))
                transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
                async with app.router.lifespan_context(app), httpx2.AsyncClient(
                        transport=transport, base_url="http://localhost", timeout=600) as client:
                    yield server, client
    finally:
        logging.root.removeHandler(handler)


def _read(file: Path) -> tuple[dict[str, dict[str, list[str]]], list[AccessRule], list[Mapping[str, Any]]]:
    """Return the claims of each principal, the rules and the marked canaries of a file."""
    content = read_content(file)
    unknown = sorted(content.keys() - {"name", "allow", "principals", "canaries"})
    people = content.get("principals")
    if unknown or not isinstance(people, dict) or not people or not content.get("allow"):
        raise SettingsError(f"{file}: expected `allow`, a rule, and `principals`, as in {{ann: {{groups: [finance]}}}}"
                            f"{f'; {unknown[0]!r} is unknown' if unknown else ''}")
    allow = content["allow"] if isinstance(content["allow"], list) else [content["allow"]]
    claims = {str(name): {str(claim): list(map(str, value if isinstance(value, list) else [value]))
                          for claim, value in (one or {}).items()} for name, one in people.items()}
    return claims, [AccessRule.parse(str(one)) for one in allow], content.get("canaries") or []
