from .base import About, Selection
from .beir import Beir
from .chunking_eval import ChunkingEval
from .clapnq import ClapNq
from .computed import Computed
from .crest import Crest
from .detectiveqa import DetectiveQa
from .financebench import FinanceBench
from .hotpotqa import HotpotQa
from .injection import Injection
from .jsonl import Demo, OwnQuestions, load_demo
from .korean_rag import KoreanRag
from .mdbench import Mdbench
from .morehopqa import MoreHopQa
from .mrceval import Mrceval
from .mrke import Mrke
from .mtrag import Mtrag
from .multihop_rag import MultiHopRag
from .musique import Musique
from .registry import BENCHMARKS, BenchmarkSettings
from .rgb import Rgb
from .squad2 import Squad2
from .trec import Trec
from .two_wiki import TwoWiki

__all__ = [
    "BENCHMARKS",
    "About",
    "Beir",
    "BenchmarkSettings",
    "ChunkingEval",
    "ClapNq",
    "Computed",
    "Crest",
    "Demo",
    "DetectiveQa",
    "FinanceBench",
    "HotpotQa",
    "Injection",
    "KoreanRag",
    "Mdbench",
    "MoreHopQa",
    "Mrceval",
    "Mrke",
    "Mtrag",
    "MultiHopRag",
    "Musique",
    "OwnQuestions",
    "Rgb",
    "Selection",
    "Squad2",
    "Trec",
    "TwoWiki",
    "load_demo",
]
