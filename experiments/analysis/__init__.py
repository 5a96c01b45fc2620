"""Analyses: each a function from a finished run to views of it."""
