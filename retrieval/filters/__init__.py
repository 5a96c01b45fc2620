"""Filters: conditions on what is known of chunks, decided before a search."""
