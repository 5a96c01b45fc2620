"""Read and check the settings of a run, and expand them into a matrix. `search` and `ask` do not import this."""
from ragbed.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
