"""Settings of retrievers, and of runs that only search."""
from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model, model_validator

from ragbed.agents.model_settings import NO_MODEL
from ragbed.documents.chunkers import ChunkerSettings
from ragbed.experiments.question import RANKED, SPANS, Question, Scheme
from ragbed.retrieval.embedders import EmbedderSettings
from ragbed.retrieval.filters.parser import Where
from ragbed.retrieval.index_settings import IndexSettings, VectorSettings
from ragbed.retrieval.retrievers import KINDS
from ragbed.retrieval.tagged_union import tagged_union
from ragbed.retrieval.types import RetrieverKind
from ragbed.strategies.catalogue import HISTORY, RETRIEVAL, SEARCH_ONLY, UNAIDED


def label(settings: BaseModel | str) -> str:
    """Return the label in tables: the kind (or the last part of the model's name) and all non-default values."""
    if isinstance(settings, str):
        return settings
    defaults = _defaults(type(settings))
    fields = {name: value for name, value in settings if name not in ("kind", "model") and value != defaults.get(name)}
    others = ", ".join(f"{name} {_value(value)}" for name, value in fields.items())
    first = re.split(r"[/#]", str(getattr(settings, "model", None) or getattr(settings, "kind", "")).rstrip("/"))[-1]
    return f"{first} ({others})" if others else first


@cache
def _defaults(kind: type[BaseModel]) -> dict[str, Any]:
    try:
        return dict(kind())
    except ValidationError:
        return {}


def _value(value: Any) -> str:
    if isinstance(value, BaseModel):
        return label(value)
    return "+".join(map(_value, value)) if isinstance(value, list | tuple) else str(value)


# Settings of prompts and answers, which do nothing in a run that calls no model.
OF_ANSWERS = ("rules", "layout", "brief", "sub_answers", "filled", "exemplars", "judge", "judges", "support",
              "answer_formats", "framings", "headers", "prompt_variants", "languages", "prompts", "refusals", "probe")
_DEPTH = 100  # default k of a run that only searches: the deepest cut in its columns
# Searches run in batches, and a question's time is that of its whole batch, so the limit is a day.
_SEARCH_DEFAULTS = {"models": [NO_MODEL], "conditions": ["retrieved"], "history": ["none"],
                    "limits": {"seconds": 86_400.0}}


