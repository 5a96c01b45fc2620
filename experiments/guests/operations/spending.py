"""Limit what the owner of each key may spend on model calls in a day or a month, by UTC."""
from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal

from ragbed.documents.errors import SettingsError, UserError

if TYPE_CHECKING:
    from ragbed.agents.client import ModelClient
    from ragbed.agents.types import Answer
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


@dataclass(frozen=True, slots=True)
class Allowance:
    """What the owner of a key may spend until the end of the present period.

    Attributes:
        now: present time.
        estimate: US dollars that a question in progress counts as.
    """

    limit: SpendingLimit
    now: datetime
    estimate: float

    @property
    def first_day(self) -> str:
        """Return the first day of the period, such as 2026-11-29."""
        return self.limit.begin(self.now).date().isoformat()

    @property
    def oldest(self) -> str:
        """Return the time before which a question began that no longer counts as one in progress."""
        return (self.now - timedelta(seconds=_MAX_SECONDS)).isoformat(timespec="milliseconds")

    def check(self, spent: float, running: int) -> None:
        """Raise OverSpent if the owner, who has spent this much and has this many questions in progress, may not ask.
        """
        if spent + running * self.estimate >= self.limit.usd:
            end = self.limit.end(self.now)
            raise OverSpent(f"this key may spend {self.limit.usd:g} US dollars per {self.limit.period}; the limit is "
                            f"reset at {end.isoformat()}", math.ceil((end - self.now).total_seconds()))


class Spending:
    """Refuses questions of owners who have spent their limit.

    A question in progress counts as much as the most expensive answer of this process so far, so that questions at the
    same time exceed a limit by little. `Traffic` stores what was spent and what is in progress, for all processes.

    Args:
        default: limit of keys without one of their own, such as `5/day`; empty for none.
        claims: returns the claims of a key's owner; the claim `spend` is a limit.
    """

    def __init__(self, default: str, claims: Callable[[str], Claims]) -> None:
        self._default, self._claims = SpendingLimit.parse(default, "--spend") if default else None, claims
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

    def allowance(self, owner: str) -> Allowance | None:
        """Return what an owner may spend now; None if there is no limit."""
        limit = self.limit(owner)
        return Allowance(limit, datetime.now(UTC), self._estimate) if limit else None

    def price(self, owner: str, answer: Answer) -> float:
        """Return the US dollars of an answer that count for its owner's limit; 0 if there is no limit."""
        price = (answer.used.price or 0.0) if self.limit(owner) else 0.0
        self._estimate = max(self._estimate, price)
        return price
