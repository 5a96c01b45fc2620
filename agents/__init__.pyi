from .assistant import Assistant, AssistantSettings
from .database import Database
from .graph import State, build_graph
from .journal import Journal, Model
from .models import open_model
from .scripted import Scripted, drive
from .settings import CallLimits, Context, Limits, LocalSettings, ModelSettings, Price
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
    called,
    error_of,
    failure_of,
    outcome_to_json,
    reply_from_json,
    unasked,
    wire_message,
    without_key,
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
    "build_graph",
    "called",
    "drive",
    "error_of",
    "failure_of",
    "open_model",
    "outcome_to_json",
    "reply_from_json",
    "unasked",
    "wire_message",
    "without_key",
]
