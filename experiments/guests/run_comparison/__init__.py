"""Compare two runs, or the cells of one, and fail if a condition holds."""
