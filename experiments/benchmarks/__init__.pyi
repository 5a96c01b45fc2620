from .base import About, Selection
from .jsonl import Demo, OwnQuestions, load_demo
from .registry import BENCHMARKS, BenchmarkSettings

__all__ = [
    "BENCHMARKS",
    "About",
    "BenchmarkSettings",
    "Demo",
    "OwnQuestions",
    "Selection",
    "load_demo",
]
