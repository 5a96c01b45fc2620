"""Recorded models: every call is answered from a cassette, and none is made.

`recorded:NAME` is a cassette of this package, `recorded:FILE` one of one's own. Searches, scores and everything else
are made anew, so that a recorded model can stand in one matrix with others.
"""
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
    """The calls of one model, by their key in the journal."""

    identity: str
    questions: int  # the first ones of its benchmark
    made_with: Mapping[str, str]  # what is known of the model, its weights, the day, the machine and the server
    outcomes: Mapping[str, Reply | Failure]


@cache
def load_recording(spec: str) -> Recording:
    """Return the recording that `recorded:NAME` names. Raises ModelError where there is none, or it is of several
    models."""
    name = spec.removeprefix(RECORDED)
    shipped = sorted(path.name.removesuffix(ENDING) for path in SHIPPED.glob(f"*{ENDING}"))
    try:
        cassette = Cassette.open(SHIPPED / f"{name}{ENDING}" if name in shipped else Path(name))
    except RunError as error:
        raise ModelError(f"{spec}: {error}; ragbed comes with {', '.join(shipped)}") from error
    models: Mapping[str, str] = cassette.about["models"]
    if len(models) != 1:
        raise ModelError(f"{spec}: its calls are of {', '.join(models) or 'no model'}; name a cassette of one model")
    outcomes = {row.call: row.reply or row.failure for row in cassette.rows() if isinstance(row, CallLine)}
    return Recording(next(iter(models.values())), cassette.about["benchmark"]["questions"],
                     cassette.about.get("made_with", {}),
                     {key: outcome for key, outcome in outcomes.items() if outcome is not None})


class RecordedClient(ModelClient):
    """Answers calls as they were answered when they were recorded."""

    def __init__(self, spec: str, settings: ModelSettings) -> None:
        self._recording = load_recording(spec)
        identity = self._recording.identity
        super().__init__(spec, identity, identity, Address("", ""), free_price, settings.calls, settings.temperature,
                         settings.reasoning_effort)

    async def complete(self, action: Generate, *, max_tokens: int, deadline: float | None = None, repeat: int = 0,
                       tell: OnEvent | None = None) -> Completion:
        """Return what was recorded of the call, at no cost; raise CallError as it was recorded, and ReplayMiss where
        nothing was."""
        parameters: dict[str, Any] = self.parameters(action, max_tokens, repeat)
        key = call_key(self.identity, action.messages, parameters, repeat, action.sample)
        match self._recording.outcomes.get(key):
            case Reply() as reply:
                return Completion(reply, 0, 0.0)
            case Failure() as failure:
                raise CallError(failure.message, failure.kind, 0)
        raise ReplayMiss(f"{self.name} holds no reply to this call ({key[:12]}): it answers the questions, settings "
                         "and prompts that it was recorded with; name a live model for others", "replay_miss", 0)
