"""Agents: a model that calls tools in turns, and the strategies that search in one conversation."""
from importlib import resources

PROMPTS = resources.files(__name__).joinpath("prompts")
