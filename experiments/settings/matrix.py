"""The matrix of a run: the values of each factor as settings name them, their product, less what is excluded, and what
is included.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    NonNegativeInt,
    PlainSerializer,
    ValidationInfo,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

from ragbed.documents.chunkers import ChunkerSettings
from ragbed.documents.errors import SettingsError
from ragbed.documents.types import Format
from ragbed.experiments.cells import Show
from ragbed.experiments.conditions import Condition, Perturbation
from ragbed.experiments.query_variations import QueryVariation
from ragbed.experiments.settings.pipelines import pipeline_lists
from ragbed.experiments.settings.retrievers import RetrieverFactor, Searched, label
from ragbed.retrieval.embedders import EmbedderSettings
from ragbed.strategies.prompting import PROMPT_VARIANTS
from ragbed.strategies.settings.choosing import Family, Strategy, chosen, sweep
from ragbed.strategies.settings.plugins import FAMILIES
from ragbed.strategies.types import AnswerFormat, Framing, Rules

if TYPE_CHECKING:
    from ragbed.experiments.settings.run import Excluded, Included, RunSettings

_SHOWN = 80  # characters of an entry
_MOST = 100_000  # combinations of a matrix: more are no experiment, and would fill the memory before they are refused

Lists = Mapping[str, Sequence[Any]]
# Keys that may also be called as their column in the tables is.
COLUMNS = {"model": "models", "condition": "conditions", "perturbation": "perturbations", "format": "formats",
           "chunker": "chunkers", "embedder": "embedders", "answer_format": "answer_formats", "framing": "framings",
           "variation": "questions", "prompt_variant": "prompt_variants"}


@dataclass(frozen=True, slots=True)
class ListOf:
    """Marks a list that may be written as a scalar, for a list of one; its JSON Schema says so."""

    least: int = 1

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._listed, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        several = handler(schema)
        return {"anyOf": [several.get("items", {}), {**several, "minItems": self.least}]}

    def _listed(self, value: Any) -> Any:
        if value == [] and self.least:
            raise ValueError("an empty list; name at least one, or leave the key out")
        return value if isinstance(value, list) else [value]


Many = ListOf()


def _distinct(values: list[Any]) -> list[Any]:
    if len(values) != len({str(value) for value in values}):
        raise ValueError("names a value twice")
    return values


@dataclass(frozen=True, slots=True)
class _Strategies:
    """Looks up the strategies that settings name; a sweep stands for one of each."""

    family: Family

    def __call__(self, values: list[Any], info: ValidationInfo) -> list[Strategy]:
        try:
            found = [chosen(self.family, value, execute=False) for value in values] if was_checked(info) else [
                chosen(self.family, one) for value in values for one in sweep(self.family, value)]
        except SettingsError as error:
            raise ValueError(str(error)) from error
        if len(found) != len({one.label for one in found}):
            raise ValueError("names a value twice; give strategies that tables would call alike a `name` each")
        return found


def was_checked(info: ValidationInfo) -> bool:
    """Return whether the settings are those that a run left behind, for which no plug-in is executed."""
    return bool(info.context and info.context.get("checked"))


def _no_condition(rules: list[Rules]) -> list[Rules]:
    if "closed-book" in rules:
        raise ValueError("closed-book rules come with the condition of that name; set conditions: closed-book")
    return rules


def by_key(fields: Any) -> Any:
    """Return the settings, each list under its key and not its column's name; ValueError where it has both."""
    if not isinstance(fields, Mapping):
        return fields
    twice = next((column for column, key in COLUMNS.items() if column in fields and key in fields), None)
    if twice is not None:
        raise ValueError(f"{twice} and {COLUMNS[twice]} are one setting; give one of the two")
    return {COLUMNS.get(key, key): value for key, value in fields.items()}


def _properties_by_column(schema: dict[str, Any]) -> None:
    keys = schema.get("properties", {})
    keys.update({column: {**keys[key], "description": f"Another name of `{key}`."}
                 for column, key in COLUMNS.items() if key in keys})


