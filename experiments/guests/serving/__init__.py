"""Serve the configurations of a run: chat completions and responses APIs, a chat page, threads, feedback and A/B tests.
"""
