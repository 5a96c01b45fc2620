"""Figures in words, as terminal, notes and report show them."""
from __future__ import annotations


def price(dollars: float | None, unknown: str = "an unknown price") -> str:
    """A price as it is shown; `unknown` stands for None."""
    return unknown if dollars is None else f"${dollars:.4f}" if dollars else "$0"


def two(value: float) -> str:
    """A figure with two digits, in which nothing is less than nothing: no `-0.00`."""
    return f"{value:z.2f}"
