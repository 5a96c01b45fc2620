"""Arithmetic that a model wrote, worked out exactly and within bounds: nothing of it is ever run as code."""

from strategies.arithmetic.expressions import evaluate
from strategies.arithmetic.functions import FUNCTIONS, Unworkable, Value, shown_value
from strategies.arithmetic.programs import Line, run

__all__ = ["FUNCTIONS", "Line", "Unworkable", "Value", "evaluate", "run", "shown_value"]
