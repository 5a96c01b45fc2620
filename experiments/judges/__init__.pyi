from .judge import (
    GradingInput,
    Judge,
    JudgeExchange,
    JudgeResult,
    Lexical,
    ask_judge,
    grading_input,
    model_of,
)
from .model_judge import JudgeSettings, ModelJudge

__all__ = [
    "GradingInput",
    "Judge",
    "JudgeExchange",
    "JudgeResult",
    "JudgeSettings",
    "Lexical",
    "ModelJudge",
    "ask_judge",
    "grading_input",
    "model_of",
]
