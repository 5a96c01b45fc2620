"""Run strategies against models with a LangGraph state machine, and store their calls and searches. Public names are in
`__init__.pyi`; each is imported on first use."""
from ragbed.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
