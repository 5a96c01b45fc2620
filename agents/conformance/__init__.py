"""Whether a strategy keeps to what every strategy promises: it is played over many situations and stand-ins for a
model, in processes of its own, and each promise is a check with one line that says where it is broken."""

from agents.conformance.checking import PROMISES, Verdict, check, check_all

__all__ = ["PROMISES", "Verdict", "check", "check_all"]
