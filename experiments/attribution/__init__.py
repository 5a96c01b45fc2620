"""Attribution: why each question came out as it did in each cell, told from the conditions of one run alone."""
from experiments.attribution.cases import Cases, cases_of, causes_of
from experiments.attribution.causes import BY_NAME, CAUSES, Cause, cause_of
from experiments.attribution.figures import attribution_of, figures_of
from experiments.attribution.tradeoff import tradeoff_of

__all__ = ["BY_NAME", "CAUSES", "Cases", "Cause", "attribution_of", "cases_of", "cause_of", "causes_of",
           "figures_of", "tradeoff_of"]
