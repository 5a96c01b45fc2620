"""Converters: public data of the same capability, in the benchmarks' published record formats. One file each."""
from __future__ import annotations

from collections.abc import Mapping

from experiments.converters import crest, detectiveqa, mrceval, mrke
from experiments.converters.conversion import Converter, Draw, Sources, convert

CONVERTERS: Mapping[str, Converter] = {
    "crest": crest.CONVERTER, "mrceval": mrceval.CONVERTER, "detectiveqa": detectiveqa.CONVERTER,
    "mrke": mrke.CONVERTER}

__all__ = ["CONVERTERS", "Converter", "Draw", "Sources", "convert"]
