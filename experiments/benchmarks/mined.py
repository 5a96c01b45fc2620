"""A benchmark whose questions were given hard negatives by `ragbed negatives`.

Everything of a question is as in the benchmark that it was mined from, and answers are scored as there. What was mined
stands in `given`, which it fills up, and in `negatives`; how each was mined, and how hard it is, in `mined`. The
perturbations `negatives@N` and `among@N` take these alone, one of each miner in turn. `manifest.json` says of what they
were mined, with what and by which rules.
"""
from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Literal

from documents.errors import BenchmarkError
from documents.places import local
from experiments.benchmarks.about import About
from experiments.benchmarks.mined_files import MinedManifest, read_benchmark, read_manifest
from experiments.benchmarks.selection import Selection
from experiments.question import Benchmark, Question
from experiments.scheme import Scheme


class Mined(Selection):
    """A benchmark with mined hard negatives.

    Attributes:
        path: the folder that `ragbed negatives` wrote.
    """

    about = About(
        paper="none of its own: that of the benchmark that it was mined from, which manifest.json names",
        licence="as that of the benchmark it was mined from", size="as many questions as were mined for",
        get="a folder written by `ragbed negatives BENCHMARK PATH --per-question N --out DIR`")

    kind: Literal["mined"] = "mined"
    path: str

    def load(self) -> Benchmark:
        """The chosen questions.

        Raises:
            BenchmarkError: the folder is no mined benchmark, or one of its files is missing or damaged.
        """
        folder = local(self.path)
        return self.select(read_benchmark(folder, read_manifest(folder)))

    def scheme_of(self, questions: Collection[Question]) -> Scheme:
        """That of the benchmark it was mined from; its paper's tables are of other evidence, and left out."""
        return replace(source_of(read_manifest(local(self.path))).scheme_of(questions), published=())

    @classmethod
    def run_as(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """As the paper of the benchmark that it was mined from."""
        try:
            manifest = read_manifest(local(str(fields.get("path", ""))))
            return source_of(manifest).run_as(manifest.benchmark)
        except BenchmarkError:
            return super().run_as(fields)  # loading will say what is amiss


def source_of(manifest: MinedManifest) -> Selection:
    """The settings of the benchmark that was mined.

    Raises:
        BenchmarkError: this ragbed does not know it.
    """
    from pydantic import ValidationError

    from experiments.benchmarks import BENCHMARKS

    try:
        return BENCHMARKS[manifest.benchmark["kind"]].model_validate(manifest.benchmark)
    except (KeyError, ValidationError) as error:
        raise BenchmarkError(f"mined from {manifest.name}, whose settings this ragbed does not know; mine it anew"
                             ) from error
