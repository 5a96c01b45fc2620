"""What every way of answering reaches with the same budget for each question."""

from experiments.budgets.figures import budgets_of_run

__all__ = ["budgets_of_run"]
