"""Benchmarks: one loader each. The union of their settings is the registry."""
from __future__ import annotations

from typing import Annotated, get_args

from pydantic import Field

from experiments.benchmarks.base import About, Selection
from experiments.benchmarks.beir import Beir
from experiments.benchmarks.chunking_eval import ChunkingEval
from experiments.benchmarks.clapnq import ClapNq
from experiments.benchmarks.computed import Computed
from experiments.benchmarks.crest import Crest
from experiments.benchmarks.detectiveqa import DetectiveQa
from experiments.benchmarks.financebench import FinanceBench
from experiments.benchmarks.hotpotqa import HotpotQa
from experiments.benchmarks.injection import Injection
from experiments.benchmarks.jsonl import Demo, OwnQuestions, load_demo
from experiments.benchmarks.korean_rag import KoreanRag
from experiments.benchmarks.mdbench import Mdbench
from experiments.benchmarks.mined import MinedBenchmark
from experiments.benchmarks.morehopqa import MoreHopQa
from experiments.benchmarks.mrceval import Mrceval
from experiments.benchmarks.mrke import Mrke
from experiments.benchmarks.mtrag import Mtrag
from experiments.benchmarks.multihop_rag import MultiHopRag
from experiments.benchmarks.musique import Musique
from experiments.benchmarks.rgb import Rgb
from experiments.benchmarks.squad2 import Squad2
from experiments.benchmarks.trec import Trec
from experiments.benchmarks.two_wiki import TwoWiki

BenchmarkSettings = Annotated[
    Crest | Mrceval | Mdbench | DetectiveQa | Mrke |
    HotpotQa | Musique | TwoWiki | MoreHopQa | MultiHopRag | ClapNq | Squad2 | Rgb | FinanceBench | KoreanRag | Mtrag |
    Beir | Trec | ChunkingEval | MinedBenchmark | Injection | Computed | Demo | OwnQuestions,
    Field(discriminator="kind")]
BENCHMARKS: dict[str, type[Selection]] = {
    kind.model_fields["kind"].default: kind for kind in get_args(get_args(BenchmarkSettings)[0])}

__all__ = [
    "BENCHMARKS", "About", "Beir", "BenchmarkSettings", "ChunkingEval", "ClapNq", "Computed", "Crest", "Demo",
    "DetectiveQa", "FinanceBench", "HotpotQa", "Injection", "KoreanRag", "Mdbench", "MinedBenchmark", "MoreHopQa",
    "Mrceval", "Mrke", "Mtrag", "MultiHopRag", "Musique", "OwnQuestions", "Rgb", "Selection", "Squad2", "Trec",
    "TwoWiki", "load_demo"]
