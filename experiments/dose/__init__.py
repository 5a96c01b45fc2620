"""Dose and response: what more, or harder, negatives do to the answers."""
from experiments.dose.figures import dose_of, fewer_of
from experiments.dose.groups import Group, groups_of, labels
from experiments.dose.of_run import dose_of_run

__all__ = ["Group", "dose_of", "dose_of_run", "fewer_of", "groups_of", "labels"]
