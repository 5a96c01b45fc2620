"""Retrieval: building an index of chunks, and retrievers that search it. Public names are in `__init__.pyi`; each is
loaded when it is first used."""
from ragbed.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
