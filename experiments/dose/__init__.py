"""Dose and response: what more, or harder, negatives do to the answers."""
from experiments.dose.figures import dose_of

__all__ = ["dose_of"]
