"""ragbed: experiments."""

__distribution__ = "ragbed"
