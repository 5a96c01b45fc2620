"""Limit what the owner of each key may spend on model calls in a day or a month, by UTC."""
from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal, Protocol

from ragbed.documents.errors import SettingsError, UserError

if TYPE_CHECKING:
    from ragbed.agents.client import ModelClient
    from ragbed.experiments.guests.access.key_claims import Claims

_LIMIT = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)/(day|month)")
_TYPICAL = 5_000, 500  # tokens of the prompts and replies of an answer, until one is more expensive
_MAX_SECONDS = 3_600.0  # after which a question that did not end is no longer counted
CLAIM = "spend"  # claim of a key with its own limit


class OverSpent(UserError):
    """The owner of a key has spent their limit. `seconds` until it is reset."""

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class SpendingLimit:
    """US dollars per day or month."""

    usd: float
    period: Literal["day", "month"]

    @classmethod
    def parse(cls, text: str, where: str) -> SpendingLimit:
        """Read a limit such as `5/day`. Raises SettingsError for any other text."""
        found = _LIMIT.fullmatch(text)
        if not found or not float(found[1]):
            raise SettingsError(f"{where} {text!r:.40}: expected US dollars per day or month, such as 5/day")
        return cls(float(found[1]), "day" if found[2] == "day" else "month")

    def begin(self, now: datetime) -> datetime:
        """Return the begin of the present period."""
        day = now.replace(hour=0, minute=0, second=0, microsecond=0)
        return day if self.period == "day" else day.replace(day=1)

    def end(self, now: datetime) -> datetime:
        """Return the begin of the next period."""
        begin = self.begin(now)
        return begin + timedelta(days=1) if self.period == "day" else (begin + timedelta(days=32)).replace(day=1)


class Ledger(Protocol):
    """What owners have spent; see `Traffic`."""

    async def spent(self, owner: str, since: str) -> float:
        """Return the US dollars since a day such as 2026-11-29."""
        ...

    async def spend(self, owner: str, day: str, usd: float) -> None:
        """Add to what an owner has spent on a day."""
        ...


class Spending:
    """Refuses questions of owners who have spent their limit.

    A question in progress counts as much as the most expensive answer so far, so that questions at the same time
    exceed a limit by little.

    Args:
        default: limit of keys without one of their own, such as `5/day`; empty for none.
        claims: returns the claims of a key's owner; the claim `spend` is a limit.
        ledger: stores what was spent, for all processes of the server.
    """

    def __init__(self, default: str, claims: Callable[[str], Claims], ledger: Ledger) -> None:
        self._default = SpendingLimit.parse(default, "--spend") if default else None
        self._claims, self._ledger = claims, ledger
        self._running: dict[str, tuple[str, float]] = {}  # owner and start of each question that is being answered
        self._estimate = 0.0  # US dollars of an answer

    def limit(self, owner: str) -> SpendingLimit | None:
        """Return the limit of an owner; None if there is none. Raises SettingsError if it is malformed."""
        own = self._claims(owner).get(CLAIM)
        return SpendingLimit.parse(",".join(sorted(own)), f"key {owner}: spend") if own else self._default

    def check_models(self, owners: Iterable[str], clients: Iterable[ModelClient]) -> None:
        """Raise SettingsError if a limit is malformed, or there is a limit and the price of a model is unknown."""
        limits = [self.limit(owner) for owner in (*owners, "")]
        for client in clients if any(limits) else ():
            price = client.price_of(*_TYPICAL)
            if price is None:
                raise SettingsError(f"--spend: the price of {client.name} is unknown; set `prices` of the model in a "
                                    "settings file, or remove the limit")
            self._estimate = max(self._estimate, price)

    async def reserve(self, owner: str, record: str) -> None:
        """Count a question. Raises OverSpent if its owner may not ask now."""
        limit = self.limit(owner)
        if limit is None:
            return
        now = datetime.now(UTC)
        spent = await self._ledger.spent(owner, limit.begin(now).date().isoformat())
        oldest = time.monotonic() - _MAX_SECONDS
        self._running = {one: kept for one, kept in self._running.items() if kept[1] > oldest}
        running = sum(kept[0] == owner for kept in self._running.values())
        if spent + running * self._estimate >= limit.usd:
            end = limit.end(now)
            raise OverSpent(f"this key may spend {limit.usd:g} US dollars per {limit.period}; the limit is reset at "
                            f"{end.isoformat()}", math.ceil((end - now).total_seconds()))
        self._running[record] = owner, time.monotonic()

    def release(self, record: str) -> None:
        """No longer count a question."""
        self._running.pop(record, None)

    async def end(self, owner: str, record: str, price: float | None) -> None:
        """Store the price of an answer, and no longer count its question."""
        if price and self.limit(owner) is not None:
            await self._ledger.spend(owner, datetime.now(UTC).date().isoformat(), price)
            self._estimate = max(self._estimate, price)
        self.release(record)
