"""Reasoning strategies: turn evidence into an answer."""
