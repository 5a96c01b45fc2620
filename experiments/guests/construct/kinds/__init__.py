"""The kinds of constructions. Each file follows its paper's section."""
from __future__ import annotations

from collections.abc import Mapping

from ragbed.experiments.guests.construct.kinds.computed import COMPUTED
from ragbed.experiments.guests.construct.kinds.crest import CREST
from ragbed.experiments.guests.construct.kinds.detectiveqa import DETECTIVEQA
from ragbed.experiments.guests.construct.kinds.mdbench import MDBENCH
from ragbed.experiments.guests.construct.kinds.mrceval import MRCEVAL
from ragbed.experiments.guests.construct.kinds.mrke import MRKE, TWINS
from ragbed.experiments.guests.construct.stages import Kind

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (CREST, MDBENCH, MRKE, MRCEVAL, DETECTIVEQA, COMPUTED)}
BENCHMARK_KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (TWINS,)}
"""Kinds that have other stages if they start from a benchmark's questions."""
