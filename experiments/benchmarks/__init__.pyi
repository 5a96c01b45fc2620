from .base import About, Selection
from .crest import Crest
from .detectiveqa import DetectiveQa
from .jsonl import Demo, OwnQuestions, load_demo
from .mdbench import Mdbench
from .mrceval import Mrceval
from .mrke import Mrke
from .registry import BENCHMARKS, BenchmarkSettings

__all__ = [
    "BENCHMARKS",
    "About",
    "BenchmarkSettings",
    "Crest",
    "Demo",
    "DetectiveQa",
    "Mdbench",
    "Mrceval",
    "Mrke",
    "OwnQuestions",
    "Selection",
    "load_demo",
]
