"""Retrievers as a run names them: each kind's own settings, and those of what is searched."""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model, model_validator

from ragbed.agents.models import NO_MODEL
from ragbed.experiments.question import RANKED, SPANS, Question, Scheme
from ragbed.retrieval.filters.terms import Where
from ragbed.retrieval.retrievers import KINDS
from ragbed.retrieval.settings import IndexSettings
from ragbed.retrieval.tagged_union import tagged_union
from ragbed.retrieval.types import RetrieverKind
from ragbed.strategies.catalogue import HISTORY, RETRIEVAL, SEARCH_ONLY, UNAIDED


def label(settings: BaseModel | str) -> str:
    """Return what tables call settings of some kind: the kind, and what is not usual; a model by its name's end."""
    if isinstance(settings, str):
        return settings
    usual = _usual(type(settings))
    fields = {name: value for name, value in settings if name not in ("kind", "model") and value != usual.get(name)}
    said = ", ".join(f"{name} {_value(value)}" for name, value in fields.items())
    first = re.split(r"[/#]", str(getattr(settings, "model", None) or getattr(settings, "kind", "")).rstrip("/"))[-1]
    return f"{first} ({said})" if said else first


@cache
def _usual(kind: type[BaseModel]) -> dict[str, Any]:
    try:
        return dict(kind())
    except ValidationError:
        return {}


def _value(value: Any) -> str:
    if isinstance(value, BaseModel):
        return label(value)
    return "+".join(map(_value, value)) if isinstance(value, list | tuple) else str(value)


# All of a batch of searches counts against each question of it, so that the deadline is no deadline of one.
_DEEP = 100  # chunks of a search where nothing else is said: the deepest cut of the columns
_SETTINGS = {"models": [NO_MODEL], "conditions": ["retrieved"], "history": ["none"], "limits": {"seconds": 86_400.0}}


def with_defaults(paper: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are given, with what is left out as the benchmark's paper has it, or as only searching
    needs it. A model that is given is asked, though the paper only searches."""
    if "models" in given and "reasoning" not in given and _only_searches(paper):
        paper = {name: value for name, value in paper.items() if name != "reasoning"}
    if not _only_searches({**paper, **given}):
        return {**paper, **given}
    usual = paper.get("retriever")
    k = usual.get("k", _DEEP) if isinstance(usual, Mapping) else _DEEP
    deep = {"retriever": _at_depth(given["retriever"], k)} if "retriever" in given else {}
    return {**paper, **_SETTINGS, **given, **deep}


def _at_depth(retriever: Any, k: int) -> Any:
    """Retrievers that say no `k` find as many as the columns look at."""
    if isinstance(retriever, list):
        return [_at_depth(one, k) for one in retriever]
    if isinstance(retriever, str):
        return {"kind": retriever, "k": k}
    return {"k": k, **retriever} if isinstance(retriever, Mapping) else retriever


def _only_searches(fields: Mapping[str, Any]) -> bool:
    return fields.get("reasoning") in (SEARCH_ONLY, [SEARCH_ONLY])


def check_searching(reasoning: Collection[str], gathering: Collection[str], models: Collection[str],
                    conditions: Collection[str]) -> bool:
    """Return whether a run only searches, of all strategies, models and conditions that its combinations have. Raises
    ValueError where it does so in a part of its cells, has a model that nothing asks, or none for a retrieval strategy
    that asks one, or lets nothing be searched."""
    if SEARCH_ONLY not in reasoning:
        if NO_MODEL in models:
            raise ValueError(f"models: {NO_MODEL} goes with reasoning: {SEARCH_ONLY} alone; name a model to ask")
        return False
    if len(reasoning) > 1:
        raise ValueError(f"reasoning: {SEARCH_ONLY} has other figures than strategies that answer; give it a run of "
                         "its own")
    asking = sorted(kind for kind in gathering if kind not in UNAIDED)
    if set(models) != {NO_MODEL} and not asking:
        raise ValueError(f"models: {SEARCH_ONLY} asks no model; leave models out")
    if NO_MODEL in models and any(kind in (*RETRIEVAL, *HISTORY) for kind in asking):
        raise ValueError(f"models: {SEARCH_ONLY} asks none, but {asking[0]} does; name a model")
    if set(conditions) != {"retrieved"}:
        raise ValueError(f"conditions: {SEARCH_ONLY} measures what a search finds; leave conditions out")
    return True


def searching_scheme(questions: Collection[Question], usual: Scheme) -> Scheme:
    """Return what is measured of searches for these questions, whose benchmark's scheme is the usual one: characters
    too, where some gold is spans of them; and what is judged, where some documents were judged to be of no use."""
    gold = [item for question in questions for item in question.gold]
    spans = any(item.start is not None and item.chunk is None for item in gold)
    judged = replace(RANKED, groups=("ranking", "judgements"), columns=(*RANKED.columns, "judged@10", "bpref"))
    ranked = judged if any(question.irrelevant for question in questions) else RANKED
    return replace(SPANS if spans else ranked, published=usual.published, itself_ignored=usual.itself_ignored)


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
    class RetrieverFactor(Searched, RetrieverKind):
        """Any of them."""

    AnyRetriever: TypeAlias = RetrieverFactor
else:
    # A retriever without a kind is dense, as runs from before there were others wrote it.
    FACTORS_OF = [create_model(kind.__name__, __base__=(Searched, kind), __doc__=kind.__doc__, __module__=__name__)
                  for kind in KINDS]
    AnyRetriever = tagged_union(FACTORS_OF, "dense")
    RetrieverFactor = Searched


def parts_of(retriever: RetrieverKind) -> frozenset[str]:
    """Return the kind of a retriever, and of each that it is made of."""
    inner = getattr(retriever, "of", ())
    several: tuple[RetrieverKind, ...] = inner if isinstance(inner, tuple) else (inner,)
    return frozenset({str(retriever.kind)}).union(*map(parts_of, several))


@dataclass(frozen=True, slots=True)
class Finder:
    """A retriever over chunks of one making: where the run compares chunkers or embedders, its `name` has theirs, and
    its `build` has them in the place of its own."""

    retriever: RetrieverFactor
    cut: bool = False  # whether documents that questions bring are cut by the chunker, not searched as they were cut
