"""Reasoning strategies: each answers a question."""
