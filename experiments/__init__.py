"""ragbed: experiments. In Python: `from experiments import open_run, run`."""
from typing import TYPE_CHECKING, Any

__distribution__ = "ragbed"
__all__ = ["Run", "open_run", "run"]

if TYPE_CHECKING:
    from experiments.api import Run, open_run, run


def __getattr__(name: str) -> Any:
    """Load the front door when it is first used: the command line imports this package and needs it fast."""
    if name in __all__:
        from experiments import api
        return getattr(api, name)
    raise AttributeError(f"module 'experiments' has no attribute {name!r}")
