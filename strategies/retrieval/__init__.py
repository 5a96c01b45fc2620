"""Retrieval strategies: gather evidence for a query."""
