"""Base settings of rerankers, and the reranker that asks a language model."""
from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any, Literal

from pydantic import BaseModel, Field

from ragbed.documents.errors import SettingsError
from ragbed.documents.types import digest
from ragbed.retrieval.tagged_union import KindModel
from ragbed.retrieval.types import RerankerDeps, Scorer


class Reranker(KindModel):
    """Settings of a reranker."""

    def open(self, deps: RerankerDeps) -> Scorer:
        """Open the scorer. It loads its model at the first call. Raises UserError if a model or package is missing."""
        raise NotImplementedError

    def weight(self) -> float:
        """Return the default weight of the reranker's score, up to 1. The rest is for the first retriever's score."""
        return 1.0

    def identity(self) -> str:
        """Return text that differs between rerankers with different scores. Raises UserError if a model is missing."""
        raise NotImplementedError


class JudgeReranker(Reranker):
    """A language model grades each passage in a separate call.

    The grades are those of the TREC Deep Learning track, from 0 (unrelated) to 3 (answers the query and is about it).
    Models grade much like people do (Upadhyay et al., "UMBRELA", arXiv:2406.06519). The prompt is ragbed's own.

    Attributes:
        model: name of the model, as in `--model`.
        max_tokens: limit of one reply; increase it for a model that reasons first.
    """

    kind: Literal["judge"] = "judge"
    model: str = Field(min_length=1)
    max_tokens: int = Field(16, ge=1)

    def open(self, deps: RerankerDeps) -> Scorer:
        """Open the judge. Raises SettingsError if no model can be called here."""
        if deps.judge is None:
            raise SettingsError(f"the reranker judge calls {self.model}, but no model can be called here; use another "
                                "reranker")
        return deps.judge(self)

    def identity(self) -> str:
        return f"judge {digest(self.model, str(self.max_tokens), template('relevance'), template('relevance_repair'))}"


def judges_of(settings: Any) -> list[JudgeReranker]:
    """Find the distinct judges in the settings of a retriever, at any depth."""
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
