"""Parsers: one file for each type of document."""
