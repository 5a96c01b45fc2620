"""Dose and response: what more, or harder, negatives do to the answers."""
from experiments.dose.figures import dose_of
from experiments.dose.groups import Group, groups_of, labels
from experiments.dose.of_run import dose_of_run
from experiments.dose.reached import Reached, reached_of

__all__ = ["Group", "Reached", "dose_of", "dose_of_run", "groups_of", "labels", "reached_of"]
