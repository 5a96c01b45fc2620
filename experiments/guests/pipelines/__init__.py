"""Pipelines: a run asks a user's own RAG system instead of a model, or reads answers from another tool's file."""
