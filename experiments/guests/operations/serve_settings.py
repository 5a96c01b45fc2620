"""Settings of a served configuration that do not change what a run measures: a second model and an answer cache."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ragbed.documents.errors import SettingsError
from ragbed.experiments.settings.validation import explain


class ServeSettings(BaseModel):
    """How `ragbed serve` answers. A run does not use these settings.

    Attributes:
        fallback: model that answers if the first model fails, or is slow.
        fallback_after: seconds without any text of the answer after which the first model counts as slow.
        cache: seconds for which the same question gets the stored answer; 0 turns the answer cache off.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    fallback: str | None = Field(default=None, min_length=1)
    fallback_after: float = Field(default=30.0, gt=0)
    cache: float = Field(default=0.0, ge=0, le=7 * 86_400)

    @model_validator(mode="after")
    def _check(self) -> ServeSettings:
        if "fallback_after" in self.model_fields_set and self.fallback is None:
            raise ValueError("fallback_after has no effect without a fallback model; add `fallback`")
        return self

    def merged(self, options: Mapping[str, Any]) -> ServeSettings:
        """Return these settings with those that the command line sets. Raises SettingsError if one has no effect."""
        try:
            return ServeSettings(**(self.model_dump(exclude_unset=True) | dict(options)))
        except ValidationError as error:
            raise SettingsError(explain(error, ServeSettings)) from error
