"""The kinds of constructions: each file reads like its paper's section."""
from __future__ import annotations

from collections.abc import Mapping

from experiments.construct.item import Kind
from experiments.construct.kinds.computed import COMPUTED
from experiments.construct.kinds.crest import CREST
from experiments.construct.kinds.detectiveqa import DETECTIVEQA
from experiments.construct.kinds.mdbench import MDBENCH
from experiments.construct.kinds.mrceval import MRCEVAL
from experiments.construct.kinds.mrke import MRKE
from experiments.construct.kinds.twins import TWINS

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (CREST, MDBENCH, MRKE, MRCEVAL, DETECTIVEQA, COMPUTED)}
OF_BENCHMARKS: Mapping[str, Kind] = {kind.name: kind for kind in (TWINS,)}
"""Those that make items in another way where they are made of a benchmark's questions."""
