"""Checks that a strategy keeps what every strategy promises, with a line for each promise that says where it breaks."""

from ragbed.agents.conformance.checking import PROMISES, PromiseVerdict, check, check_all

__all__ = ["PROMISES", "PromiseVerdict", "check", "check_all"]
