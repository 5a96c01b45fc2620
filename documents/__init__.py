"""ragbed: documents. Files and pages become documents, documents become chunks. The public names stand in
`__init__.pyi`; each is loaded when it is first used: processes that parse need few of them."""
import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
