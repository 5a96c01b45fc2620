"""Evaluate arithmetic that a model wrote, exactly and within bounds. Nothing is run as code."""

from ragbed.experiments.guests.more_strategies.arithmetic.expressions import ProgramLine, evaluate, run
from ragbed.experiments.guests.more_strategies.arithmetic.functions import FUNCTIONS, Unworkable, Value, shown_value

__all__ = ["FUNCTIONS", "ProgramLine", "Unworkable", "Value", "evaluate", "run", "shown_value"]
