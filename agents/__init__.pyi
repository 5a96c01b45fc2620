from .assistant import Assistant, AssistantSettings
from .database import Database
from .graph import State, build_graph
from .journal import Journal, Model
from .model_settings import CallLimits, Context, Limits, LocalSettings, ModelSettings, Price
from .models import open_model
from .scripted import Scripted, drive
from .types import (
    OUTCOMES,
    Answer,
    CallOutcome,
    Cost,
    DecisionStep,
    GenerateStep,
    Outcome,
    SearchStep,
    Step,
    ToolStep,
    describe_tool_call,
    error_from_failure,
    failed_answer,
    failure_from_error,
    message_to_json,
    outcome_to_json,
    redact_reply,
    reply_from_json,
)

__all__ = [
    "OUTCOMES",
    "Answer",
    "Assistant",
    "AssistantSettings",
    "CallLimits",
    "CallOutcome",
    "Context",
    "Cost",
    "Database",
    "DecisionStep",
    "GenerateStep",
    "Journal",
    "Limits",
    "LocalSettings",
    "Model",
    "ModelSettings",
    "Outcome",
    "Price",
    "Scripted",
    "SearchStep",
    "State",
    "Step",
    "ToolStep",
    "build_graph",
    "describe_tool_call",
    "drive",
    "error_from_failure",
    "failed_answer",
    "failure_from_error",
    "message_to_json",
    "open_model",
    "outcome_to_json",
    "redact_reply",
    "reply_from_json",
]
