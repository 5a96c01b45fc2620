"""What every way of answering reaches with the same budget for each question."""

from experiments.budgets.figures import budgets_of_run
from experiments.budgets.within import UNITS, Unit

__all__ = ["UNITS", "Unit", "budgets_of_run"]
