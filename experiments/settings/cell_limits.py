"""What all questions of one cell may use together."""
from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class CellLimits(BaseModel):
    """What all questions of one cell may use together, so that every cell has the same to spend; `limits` says what one
    question may use. They are asked one after the other, each of what is left, and those that nothing is left for end
    with the outcome `budget`. What judges and sub-questions use does not count.

    Attributes:
        tokens: of prompts and replies together; a question whose calls use more than is left ends without an answer.
        seconds: of the questions' own time, as it was measured: a part that is not the same twice.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    calls: int | None = Field(default=None, ge=1)
    tokens: int | None = Field(default=None, ge=1)
    searches: int | None = Field(default=None, ge=1)
    seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)

    @property
    def given(self) -> dict[str, float]:
        """The parts that are limited."""
        return {name: value for name in type(self).model_fields if (value := getattr(self, name)) is not None}
