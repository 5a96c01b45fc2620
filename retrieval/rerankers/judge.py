"""Judge: a language model that says how relevant a passage is. What it is asked."""
from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any, Literal

from pydantic import BaseModel, Field

from documents.errors import SettingsError
from documents.types import digest
from retrieval.rerankers.base import Reranker
from retrieval.types import Aids, Scorer


class Judge(Reranker):
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

    def open(self, aids: Aids) -> Scorer:
        """Raises SettingsError where no model can be asked."""
        if aids.judge is None:
            raise SettingsError(f"the reranker judge asks {self.model}, and no model can be asked here: use another")
        return aids.judge(self)

    def identity(self) -> str:
        return f"judge {digest(self.model, str(self.max_tokens), template('relevance'), template('relevance_repair'))}"


def judges_of(settings: Any) -> list[Judge]:
    """The judges in the settings of a retriever, however deep, each once."""
    if isinstance(settings, Judge):
        return [settings]
    parts = settings if isinstance(settings, list | tuple) else \
        [value for _, value in settings] if isinstance(settings, BaseModel) else []
    return list(dict.fromkeys(judge for part in parts for judge in judges_of(part)))


@cache
def template(name: str) -> str:
    """The text of `prompts/<name>.md`."""
    return resources.files("retrieval.rerankers").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8").strip()
