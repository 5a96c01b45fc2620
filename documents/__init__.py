"""ragbed: documents. Files and pages become documents, documents become chunks. The public names stand in
`__init__.pyi`; each is loaded when it is first used: processes that parse need few of them."""
from ragbed.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
