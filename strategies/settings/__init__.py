"""Strategies as settings name them: their parameters, their files, and what is kept of both."""
