"""Build an index of chunks, and search it with retrievers. Public names are in `__init__.pyi`; each is imported on
first use."""
from ragbed.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
