"""What every strategy promises, and how it is told whether one keeps it."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PROMISES: Mapping[str, str] = {
    "protocol": "it yields searches, calls, lists of one of the two and decisions, raises nothing, and ends with a "
                "Draft, whatever the model replies",
    "ends": "it ends, however long the model is never satisfied; of the calls and searches of these plays the most are "
            "named, which is no bound",
    "limits": "it can be stopped at any step by the limits of a question",
    "deterministic": "it asks for the same where the same was found and replied, in any process",
    "stateless": "what it did for one question changes nothing for the next",
    "answers": "under every set of rules and in every answer format a good reply is an answer, and a refusal is one",
    "shown": "every document that a prompt shows with its number, or asks for an answer from, is declared in `shown`",
    "gold": "nothing that may tell what is right or where it stands reaches a prompt or a query",
    "io": "it touches no file, network, process or screen",
    "source": "it reads no clock, no environment and no chance of its own, and nothing of the packages above it"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether one promise is kept.

    Attributes:
        name: of `PROMISES`.
        passed: None where it broke another one before this could be seen.
        detail: one line: where it is broken, or what was played.
    """

    name: str
    passed: bool | None
    detail: str
