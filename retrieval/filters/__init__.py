"""Filters: conditions on chunks that restrict a search."""
