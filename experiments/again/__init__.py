"""A finished run computed again: read, scored, verified."""
