"""Pipelines: systems of users, asked the questions of a run instead of a model, and files of answers of other tools."""
