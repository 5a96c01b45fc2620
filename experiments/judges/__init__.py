"""Judges, which grade answers, and checks of what sentences cite."""
from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from ragbed.experiments.judges.base import (
           GradingInput,
           Judge,
           JudgeExchange,
           JudgeResult,
           ask_judge,
           grading_input,
           judge_by_name,
)
from ragbed.experiments.judges.lexical import Lexical
from ragbed.experiments.judges.model import ModelJudge
from ragbed.experiments.judges.sentence_support import (
           ModelSupport,
           SupportCheck,
           SupportSettings,
           ask_support,
           extract_claims,
)

JudgeSettings = Annotated[Lexical | ModelJudge, Field(discriminator="kind"), BeforeValidator(judge_by_name)]

__all__ = [
           "GradingInput",
           "Judge",
           "JudgeExchange",
           "JudgeResult",
           "JudgeSettings",
           "Lexical",
           "ModelJudge",
           "ModelSupport",
           "SupportCheck",
           "SupportSettings",
           "ask_judge",
           "ask_support",
           "extract_claims",
           "grading_input",
]
