"""Retrieval strategies: each gathers evidence for a query."""
