"""Checks that a strategy keeps what every strategy promises: it is played in many situations, with models that answer,
refuse or fail. Each promise is a check with one line that says where it is broken.
"""

from agents.conformance.checking import PROMISES, PromiseVerdict, check, check_all

__all__ = ["PROMISES", "PromiseVerdict", "check", "check_all"]
