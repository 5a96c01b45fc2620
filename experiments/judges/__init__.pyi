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
from .sentence_support import (
    ModelSupport,
    SupportCheck,
    SupportSettings,
    ask_support,
    extract_claims,
)

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
    "model_of",
]
