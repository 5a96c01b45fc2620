"""Parse files into documents, and cut documents into chunks.

`__init__.pyi` lists the public names. Each is imported on first use, since parsing processes need few of them.
"""
from ragbed.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
