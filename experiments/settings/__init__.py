"""Read and check the settings of a run, and expand them into a matrix. Loaded only for runs; `search` and `ask` have
none."""
from ragbed.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
