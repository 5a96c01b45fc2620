"""Arithmetic that a model wrote, worked out exactly and within bounds: nothing of it is ever run as code."""

from strategies.arithmetic.expressions import evaluate
from strategies.arithmetic.functions import FUNCTIONS, Unworkable, Value, shown_value
from strategies.arithmetic.programs import ProgramLine, run

__all__ = ["FUNCTIONS", "ProgramLine", "Unworkable", "Value", "evaluate", "run", "shown_value"]