Distinct = AfterValidator(_distinct)
Names = Annotated[list[str], Many, Distinct]
Models = Annotated[list[str], Many, Distinct]
if TYPE_CHECKING:
    Reasonings: TypeAlias = list[Strategy]
    Retrievals: TypeAlias = list[Strategy]
    Histories: TypeAlias = list[Strategy]
else:
    Reasonings, Retrievals, Histories = (Annotated[
        list[str | dict[str, Any]], Many, AfterValidator(_Strategies(family)), PlainSerializer(
            lambda values: values and [one.said for one in values])] for family in FAMILIES)
RulesNames = Annotated[list[Rules], Many, Distinct, AfterValidator(_no_condition)]
Conditions = Annotated[list[Condition], Many, Distinct]
Perturbations = Annotated[list[Annotated[str, AfterValidator(
    lambda name: str(Perturbation.parse(name)))]], Many, Distinct]
Variations = Annotated[list[Annotated[str, AfterValidator(
    lambda name: str(QueryVariation.parse(name)))]], Many, Distinct]
Shows = Annotated[list[Show], Many, Distinct]
Formats = Annotated[list[Format], Many, Distinct]
AnswerFormats = Annotated[list[AnswerFormat], Many, Distinct]
Framings = Annotated[list[Framing], Many, Distinct]
PromptVariants = Annotated[list[Annotated[int, Field(ge=1, le=PROMPT_VARIANTS)]], BeforeValidator(
    lambda said: list(range(1, min(said, PROMPT_VARIANTS + 1) + 1)) if isinstance(said, int) else said,
    json_schema_input_type=int | list[int]), Field(min_length=1), Distinct]
Cuts = Annotated[list[ChunkerSettings], ListOf(0), Distinct]
Embeddings = Annotated[list[EmbedderSettings], ListOf(0), Distinct]
Seeds = Annotated[list[NonNegativeInt], Many, Distinct]
Repeats = Annotated[int, Field(ge=1, le=1000)]


