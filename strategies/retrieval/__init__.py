"""Retrieval strategies: how evidence is gathered."""
