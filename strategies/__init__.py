"""Recipes that answer a question, gather its evidence, or rewrite it.

`__init__.pyi` lists the public names. Each is imported on first use.
"""
from ragbed.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
