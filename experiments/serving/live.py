"""A live experiment: which configuration answers a thread, drawn at random, and a test of the difference that stays
valid whenever one looks."""
from __future__ import annotations

from collections.abc import Sequence

from documents.types import digest


def drawn(salt: str, thread: str, names: Sequence[str], explore: float) -> tuple[str, float]:
    """Return the configuration that a thread is given, and the probability of that: the first, or with the probability
    `explore` one of the others, each as likely. The salt is the server's secret: who names a thread cannot choose."""
    place = int(digest(salt, thread)[:13], 16) / 16**13
    others = names[1:] if explore else []
    if not others or place >= explore:
        return names[0], 1.0 - explore if others else 1.0
    return others[int(place / explore * len(others))], explore / len(others)
