"""How to find, as the command line says it: a retriever by its kind or by settings, and conditions."""
from __future__ import annotations

from pydantic import BaseModel, ConfigDict, ValidationError

from documents.errors import SettingsError
from experiments.settings.file import explain, read_value
from retrieval.filters.terms import Where
from retrieval.retrievers import Kind, RetrieverSettings


class Finding(BaseModel):
    """A retriever, and among which chunks it looks."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    retriever: RetrieverSettings
    where: Where = ()


def finding(retriever: str, where: list[str]) -> tuple[Kind, tuple[str, ...]]:
    """The retriever's settings and the conditions.

    Args:
        retriever: a kind such as `bm25`, or settings in YAML such as `{kind: fused, of: [dense, bm25]}`.
        where: texts such as `page >= 3`.

    Raises:
        SettingsError: one line for what does not fit.
    """
    try:
        given = Finding(retriever=read_value(retriever, "--retriever"), where=where)
    except ValidationError as error:
        raise SettingsError(explain(error.errors(include_url=False)[0], Finding)) from error
    return given.retriever, given.where
