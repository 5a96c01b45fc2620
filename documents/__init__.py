"""Parse files into documents, and cut documents into chunks.

`__init__.pyi` lists the public names. They are imported on first use, because parsing processes need only a few.
"""
from ragbed.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
