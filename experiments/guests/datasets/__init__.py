"""Loaders of public data sets in their published formats. The five papers' benchmarks are in the core."""
