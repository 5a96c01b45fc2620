"""Benchmarks: one loader each. The union of their settings is the registry."""
from __future__ import annotations

from typing import Annotated, get_args

from pydantic import Field

from ragbed.experiments.benchmarks.base import About, Selection
from ragbed.experiments.benchmarks.beir import Beir
from ragbed.experiments.benchmarks.chunking_eval import ChunkingEval
from ragbed.experiments.benchmarks.clapnq import ClapNq
from ragbed.experiments.benchmarks.computed import Computed
from ragbed.experiments.benchmarks.crest import Crest
from ragbed.experiments.benchmarks.detectiveqa import DetectiveQa
from ragbed.experiments.benchmarks.financebench import FinanceBench
from ragbed.experiments.benchmarks.hotpotqa import HotpotQa
from ragbed.experiments.benchmarks.injection import Injection
from ragbed.experiments.benchmarks.jsonl import Demo, OwnQuestions, load_demo
from ragbed.experiments.benchmarks.korean_rag import KoreanRag
from ragbed.experiments.benchmarks.mdbench import Mdbench
from ragbed.experiments.benchmarks.mined import MinedBenchmark
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
