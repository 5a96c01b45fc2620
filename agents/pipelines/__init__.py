"""Pipelines of others, each in the place of a model: reached over HTTP, in Python, or as a command."""
