"""ragbed: agents."""

__distribution__ = "ragbed"
