"""ragbed: strategies."""

__distribution__ = "ragbed"
