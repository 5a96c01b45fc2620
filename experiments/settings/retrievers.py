"""Retrievers as a run names them: each kind's own settings, and with them what it searches and how deep."""
from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model, model_validator

from experiments.settings.naming import label
from retrieval.filters.terms import Where
from retrieval.kinds import discriminated
from retrieval.retrievers import KINDS, Kind
from retrieval.settings import IndexSettings


def _without_nul(path: Path) -> Path:
    if "\0" in str(path):
        raise ValueError("a path cannot hold the character NUL")
    return path


Place = Annotated[Path, AfterValidator(_without_nul)]


class Searched(BaseModel):
    """What a retriever searches. The settings of its kind stand beside these.

    Attributes:
        name: what tables call it; by default `KIND@k`.
        k: chunks per search.
        index: an index folder made by `ragbed index`; None searches the benchmark's corpus, for which an index is
            built, or else chunks that its questions bring.
        over: which chunks, where the benchmark has no corpus: `own`, those of the question that is asked (and those
            that all share, where it has none), or `all`, those of all its questions.
        build: how that index is built; of chunks that the questions bring, only its `embedder` counts.
        where: conditions on chunks, which are decided before the search: `{year: ">= 2022", source: "reports/*"}`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = ""
    k: int = Field(default=5, ge=1, le=1000)
    index: Place | None = None
    over: Literal["own", "all"] = "own"
    build: IndexSettings = IndexSettings()
    where: Where = ()

    @model_validator(mode="before")
    @classmethod
    def _named(cls, fields: Any) -> Any:
        fields = {"kind": fields} if isinstance(fields, str) else fields
        if isinstance(fields, dict) and not fields.get("name"):
            return {**fields, "name": f"{fields.get('kind', 'dense')}@{fields.get('k', 5)}"}
        return fields


def told_apart(retrievers: list[Any]) -> list[Any]:
    """Retrievers of one kind and depth that nobody named, each called by what is not as usual in it too."""
    counts = Counter(one.name for one in retrievers)
    return [one.model_copy(update={"name": f"{one.name}{said}"})
            if counts[one.name] > 1 and one.name == f"{one.kind}@{one.k}" and (said := _unusual(one)) else one
            for one in retrievers]


def _unusual(retriever: Any) -> str:
    """What tells its settings from the kind's defaults, in brackets; empty where nothing does."""
    kind = next(one for one in KINDS if isinstance(retriever, one))
    own = {name: getattr(retriever, name) for name in kind.model_fields}
    return label(kind.model_construct(**own)).removeprefix(retriever.kind)


if TYPE_CHECKING:
    class RetrieverFactor(Searched, Kind):
        """Any of them."""

    AnyRetriever: TypeAlias = RetrieverFactor
else:
    # A retriever without a kind is dense, as runs from before there were others wrote it.
    FACTORS_OF = [create_model(kind.__name__, __base__=(Searched, kind), __doc__=kind.__doc__, __module__=__name__)
                  for kind in KINDS]
    AnyRetriever = discriminated(FACTORS_OF, "dense")
    RetrieverFactor = Searched


def parts_of(retriever: Kind) -> frozenset[str]:
    """The kind of a retriever, and of each that it is made of."""
    inner = getattr(retriever, "of", ())
    several: tuple[Kind, ...] = inner if isinstance(inner, tuple) else (inner,)
    return frozenset({str(retriever.kind)}).union(*map(parts_of, several))
