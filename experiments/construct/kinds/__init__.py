"""The kinds of constructions: each file reads like its paper's section."""
from __future__ import annotations

from collections.abc import Mapping

from experiments.construct.item import Kind
from experiments.construct.kinds.crest import CREST
from experiments.construct.kinds.detectiveqa import DETECTIVEQA

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (CREST, DETECTIVEQA)}
