"""How evidence is gathered."""

from strategies.retrieval.none import none
from strategies.retrieval.once import once

__all__ = ["none", "once"]
