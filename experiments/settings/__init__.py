"""The settings of a run: read, checked, and made into a matrix. Loaded when used: `search` and `ask` need no run."""
import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
