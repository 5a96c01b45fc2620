"""Reasoning strategies: how evidence becomes an answer."""
