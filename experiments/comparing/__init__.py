"""Comparing runs, and the cells of a run, question by question."""
from experiments.comparing.findings import Finding, Findings, find
from experiments.comparing.gate import Gate
from experiments.comparing.side import Side, read_side

__all__ = ["Finding", "Findings", "Gate", "Side", "find", "read_side"]
