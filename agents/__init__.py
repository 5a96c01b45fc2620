"""ragbed: agents."""

from typing import TYPE_CHECKING, Any

__distribution__ = "ragbed"
__all__ = ["Assistant", "AssistantSettings", "Scripted", "drive"]

if TYPE_CHECKING:
    from agents.assistant import Assistant, AssistantSettings
    from agents.scripted import Scripted, drive


def __getattr__(name: str) -> Any:
    """`from agents import Assistant` without paying for LangGraph on every import of the package."""
    if name in __all__:
        from importlib import import_module
        return getattr(import_module("agents.scripted" if name in ("Scripted", "drive") else "agents.assistant"), name)
    raise AttributeError(f"module 'agents' has no attribute {name!r}")
