"""Judges of your own: a rubric for a model, or a Python function; and a pairwise comparison of two cells."""
from importlib import resources

PROMPTS = resources.files(__name__).joinpath("prompts")