def apply_defaults(paper: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in missing settings from the benchmark's paper or, for a run that only searches, from the defaults for
    searching. If a model is given, it answers questions even if the paper only searches."""
    if "models" in given and "reasoning" not in given and _only_searches(paper):
        paper = {name: value for name, value in paper.items() if name != "reasoning"}
    if not _only_searches({**paper, **given}):
        return {**paper, **given}
    paper = {name: value for name, value in paper.items() if name not in OF_ANSWERS}
    usual = paper.get("retriever")
    k = usual.get("k", _DEPTH) if isinstance(usual, Mapping) else _DEPTH
    deep = {"retriever": _at_depth(given["retriever"], k)} if "retriever" in given else {}
    return {**paper, **_SEARCH_DEFAULTS, **given, **deep}


def _at_depth(retriever: Any, k: int) -> Any:
    if isinstance(retriever, list):
        return [_at_depth(one, k) for one in retriever]
    if isinstance(retriever, str):
        return {"kind": retriever, "k": k}
    return {"k": k, **retriever} if isinstance(retriever, Mapping) else retriever


def _only_searches(fields: Mapping[str, Any]) -> bool:
    return fields.get("reasoning") in (SEARCH_ONLY, [SEARCH_ONLY])


def check_searching(reasoning: Collection[str], gathering: Collection[str], models: Collection[str],
                    conditions: Collection[str]) -> bool:
    """Return whether a run only searches. Raises ValueError if only some of its cells do, if a model is given but never
    used, if a retrieval strategy needs a model but none is given, or if a condition does not search.

    Args:
        reasoning, gathering, models, conditions: all values in the run's combinations.
    """
    if SEARCH_ONLY not in reasoning:
        if NO_MODEL in models:
            raise ValueError(f"models: {NO_MODEL} works only with reasoning: {SEARCH_ONLY}; name a model")
        return False
    if len(reasoning) > 1:
        raise ValueError(f"reasoning: {SEARCH_ONLY} has different metrics from strategies that answer; move it to a "
                         "separate run")
    asking = sorted(kind for kind in gathering if kind not in UNAIDED)
    if set(models) != {NO_MODEL} and not asking:
        raise ValueError(f"models: {SEARCH_ONLY} calls no model; remove models")
    if NO_MODEL in models and any(kind in (*RETRIEVAL, *HISTORY) for kind in asking):
        raise ValueError(f"models: {asking[0]} calls a model; name one")
    if set(conditions) != {"retrieved"}:
        raise ValueError(f"conditions: {SEARCH_ONLY} measures searches only; remove conditions")
    return True


def search_scheme(questions: Collection[Question], usual: Scheme) -> Scheme:
    """Return the scheme of a run that only searches. It has character metrics if any gold is spans, and judgement
    metrics if any documents were judged irrelevant or junk.

    Args:
        usual: the benchmark's scheme.
    """
    gold = [item for question in questions for item in question.gold]
    spans = any(item.start is not None and item.chunk is None for item in gold)
    irrelevant = any(question.irrelevant for question in questions)
    columns = ["judged@10"] * (irrelevant or any(question.junk for question in questions)) + ["bpref"] * irrelevant
    judged = replace(RANKED, groups=("ranking", "judgements"), columns=(*RANKED.columns, *columns))
    ranked = judged if columns else RANKED
    return replace(SPANS if spans else ranked, published=usual.published, itself_ignored=usual.itself_ignored)


_NOT_GIVEN: Any = None


def _is_none(value: object) -> bool:
    return value is None


def _check_path(path: Path) -> Path:
    if "\0" in str(path):
        raise ValueError("a path cannot contain the character NUL")
    return path


Place = Annotated[Path, AfterValidator(_check_path)]


class BuildSettings(BaseModel):
    """How documents are cut, embedded and searched. Only the given settings act.

    Attributes:
        embedder: settings or short name of an embedder. Default: all-MiniLM-L6-v2.
        chunker: how documents are cut into chunks. Default: the chunks of the questions stay as they are, and a corpus
            is cut as by `ragbed index`.
        vectors: how vectors are searched. Default: the chunks of the questions are compared one by one, and a corpus is
            searched as by `ragbed index`.
        titled: whether to search each chunk with its document's name and title in front, which prompts do not show.
            Default: true for a corpus.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    embedder: EmbedderSettings = Field(default=_NOT_GIVEN, exclude_if=_is_none)
    chunker: ChunkerSettings = Field(default=_NOT_GIVEN, exclude_if=_is_none)
    vectors: VectorSettings = Field(default=_NOT_GIVEN, exclude_if=_is_none)
    titled: bool = Field(default=_NOT_GIVEN, exclude_if=_is_none)

    @property
    def for_index(self) -> IndexSettings:
        """Return the settings of an index, with its defaults for what is not given."""
        return IndexSettings(**self.given)

    @property
    def given(self) -> dict[str, Any]:
        """Return the settings that are given, by name."""
        return {name: value for name, value in self if value is not None}


class SearchSettings(BaseModel):
    """Settings of every retriever. Each kind has further settings.

    Attributes:
        name: label in tables. By default `KIND@k`.
        k: number of chunks per search.
        index: a folder made by `ragbed index`. By default, an index of the benchmark's corpus is built; without a
            corpus, the chunks of the questions are searched.
        over: which chunks are searched if the benchmark has no corpus: `own`, the question's chunks (or those that all
            questions share), which is the default, or `all`, the chunks of all questions.
        build: how documents are cut, embedded and searched. An index that is named keeps its own settings.
        where: conditions on chunks, applied before the search, such as `{year: ">= 2022", source: "reports/*"}`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = ""
    k: int = Field(default=5, ge=1, le=1000)
    index: Place | None = None
    over: Literal["own", "all"] | None = Field(default=None, exclude_if=operator.not_)
    build: BuildSettings = Field(default=BuildSettings(), exclude_if=lambda build: build == BuildSettings())
    where: Where = ()

    @model_validator(mode="before")
    @classmethod
    def _default_name(cls, fields: Any) -> Any:
        fields = {"kind": fields} if isinstance(fields, str) else fields
        if isinstance(fields, dict) and not fields.get("name"):
            return {**fields, "name": f"{fields.get('kind', 'dense')}@{fields.get('k', 5)}"}
        return fields

    @model_validator(mode="after")
    def _check_index(self) -> SearchSettings:
        if self.index is not None and self.build != BuildSettings():
            raise ValueError(f"build: the index {self.index} keeps the settings that it was built with; remove build, "
                             "or omit index")
        if self.index is not None and self.over == "own":
            raise ValueError(f"over: a search of the index {self.index} covers all of its documents; remove over")
        return self


def name_apart(retrievers: list[Any]) -> list[Any]:
    """Return the retrievers. If several have the same default name, other settings are added to their names."""
    counts = Counter(one.name for one in retrievers)
    return [one.model_copy(update={"name": f"{one.name}{others}"})
            if counts[one.name] > 1 and one.name == f"{one.kind}@{one.k}" and (others := _other_settings(one)) else one
            for one in retrievers]


def _other_settings(retriever: Any) -> str:
    kind = next(one for one in KINDS if isinstance(retriever, one))
    own = {name: getattr(retriever, name) for name in kind.model_fields}
    return label(kind.model_construct(**own)).removeprefix(retriever.kind) + label(retriever.build)


if TYPE_CHECKING:
    class RetrieverFactor(SearchSettings, RetrieverKind):
        """A retriever of any kind."""

    AnyRetriever: TypeAlias = RetrieverFactor
else:
    # A retriever without a kind is dense.
    AnyRetriever = tagged_union([create_model(
        kind.__name__, __base__=(SearchSettings, kind), __doc__=kind.__doc__, __module__=__name__) for kind in KINDS],
        "dense")
    RetrieverFactor = SearchSettings


def kinds_in(retriever: RetrieverKind) -> frozenset[str]:
    """Return the kinds of a retriever and of all retrievers inside it."""
    inner = getattr(retriever, "of", ())
    several: tuple[RetrieverKind, ...] = inner if isinstance(inner, tuple) else (inner,)
    return frozenset({str(retriever.kind)}).union(*map(kinds_in, several))


@dataclass(frozen=True, slots=True)
class Finder:
    """A retriever with one chunker and one embedder. `name` contains these if the run compares several."""

    retriever: RetrieverFactor

    @property
    def cut(self) -> bool:
        """Return whether a chunker splits the questions' documents again."""
        return self.retriever.build.given.get("chunker") is not None
