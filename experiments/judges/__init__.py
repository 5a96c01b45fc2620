"""Judges, which grade answers. `__init__.pyi` lists the public names."""
from ragbed.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
