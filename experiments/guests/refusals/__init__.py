"""Recognise refusals in any wording: rules for ten languages, and a model for replies that they cannot decide."""
from importlib import resources

PROMPTS = resources.files(__name__).joinpath("prompts")
