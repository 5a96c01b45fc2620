"""Loaders of public benchmarks and data sets in their published formats."""
