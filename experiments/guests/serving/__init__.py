"""Serve the configurations of a run: chat completions and responses APIs, a chat page, and threads."""
