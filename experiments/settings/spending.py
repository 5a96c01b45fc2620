"""What all questions of one cell may use together, and what may be spent on a run before it stops, resumably."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ragbed.documents.errors import SettingsError

_FORM = "expected dollars=N, tokens=N or seconds=N; none in place of a number lifts it"


class Budget(BaseModel):
    """What a run may spend. When it is spent no further question begins, those under way end, and the run stops; the
    same command with a larger budget continues it. So a budget is passed by at most what the questions under way still
    ask for: `concurrency` of every model. A replay spends nothing and has no budget. Where a file of settings names
    several benchmarks, each is a run, with this budget of its own.

    Attributes:
        dollars: in US dollars, for all calls that the run's journal holds, the judge's and those of earlier sessions
            included. The price of every model has to be known: `calls.prices` gives those that no table lists.
        tokens: of prompts and replies together, counted likewise; by an estimate where the server does not say.
        seconds: of one session, from its start; questions under way are then given up, and their finished calls kept.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    dollars: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    tokens: int | None = Field(default=None, ge=1)
    seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)

    def shared(self, share: float) -> Budget:
        """Return the budget of a part of the run that goes on beside the others: its share, and as long a time."""
        return self.model_copy(update={"dollars": None if self.dollars is None else self.dollars * share,
                                       "tokens": None if self.tokens is None else int(self.tokens * share)})


def changed(budget: Budget, texts: Sequence[str]) -> Budget:
    """Return the budget with the parts that texts of the form `dollars=5` give it; raise SettingsError with one line
    that names the text."""
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


def shown(name: str, amount: float) -> str:
    """Return an amount of a budget's part, in words."""
    if name == "dollars":
        return f"${amount:.2g}" if 0 < amount < 0.01 else f"${amount:,.4f}".removesuffix("00")
    if amount == round(amount) or amount >= 100:
        return f"{amount:,.0f} {name}"
    return f"{amount:.1f} {name}" if amount >= 1 else f"{amount:.2g} {name}"
