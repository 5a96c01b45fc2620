"""Judges: what grades an answer. The union of their settings is the registry."""
from __future__ import annotations

from typing import Annotated

from pydantic import Field

from experiments.judges.base import Graded, Judge, Judged, Judging, ask_judge, graded_of
from experiments.judges.lexical import Lexical
from experiments.judges.model import ModelJudge
from experiments.judges.sentence_support import (
    Claims,
    LexicalSupport,
    ModelSupport,
    NliSupport,
    SupportCheck,
    SupportSettings,
    ask_support,
    check_named,
    claims_of,
)

JudgeSettings = Annotated[Lexical | ModelJudge, Field(discriminator="kind")]

__all__ = ["Claims", "Graded", "Judge", "JudgeSettings", "Judged", "Judging", "Lexical", "LexicalSupport", "ModelJudge",
           "ModelSupport", "NliSupport", "SupportCheck", "SupportSettings", "ask_judge", "ask_support",
           "check_named", "claims_of", "graded_of"]
