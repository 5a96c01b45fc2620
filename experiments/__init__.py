"""ragbed: experiments. The public names are listed in `__init__.pyi`; each is imported on first use."""
from ragbed.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
