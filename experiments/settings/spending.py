"""The budget of a run."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ragbed.documents.errors import SettingsError

_FORM = "expected dollars=N, tokens=N or seconds=N; N may be `none`"


class Budget(BaseModel):
    """What a run may spend. Once the budget is spent, the questions in progress finish, and the run stops. So a run
    exceeds its budget by at most `concurrency` questions per model. The same command with a larger budget continues the
    run. A replay costs nothing. If the settings list several benchmarks, each run has this budget.

    Attributes:
        dollars: US dollars for all calls in the run's journal, including those of the judge and of earlier sessions.
            Every model needs a price, which `calls.prices` can give.
        tokens: tokens of prompts and replies together. They are estimated if the server does not report them.
        seconds: seconds per session. When they are over, questions in progress are cancelled, but finished calls are
            kept.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    dollars: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    tokens: int | None = Field(default=None, ge=1)
    seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)

    def scale(self, share: float) -> Budget:
        """Return the budget of a shard: its share of dollars and tokens, and all of the seconds."""
        return self.model_copy(update={"dollars": None if self.dollars is None else self.dollars * share,
                                       "tokens": None if self.tokens is None else int(self.tokens * share)})


def update_budget(budget: Budget, texts: Sequence[str]) -> Budget:
    """Apply changes such as `dollars=5` or `tokens=none` to a budget. Raises SettingsError if a change is invalid."""
    fields: dict[str, Any] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if name not in Budget.model_fields or not equals:
            raise SettingsError(f"--budget {text!r}: {_FORM}")
        if name in fields:
            raise SettingsError(f"--budget gives {name} twice; give it once")
        fields[name] = None if value == "none" else value
    try:
        return Budget.model_validate({**budget.model_dump(), **fields})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise SettingsError(f"--budget {first['loc'][0]}={first['input']}: {first['msg']}; {_FORM}") from error


def format_amount(name: str, amount: float) -> str:
    """Return an amount of dollars, tokens or seconds as text, such as `$0.50` or `1,200 tokens`."""
    if name == "dollars":
        return f"${amount:.2g}" if 0 < amount < 0.01 else f"${amount:,.4f}".removesuffix("00")
    if amount == round(amount) or amount >= 100:
        return f"{amount:,.0f} {name}"
    return f"{amount:.1f} {name}" if amount >= 1 else f"{amount:.2g} {name}"
