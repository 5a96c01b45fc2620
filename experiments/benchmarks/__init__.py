"""Benchmarks: one loader each. The union of their settings is the registry."""
from __future__ import annotations

from typing import Annotated

from pydantic import Field

from experiments.benchmarks.crest import Crest
from experiments.benchmarks.demo import Demo, load_demo
from experiments.benchmarks.jsonl import OwnQuestions
from experiments.benchmarks.selection import Selection

BenchmarkSettings = Annotated[Crest | Demo | OwnQuestions, Field(discriminator="kind")]

__all__ = ["BenchmarkSettings", "Crest", "Demo", "OwnQuestions", "Selection", "load_demo"]
