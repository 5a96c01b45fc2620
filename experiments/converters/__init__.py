"""Converters: public data of the same capability, in the benchmarks' published record formats. One file each."""
from experiments.converters.catalogue import CONVERTERS, convert
from experiments.converters.conversion import Converter, Draw, Sources

__all__ = ["CONVERTERS", "Converter", "Draw", "Sources", "convert"]
