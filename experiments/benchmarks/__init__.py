"""Benchmarks, one loader each. `__init__.pyi` lists the public names; each is imported on first use."""
from ragbed.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
