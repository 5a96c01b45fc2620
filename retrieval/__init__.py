"""Build an index of chunks, and search it with retrievers. `__init__.pyi` lists the public names, which are imported on
first use."""
from ragbed.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
