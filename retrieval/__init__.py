"""ragbed: retrieval."""

__distribution__ = "ragbed"
