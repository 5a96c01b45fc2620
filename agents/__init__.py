"""ragbed: agents."""

from typing import TYPE_CHECKING, Any

__distribution__ = "ragbed"
__all__ = ["Assistant", "AssistantSettings"]

if TYPE_CHECKING:
    from agents.assistant import Assistant, AssistantSettings


def __getattr__(name: str) -> Any:
    """`from agents import Assistant` without paying for LangGraph on every import of the package."""
    if name in __all__:
        from agents import assistant
        return getattr(assistant, name)
    raise AttributeError(f"module 'agents' has no attribute {name!r}")
