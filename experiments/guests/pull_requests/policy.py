"""The policy of a gate: what decides, and which verdicts fail a pull request."""
from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ragbed.documents.errors import SettingsError
from ragbed.documents.paths import expand_path
from ragbed.experiments.settings.texts import parse_yaml

State = Literal["worse", "not_compared", "cannot_tell", "better", "equal", "unchanged"]  # the gravest first
Fail = Literal["worse", "cannot_tell", "not_equal", "never"]
FAILING: Mapping[Fail, tuple[State, ...]] = {
    "never": (), "worse": ("worse", "not_compared"), "cannot_tell": ("worse", "not_compared", "cannot_tell"),
    "not_equal": ("worse", "not_compared", "cannot_tell", "better")}


class GatePolicy(BaseModel):
    """A gate's policy.

    Attributes:
        fail: the verdicts with exit status 1.
        margin: a difference up to this size counts as none.
        metric: the metric that decides; by default the headline of HEAD.
        cells: names of the cells to compare; by default all that both sides have.
        race: whether to stop asking a cell once its verdict is clear.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    fail: Fail = "worse"
    margin: float = Field(default=0.03, gt=0, allow_inf_nan=False)
    metric: str | None = None
    cells: tuple[str, ...] = ()
    race: bool = True


def read_policy(path: Path | None, given: Mapping[str, Any]) -> GatePolicy:
    """Return the policy of a YAML file, changed by the given options that are not None. Raises SettingsError if the
    file cannot be read or a value is invalid."""
    content: Any = {}
    if path is not None:
        try:
            content = parse_yaml(expand_path(path).read_text(encoding="utf-8"), str(path)) or {}
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"{path}: cannot be read: {error}") from error
        if not isinstance(content, dict):
            raise SettingsError(f"{path}: expected keys and values, such as fail: worse")
    try:
        return GatePolicy.model_validate({**content, **{key: value for key, value in given.items()
                                                        if value is not None}})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise SettingsError(f"{path or 'gate'}: {'.'.join(map(str, first['loc']))}: {first['msg']}; the keys are "
                            f"{', '.join(GatePolicy.model_fields)}") from error
