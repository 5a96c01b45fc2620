"""ragbed: strategies. Recipes that answer a question, and recipes that gather its evidence. The public names stand in
`__init__.pyi`; each is loaded when it is first used."""
from ragbed.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
