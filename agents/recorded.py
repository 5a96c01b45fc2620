"""Recorded models: replies come from a cassette, and no call is made.

`recorded:NAME` is a cassette of this package, `recorded:FILE` your own. Searches and scores are still computed, so that
a recorded model can be compared with others in one run."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ragbed.agents.cassette import ENDING, CallLine, Cassette
from ragbed.agents.client import Completion, ModelClient
from ragbed.agents.journal import call_key
from ragbed.agents.replies import OnEvent, free_price
from ragbed.agents.settings import ModelSettings
from ragbed.documents.errors import CallError, ModelError, ReplayMiss, RunError
from ragbed.documents.http import Address
from ragbed.strategies.types import Failure, Generate, Reply

RECORDED = "recorded:"
SHIPPED = Path(__file__).parent / "recordings"


@dataclass(frozen=True, slots=True)
class Recording:
    """The recorded calls of one model, by journal key."""

    identity: str
    questions: int  # number of recorded questions, from the beginning of its benchmark
    made_with: Mapping[str, str]  # model, weights, date, machine and server
    outcomes: Mapping[str, Reply | Failure]


@cache
def load_recording(spec: str) -> Recording:
    """Load the recording that `recorded:NAME` names. Raises ModelError if there is none, or it has several models."""
    name = spec.removeprefix(RECORDED)
    shipped = sorted(path.name.removesuffix(ENDING) for path in SHIPPED.glob(f"*{ENDING}"))
    try:
        cassette = Cassette.open(SHIPPED / f"{name}{ENDING}" if name in shipped else Path(name))
    except RunError as error:
        raise ModelError(f"{spec}: {error}; ragbed comes with {', '.join(shipped)}") from error
    models: Mapping[str, str] = cassette.about["models"]
    if len(models) != 1:
        raise ModelError(f"{spec}: contains calls to {', '.join(models) or 'no model'}; name a cassette with calls to "
                         "one model")
    outcomes = {row.call: row.reply or row.failure for row in cassette.rows() if isinstance(row, CallLine)}
    return Recording(next(iter(models.values())), cassette.about["benchmark"]["questions"],
                     cassette.about.get("made_with", {}),
                     {key: outcome for key, outcome in outcomes.items() if outcome is not None})


class RecordedClient(ModelClient):
    """Answers calls with their recorded replies."""

    def __init__(self, spec: str, settings: ModelSettings) -> None:
        self._recording = load_recording(spec)
        identity = self._recording.identity
        super().__init__(spec, identity, identity, Address("", ""), free_price, settings.calls, settings.temperature,
                         settings.reasoning_effort)

    async def complete(self, action: Generate, *, max_tokens: int, deadline: float | None = None, repeat: int = 0,
                       tell: OnEvent | None = None) -> Completion:
        """Return the recorded reply, at no cost. Raises CallError if a failure was recorded, or ReplayMiss if the call
        was not recorded."""
        parameters: dict[str, Any] = self.parameters(action, max_tokens, repeat)
        key = call_key(self.identity, action.messages, parameters, repeat, action.sample)
        match self._recording.outcomes.get(key):
            case Reply() as reply:
                return Completion(reply, 0, 0.0)
            case Failure() as failure:
                raise CallError(failure.message, failure.kind, 0)
        raise ReplayMiss(f"{self.name} has no reply to this call ({key[:12]}): it answers only the questions, settings "
                         "and prompts that were recorded; use another model for others", "replay_miss", 0)
