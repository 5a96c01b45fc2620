"""The form of a question that was saved. A stranger may have written it, so all of it is looked at before any of it is
taken up."""
from __future__ import annotations

import json
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator


def _encodable(value: Any) -> Any:
    """The value; ValueError where it holds halves of surrogate pairs, which nothing could write."""
    json.dumps(value, ensure_ascii=False).encode()
    return value


Text = Annotated[str, AfterValidator(_encodable)]
Count = Annotated[int, Field(ge=0, le=10**12)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Usage(_Part):
    prompt_tokens: Count
    completion_tokens: Count
    cached_tokens: Count
    calls: Count
    price: Amount | None


class _Reply(_Part):
    text: Text
    reasoning: Text
    tool_calls: list[Annotated[dict[str, Any], AfterValidator(_encodable)]]
    parsed: Any
    usage: _Usage
    finish_reason: Text


class _Failure(_Part):
    kind: Text
    message: Text


class _Call(_Part):
    key: Text
    attempts: Count
    replayed: bool


class _Replied(_Call):
    reply: _Reply


class _Failed(_Call):
    failure: _Failure


class _Lost(_Part):
    """A step whose searches failed together."""

    actions: Annotated[list[Text], Field(min_length=1)]
    lost: _Failure
    seconds: Amount


class _Step(_Part):
    """A step, with a result for each of its actions."""

    actions: Annotated[list[Text], Field(min_length=1)]
    seconds: Amount

    @model_validator(mode="after")
    def _one_for_each(self) -> Self:
        if any(len(self.actions) != len(results) for name, results in self if name in ("found", "asked")):
            raise ValueError("expected a result for each action")
        return self


class _Found(_Step):
    found: list[list[Text]]


class _Asked(_Step):
    asked: list[_Replied | _Failed]


class _Made(_Part):
    settings: dict[str, Any]
    model: Text
    index: Text
    strategies: Text


class _State(_Part):
    id: Text
    made: _Made
    question: Text
    options: list[Annotated[list[Text], Field(min_length=2, max_length=2)]]
    results: list[_Found | _Asked | _Lost]
    answer: dict[str, Any] = {}


def misfit(state: Any) -> str:
    """Where a state has not the form of `agents.graph.State` with its mark, as in `results.0`; empty where it has."""
    try:
        _State.model_validate(state)
    except ValidationError as error:
        where = error.errors(include_url=False, include_input=False)[0]["loc"]
        return ".".join(str(part) for part in where if not str(part).startswith("_")) or "all of it"
    return ""