class Closed(BaseModel):
    """Unknown keys are refused, values are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Matrix(Closed):
    """Settings with lists of factors. A list may also be called as its column in the tables: `model`, `condition`,
    `perturbation`, `format`."""

    model_config = ConfigDict(json_schema_extra=_properties_by_column)

    @model_validator(mode="before")
    @classmethod
    def _by_column(cls, fields: Any) -> Any:
        return by_key(fields)


@dataclass(frozen=True, slots=True)
class Combination:
    """One value of every list. Fields stand in the order of the product: the last one varies fastest."""

    repeat: int
    seed: int
    model: str
    condition: Condition
    perturbation: str
    show: Show
    format: Format
    chunker: str | None
    embedder: str | None
    retriever: str
    rules: Rules
    framing: Framing
    variation: str
    retrieval: str
    history: str
    answer_format: AnswerFormat
    prompt_variant: int
    reasoning: str


# The key of the list that each value is out of.
_KEYS = {name: COLUMNS.get(name, name) for name in Combination.__dataclass_fields__} | {"repeat": "repeats"}


def combinations_of(settings: RunSettings) -> list[Combination]:
    """Return the distinct combinations that the settings name, in their order; those that are included come last.
    Raises SettingsError where an entry of `exclude` or `include` names what is not there, or changes nothing, or
    nothing is left."""
    base = _lists(settings)
    left = dict.fromkeys(_product(base))
    for less in settings.exclude:
        _drop(left, _given(less, settings), base, _named(less))
    known = [one.name for one in retrievers_of(settings)]
    for more in settings.include:
        left |= _added(left, {**base, **_given(more, settings)}, known, _named(more))
    for one in settings.pipelines:
        left |= dict.fromkeys(_product(pipeline_lists(one, base)))
    if not left:
        raise SettingsError("exclude leaves no combination; leave some")
    return list(left)


def retrievers_of(settings: RunSettings) -> list[RetrieverFactor]:
    """Return every retriever that the settings describe, those that an entry of `include` brings last; SettingsError
    where two that differ have one name."""
    known = {one.name: one for one in settings.retriever}
    for entry in settings.include:
        for one in entry.retriever or ():
            if isinstance(one, Searched) and known.setdefault(one.name, one) != one:
                raise SettingsError(f"{_named(entry)}: another retriever is called {one.name}; give this "
                                    "one a `name` of its own")
    return list(known.values())


def _lists(settings: RunSettings) -> Lists:
    own: dict[str, Sequence[Any]] = {
        "repeat": range(settings.repeats), "seed": settings.seeds,
        "chunker": [label(one) for one in settings.chunkers] or [None],
        "embedder": [label(one) for one in settings.embedders] or [None],
        "retriever": [one.name for one in settings.retriever],
        **{family: [one.label for one in getattr(settings, family)] for family in FAMILIES}}
    return {name: own[name] if name in own else getattr(settings, key) for name, key in _KEYS.items()}


def _given(entry: Excluded | Included, settings: RunSettings) -> dict[str, Sequence[Any]]:
    """The lists that an entry gives; SettingsError where it is for another benchmark alone."""
    if settings.benchmark.kind not in (entry.benchmark or [settings.benchmark.kind]):
        raise SettingsError(f"{_named(entry)}: {', '.join(entry.benchmark or ())} is not this run's, which is "
                            f"{settings.benchmark.kind}; leave the entry out")
    given = {name: values for name, key in _KEYS.items() if (values := getattr(entry, key, None)) is not None}
    if "retriever" in given:
        given["retriever"] = [one if isinstance(one, str) else one.name for one in given["retriever"]]
    for family in FAMILIES:
        if family in given:
            given[family] = [one if isinstance(one, str) else one.label for one in given[family]]
    if "repeat" in given:
        given["repeat"] = range(getattr(entry, "repeats", 1))
    return given


def _named(entry: Excluded | Included) -> str:
    key = "include" if hasattr(entry, "repeats") else "exclude"
    said = yaml.safe_dump(entry.model_dump(mode="json", exclude_none=True, exclude_defaults=True),
                          default_flow_style=True, sort_keys=False, allow_unicode=True, width=2**20).strip()
    return f"{key} {said if len(said) <= _SHOWN else said[:_SHOWN] + '...'}"


def _product(lists: Lists) -> Iterator[Combination]:
    lengths = {key: len(lists[name]) for name, key in _KEYS.items()}
    if (count := math.prod(lengths.values())) > _MOST:
        longest = sorted(lengths, key=lambda key: -lengths[key])[:3]
        raise SettingsError(f"the lists make {count:,} combinations, and {_MOST:,} are the most; shorten the longest: "
                            f"{', '.join(f'{key} ({lengths[key]})' for key in longest if lengths[key] > 1)}")
    return itertools.starmap(Combination, itertools.product(*(lists[name] for name in _KEYS)))


def _drop(left: dict[Combination, None], entry: Lists, base: Lists, named: str) -> None:
    if not entry:
        raise SettingsError(f"{named} names no list, and so all; give it some, as in "
                            "{conditions: closed-book, reasoning: least_to_most}")
    for name, values in entry.items():
        foreign = [str(value) for value in values if value not in base[name]]
        if foreign:
            raise SettingsError(f"{named}: {', '.join(foreign)} is not in the run's {_KEYS[name]}, so nothing is left "
                                f"out; there are: {', '.join(map(str, base[name]))}")
    dropped = [one for one in left if all(getattr(one, name) in values for name, values in entry.items())]
    if not dropped:
        raise SettingsError(f"{named} leaves out nothing that the entries before it do not; leave it out")
    for one in dropped:
        del left[one]


def _added(left: Collection[Combination], lists: Lists, retrievers: Sequence[str],
           named: str) -> dict[Combination, None]:
    unknown = [name for name in lists["retriever"] if name not in retrievers]
    if unknown:
        raise SettingsError(f"{named}: no retriever is called {unknown[0]}; there are: {', '.join(retrievers)}; or "
                            "give the settings of one")
    added = {one: None for one in _product(lists) if one not in left}
    if not added:
        raise SettingsError(f"{named} adds nothing to what is there already; leave it out")
    return added
