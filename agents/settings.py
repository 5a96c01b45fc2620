"""Settings of model calls and of the local server."""
from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class CallLimits(BaseModel):
    """What one model call may take.

    Attributes:
        seconds: deadline of one call with all its attempts, from the moment that it has a place.
        attempts: requests sent before a failure is final.
        concurrency: calls at once to one model.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    seconds: float = Field(default=120.0, gt=0)
    attempts: int = Field(default=5, ge=1)
    concurrency: int = Field(default=16, ge=1)


class LocalSettings(BaseModel):
    """How a local model is served.

    Attributes:
        context: tokens that prompt and reply may have together.
        threads: None means one fewer than the cores.
        start_seconds: how long loading may take.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    context: int = Field(default=8192, ge=256)
    threads: int | None = Field(default=None, ge=1)
    start_seconds: float = Field(default=180.0, gt=0)


class ModelSettings(BaseModel):
    """What every call is sent with, its limits, and how a local model is served. The judge's calls are included.

    Attributes:
        temperature: where the strategy names none; None sends none, as many reasoning models demand.
        reasoning_effort: sent as it is, where given; the server knows the words.
        context: tokens that prompt and reply may have together in a model that is served elsewhere; what cannot fit
            is not sent. None where it is unknown: the server says so itself.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    temperature: float | None = Field(default=0.0, ge=0, allow_inf_nan=False)
    reasoning_effort: str | None = Field(default=None, min_length=1)
    context: int | None = Field(default=None, ge=256)
    calls: CallLimits = CallLimits()
    local: LocalSettings = LocalSettings()


class Limits(BaseModel):
    """What one question may use. A recipe that asks for more ends with the outcome `budget` or `timeout`.

    Attributes:
        tokens: of prompts and replies together; a question that has used them makes no further call.
        seconds: from the question's start to its end.
        max_tokens: of one reply, where the strategy names no number.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    calls: int = Field(default=40, ge=1)
    tokens: int = Field(default=1_000_000, ge=1)
    searches: int = Field(default=40, ge=0)
    seconds: float = Field(default=900.0, gt=0)
    max_tokens: int = Field(default=1024, ge=1)
