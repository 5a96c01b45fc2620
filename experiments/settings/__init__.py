"""The settings of a run: read, checked, and made into a matrix. Loaded when used: `search` and `ask` need no run."""
from ragbed.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
