from .agents import Assistant, AssistantSettings, Scripted
from .documents import SettingsError
from .experiments import Question, Record, Run, check_settings, open_run, read_settings, run
from .experiments.guests.conformance.checking import check_strategy
from .retrieval import Hit
from .strategies import Generate, Search, Task

__all__ = [
    "Assistant",
    "AssistantSettings",
    "Generate",
    "Hit",
    "Question",
    "Record",
    "Run",
    "Scripted",
    "Search",
    "SettingsError",
    "Task",
    "check_settings",
    "check_strategy",
    "open_run",
    "read_settings",
    "run",
]
