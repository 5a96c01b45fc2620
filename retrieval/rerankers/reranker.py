"""Reranker: the settings of one way to score candidates against a query; and that of asking a language model."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

from pydantic import BaseModel, Field

from ragbed.documents.errors import SettingsError
from ragbed.documents.types import digest
from ragbed.retrieval.tagged_union import KindModel
from ragbed.retrieval.types import Scorer


@dataclass(frozen=True, slots=True)
class RerankerDeps:
    """Things that opening a retriever may need beside the collection.

    Attributes:
        judge: the relevance judge of such settings; None where no model can be asked.
    """

    judge: Callable[[JudgeReranker], Scorer] | None = None


class Reranker(KindModel):
    """Settings of a reranker."""

    def open(self, deps: RerankerDeps) -> Scorer:
        """Open what scores. Nothing large is loaded before the first candidates come. Raises UserError where a model or
        package that it needs is not to be had."""
        raise NotImplementedError

    def weight(self) -> float:
        """Return what its score counts for beside the score of before, where the settings do not say: all."""
        return 1.0

    def identity(self) -> str:
        """Tell rerankers apart that score otherwise, by settings and what they use; UserError without a model."""
        raise NotImplementedError


class JudgeReranker(Reranker):
    """Each passage by itself is graded by a model, in one call.

    The grades are those of the TREC Deep Learning track, from 0 (has nothing to do with it) to 3 (answers it and is
    about it), which models were found to give much as people do (Upadhyay et al., "UMBRELA", arXiv:2406.06519). The
    prompt is ours.

    Attributes:
        model: as `--model` takes it.
        max_tokens: limit on one reply; raise it for a model that reasons first.
    """

    kind: Literal["judge"] = "judge"
    model: str = Field(min_length=1)
    max_tokens: int = Field(16, ge=1)

    def open(self, deps: RerankerDeps) -> Scorer:
        """Raises SettingsError where no model can be asked."""
        if deps.judge is None:
            raise SettingsError(f"the reranker judge asks {self.model}, and no model can be asked here: use another")
        return deps.judge(self)

    def identity(self) -> str:
        return f"judge {digest(self.model, str(self.max_tokens), template('relevance'), template('relevance_repair'))}"


def judges_of(settings: Any) -> list[JudgeReranker]:
    """Find the judges in the settings of a retriever, however deep, each once."""
    if isinstance(settings, JudgeReranker):
        return [settings]
    parts = settings if isinstance(settings, list | tuple) else \
        [value for _, value in settings] if isinstance(settings, BaseModel) else []
    return list(dict.fromkeys(judge for part in parts for judge in judges_of(part)))


@cache
def template(name: str) -> str:
    """Read the text of `prompts/<name>.md`."""
    file = resources.files("ragbed.retrieval.rerankers").joinpath("prompts", f"{name}.md")
    return file.read_text(encoding="utf-8").strip()
