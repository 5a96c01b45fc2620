"""The benchmarks that settings can name: ragbed's own and those of guests."""
from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import Field

from ragbed.documents.errors import SettingsError
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
from ragbed.guests import loaded

_OWN: tuple[type[Selection], ...] = (
    Crest, Mrceval, Mdbench, DetectiveQa, Mrke, HotpotQa, Musique, TwoWiki, MoreHopQa, MultiHopRag, ClapNq, Squad2, Rgb,
    FinanceBench, KoreanRag, Mtrag, Beir, Trec, ChunkingEval, Injection, Computed, Demo, OwnQuestions)


def _kind(settings: type[Selection]) -> Any:
    field = settings.model_fields.get("kind")
    return field and field.default


def _with_guests() -> dict[str, type[Selection]]:
    found = {_kind(settings): settings for settings in _OWN}
    for name, settings in loaded("benchmark").items():
        if not (isinstance(settings, type) and issubclass(settings, Selection) and _kind(settings) == name):
            raise SettingsError(f"the benchmark {name!r} of a guest is not a subclass of "
                                f"ragbed.experiments.benchmarks.Selection with the field kind: Literal[{name!r}]")
        if name in found:
            raise SettingsError(f"the benchmark {name!r} of a guest has the name of one of ragbed's; rename it")
        found[name] = settings
    return found


BENCHMARKS: dict[str, type[Selection]] = _with_guests()
"""The class of settings of each benchmark, by the `kind` that a run's settings name."""

if TYPE_CHECKING:
    BenchmarkSettings = Selection
else:
    BenchmarkSettings = Annotated[Union[tuple(BENCHMARKS.values())], Field(discriminator="kind")]  # noqa: UP007
