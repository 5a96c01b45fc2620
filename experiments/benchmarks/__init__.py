"""Benchmarks: one loader each. The union of their settings is the registry."""
from __future__ import annotations

from typing import Annotated, get_args

from pydantic import Field

from experiments.benchmarks.about import About
from experiments.benchmarks.crest import Crest
from experiments.benchmarks.demo import Demo, load_demo
from experiments.benchmarks.jsonl import OwnQuestions
from experiments.benchmarks.mdbench import Mdbench
from experiments.benchmarks.mrceval import Mrceval
from experiments.benchmarks.mrke import Mrke
from experiments.benchmarks.selection import Selection

BenchmarkSettings = Annotated[
    Crest | Mrceval | Mdbench | Mrke |
    Demo | OwnQuestions, Field(discriminator="kind")]
BENCHMARKS: dict[str, type[Selection]] = {
    kind.model_fields["kind"].default: kind for kind in get_args(get_args(BenchmarkSettings)[0])}

__all__ = ["BENCHMARKS", "About", "BenchmarkSettings", "Crest", "Demo", "Mdbench", "Mrceval", "Mrke", "OwnQuestions",
           "Selection", "load_demo"]
