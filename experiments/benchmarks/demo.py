"""The demo set: twelve questions over small pages, shipped in the package.

Cut from HotpotQA (CC BY-SA 4.0), ClapNQ (Apache-2.0) and TabFact (MIT) by `bench/cut_demo.py`;
`data/demo/ATTRIBUTION.md` says for every page and question where it is from. Four of the twelve are unanswerable: their
gold page was left out.
"""
from __future__ import annotations

from pathlib import Path
from typing import Literal

from experiments.benchmarks.about import About
from experiments.benchmarks.jsonl import read_questions
from experiments.benchmarks.selection import Selection
from experiments.question import Benchmark

FOLDER = Path(__file__).parent.parent / "data" / "demo"


class Demo(Selection):
    """The bundled demo set."""

    about = About(
        paper="cut from HotpotQA (2018), ClapNQ (2024) and TabFact (2020)",
        licence="CC BY-SA 4.0, Apache-2.0 and MIT, by part", size="12 questions over 33 pages", get="bundled",
        settings={"conditions": "retrieved"})

    kind: Literal["demo"] = "demo"

    def load(self) -> Benchmark:
        """The chosen questions."""
        return self.select(load_demo())


def load_demo() -> Benchmark:
    """All of the demo set: `corpus` is its folder of pages, gold names pages by their path in it."""
    return Benchmark("demo", read_questions(FOLDER / "questions.jsonl"), corpus=str(FOLDER / "pages"))
