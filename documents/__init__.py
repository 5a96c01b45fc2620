"""ragbed: documents."""

__distribution__ = "ragbed"
