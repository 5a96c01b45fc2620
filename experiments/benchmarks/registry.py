"""The benchmarks that settings can name: ragbed's own and those of guests."""
from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Union

from pydantic import Field

from ragbed.experiments.benchmarks.base import Selection
from ragbed.experiments.benchmarks.beir import Beir
from ragbed.experiments.benchmarks.chunking_eval import ChunkingEval
from ragbed.experiments.benchmarks.clapnq import ClapNq
from ragbed.experiments.benchmarks.computed import Computed
from ragbed.experiments.benchmarks.crest import Crest
from ragbed.experiments.benchmarks.detectiveqa import DetectiveQa
from ragbed.experiments.benchmarks.financebench import FinanceBench
from ragbed.experiments.benchmarks.hotpotqa import HotpotQa
from ragbed.experiments.benchmarks.injection import Injection
from ragbed.experiments.benchmarks.jsonl import Demo, OwnQuestions
from ragbed.experiments.benchmarks.korean_rag import KoreanRag
from ragbed.experiments.benchmarks.mdbench import Mdbench
from ragbed.experiments.benchmarks.morehopqa import MoreHopQa
from ragbed.experiments.benchmarks.mrceval import Mrceval
from ragbed.experiments.benchmarks.mrke import Mrke
from ragbed.experiments.benchmarks.mtrag import Mtrag
from ragbed.experiments.benchmarks.multihop_rag import MultiHopRag
from ragbed.experiments.benchmarks.musique import Musique
from ragbed.experiments.benchmarks.rgb import Rgb
from ragbed.experiments.benchmarks.squad2 import Squad2
from ragbed.experiments.benchmarks.trec import Trec
from ragbed.experiments.benchmarks.two_wiki import TwoWiki
from ragbed.guests import load_kinds

_OWN: tuple[type[Selection], ...] = (
    Crest, Mrceval, Mdbench, DetectiveQa, Mrke, HotpotQa, Musique, TwoWiki, MoreHopQa, MultiHopRag, ClapNq, Squad2, Rgb,
    FinanceBench, KoreanRag, Mtrag, Beir, Trec, ChunkingEval, Injection, Computed, Demo, OwnQuestions)


def _with_guests() -> dict[str, type[Selection]]:
    own = {settings.model_fields["kind"].default: settings for settings in _OWN}
    return own | load_kinds("benchmark", Selection, own)


BENCHMARKS: dict[str, type[Selection]] = _with_guests()
"""The class of settings of each benchmark, by the `kind` that a run's settings name."""

if TYPE_CHECKING:
    BenchmarkSettings = Selection
else:
    BenchmarkSettings = Annotated[Union[tuple(BENCHMARKS.values())], Field(discriminator="kind")]  # noqa: UP007
