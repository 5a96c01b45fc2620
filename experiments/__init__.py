"""ragbed: experiments. In Python: `from experiments import open_run, run`. The public names stand in `__init__.pyi`;
each is loaded when it is first used."""
import lazy_loader

__distribution__ = "ragbed"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
