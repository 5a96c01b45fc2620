"""Delete what a running server stores: a thread, all answers of a user or with a document, or old ones."""
from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request

from ragbed.documents.errors import SettingsError, UserError
from ragbed.documents.http import sanitize_line
from ragbed.experiments.guests.serving.api_keys import Keys
from ragbed.experiments.guests.serving.state import http_error, request_owner
from ragbed.experiments.guests.traffic.forgetting import Forgotten, Selection
from ragbed.experiments.guests.traffic.postgres_traffic import database_errors

if TYPE_CHECKING:
    from ragbed.experiments.guests.serving.state import ServerState
    from ragbed.experiments.guests.traffic.traffic import Traffic

_SECONDS = 3600.0  # seconds between deletions of old answers


@dataclass(frozen=True)
class Forgetter:
    """Deletes answers from the traffic, the threads of a checkpointer, and all caches."""

    traffic: Traffic
    checkpointer: Any

    @classmethod
    def of(cls, server: ServerState) -> Forgetter:
        """Return the one of a running server."""
        first = next(iter(server.configurations.values()))
        return cls(server.sessions.traffic, first.threads.graph.checkpointer)

    async def forget(self, chosen: Selection) -> Forgotten:
        """Delete the chosen answers and their threads. Raises SettingsError if one of them is not finished."""
        return await self.traffic.forget(chosen, self.checkpointer)

    async def forget_hourly(self, days: float) -> None:
        """Delete the answers that are older than some days, now and every hour, until cancelled."""
        while True:
            failures: tuple[type[Exception], ...] = (UserError, *database_errors())
            try:
                await self.forget(Selection(days=days))
            except failures as error:
                logging.getLogger("ragbed").warning("old answers cannot be deleted: %s", sanitize_line(str(error)))
            await asyncio.sleep(_SECONDS)


def forget_routes(forgetter: Forgetter, keys: Keys) -> APIRouter:
    """Return the routes. A key deletes what is its own; a key with the claim `admin=true` deletes all."""
    router = APIRouter()

    def is_admin(request: Request) -> bool:
        return not keys or "true" in keys.claims(request_owner(request)).get("admin", ())

    async def forget(chosen: Selection) -> dict[str, Any]:
        try:
            found = await forgetter.forget(chosen)
        except SettingsError as error:
            raise http_error(409, str(error), "busy") from error
        return {"answers": found.answers, "threads": len(found.threads)}

    @router.delete("/api/threads/{thread}")
    async def thread(thread: str, request: Request) -> dict[str, Any]:
        owner = None if is_admin(request) and keys else request_owner(request)
        found = await forget(Selection(owner, thread))
        if not found["answers"]:
            raise http_error(404, "no such thread", "not_found")
        return found

    @router.delete("/api/users/{name}")
    async def user(name: str, request: Request) -> dict[str, Any]:
        if name != request_owner(request) and not is_admin(request):
            raise http_error(403, "a key deletes its own answers; others need the claim admin=true", "not_allowed")
        return await forget(Selection(name))

    @router.delete("/api/documents/{document:path}")
    async def document(document: str, request: Request) -> dict[str, Any]:
        if not is_admin(request):
            raise http_error(403, "this needs a key with the claim admin=true", "not_allowed")
        return await forget(Selection(document=document))

    return router
