"""How evidence is gathered."""

from strategies.retrieval.adaptive import adaptive
from strategies.retrieval.corrective import corrective
from strategies.retrieval.decompose import decompose
from strategies.retrieval.hyde import hyde
from strategies.retrieval.iterative import iterative
from strategies.retrieval.multi_query import multi_query
from strategies.retrieval.none import none
from strategies.retrieval.once import once
from strategies.retrieval.step_back import step_back

__all__ = ["adaptive", "corrective", "decompose", "hyde", "iterative", "multi_query", "none", "once", "step_back"]
