"""The factors of a run, which are the lists in its settings, and all combinations of their values."""
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
from ragbed.documents.errors import SettingsError, did_you_mean
from ragbed.documents.types import Format
from ragbed.experiments.cells import Show
from ragbed.experiments.conditions import Condition, Perturbation
from ragbed.experiments.query_variations import QueryVariation
from ragbed.experiments.settings.pipelines import pipeline_lists
from ragbed.experiments.settings.retrievers import RetrieverFactor, SearchSettings, label
from ragbed.retrieval.embedders import EmbedderSettings
from ragbed.strategies.prompting import PROMPT_VARIANTS
from ragbed.strategies.reading import Language
from ragbed.strategies.settings.prompt_texts import prompts_label
from ragbed.strategies.settings.strategy_config import Strategy, parse_strategy, sweep
from ragbed.strategies.types import FAMILIES, AnswerFormat, Family, Framing, Rules

if TYPE_CHECKING:
    from ragbed.experiments.settings.run_settings import Excluded, Included, RunSettings

_MAX_SHOWN = 80  # longest entry in a message, in characters
_MAX_COMBINATIONS = 100_000  # more would exhaust the memory

Lists = Mapping[str, Sequence[Any]]
# These settings may also be given by the names of their columns in tables.
COLUMNS = {"model": "models", "condition": "conditions", "perturbation": "perturbations", "format": "formats",
           "chunker": "chunkers", "embedder": "embedders", "answer_format": "answer_formats", "framing": "framings",
           "variation": "questions", "prompt_variant": "prompt_variants", "language": "languages"}


@dataclass(frozen=True, slots=True)
class ListOf:
    """Allows a single value where a list is expected, in validation and in the JSON Schema."""

    least: int = 1

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._listed, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        several = handler(schema)
        return {"anyOf": [several.get("items", {}), {**several, "minItems": self.least}]}

    def _listed(self, value: Any) -> Any:
        if value == [] and self.least:
            raise ValueError("the list is empty; name at least one value, or omit the key")
        return value if isinstance(value, list) else [value]


Many = ListOf()


def _distinct(values: list[Any]) -> list[Any]:
    if len(values) != len({str(value) for value in values}):
        raise ValueError("duplicate value; remove one of the two")
    return values


@dataclass(frozen=True, slots=True)
class _LoadStrategies:
    """Replaces names and settings by strategies. If a parameter is a list, each of its values gives a strategy."""

    family: Family

    def __call__(self, values: list[Any], info: ValidationInfo) -> list[Strategy]:
        try:
            found = [parse_strategy(self.family, value, execute=False) for value in values] if _is_checked(info) else [
                parse_strategy(self.family, one) for value in values for one in sweep(self.family, value)]
        except SettingsError as error:
            raise ValueError(str(error)) from error
        if len(found) != len({one.label for one in found}):
            raise ValueError("duplicate value; give strategies with the same label a `name`")
        return found


def _is_checked(info: ValidationInfo) -> bool:
    """Return whether the settings come from a run's folder. If so, no custom strategy may be executed."""
    return bool(info.context and info.context.get("checked"))


def _check_rules(rules: list[Rules]) -> list[Rules]:
    if "closed-book" in rules:
        raise ValueError("closed-book cannot be set here; set conditions: closed-book, which uses these rules")
    return rules


def rename_columns(fields: Any) -> Any:
    """Replace column names such as `model` with keys such as `models`. Raises ValueError if both are given."""
    if not isinstance(fields, Mapping):
        return fields
    twice = next((column for column, key in COLUMNS.items() if column in fields and key in fields), None)
    if twice is not None:
        raise ValueError(f"{twice} and {COLUMNS[twice]} are the same setting; give one of the two")
    return {COLUMNS.get(key, key): value for key, value in fields.items()}


def _add_column_names(schema: dict[str, Any]) -> None:
    keys = schema.get("properties", {})
    keys.update({column: {**keys[key], "description": f"Same as `{key}`."}
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
        list[str | dict[str, Any]], Many, AfterValidator(_LoadStrategies(family)), PlainSerializer(
            lambda values: values and [one.spec for one in values])] for family in FAMILIES)
RulesNames = Annotated[list[Rules], Many, Distinct, AfterValidator(_check_rules)]
Conditions = Annotated[list[Condition], Many, Distinct]
Perturbations = Annotated[list[Annotated[str, AfterValidator(
    lambda name: str(Perturbation.parse(name)))]], Many, Distinct]
Variations = Annotated[list[Annotated[str, AfterValidator(
    lambda name: str(QueryVariation.parse(name)))]], Many, Distinct]
Shows = Annotated[list[Show], Many, Distinct]
Formats = Annotated[list[Format], Many, Distinct]
AnswerFormats = Annotated[list[AnswerFormat], Many, Distinct]
Headers = Annotated[list[bool], Many, Distinct]
Languages = Annotated[list[Language], Many, Distinct]
Prompts = Annotated[list[str], Many, AfterValidator(
    lambda folders: folders * bool(_distinct([*map(prompts_label, folders)])))]
Framings = Annotated[list[Framing], Many, Distinct]
PromptVariants = Annotated[list[Annotated[int, Field(ge=1, le=PROMPT_VARIANTS)]], BeforeValidator(
    lambda value: list(range(1, min(value, PROMPT_VARIANTS + 1) + 1)) if isinstance(value, int) else value,
    json_schema_input_type=int | list[int]), Field(min_length=1), Distinct]
Chunkers = Annotated[list[ChunkerSettings], ListOf(0), Distinct]
Embedders = Annotated[list[EmbedderSettings], ListOf(0), Distinct]
Seeds = Annotated[list[NonNegativeInt], Many, Distinct]
Repeats = Annotated[int, Field(ge=1, le=1000)]


def scalar_of_one(values: list[int]) -> list[int] | int:
    """Return a single value without its list."""
    return values[0] if len(values) == 1 else values


def drop_none(entries: list[Any]) -> list[dict[str, Any]]:
    """Return entries of the matrix as JSON, without keys that are None."""
    return [{key: value for key, value in entry.model_dump(mode="json").items() if value is not None}
            for entry in entries]


def allow_list(schema: dict[str, Any]) -> None:
    """Let the JSON Schema of a setting also allow a list of values."""
    one = dict(schema)
    schema.clear()
    schema.update({"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]})


WithoutNone = PlainSerializer(drop_none)


class Matrix(BaseModel):
    """Settings whose lists are factors. A list may also be given by the name of its column in tables, such as `model`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra=_add_column_names)

    @model_validator(mode="before")
    @classmethod
    def _rename_columns(cls, fields: Any) -> Any:
        return rename_columns(fields)


@dataclass(frozen=True, slots=True)
class Combination:
    """One value of every list. In the product of the lists, the last field varies fastest."""

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
    headers: bool
    variation: str
    retrieval: str
    history: str
    answer_format: AnswerFormat
    prompt_variant: int
    language: Language
    prompts: str
    reasoning: str


# The setting with the values of each field.
_KEYS = {name: COLUMNS.get(name, name) for name in Combination.__dataclass_fields__} | {"repeat": "repeats"}


def list_combinations(settings: RunSettings) -> list[Combination]:
    """Return the distinct combinations of a run: the product of its lists except `exclude`, then those that `include`
    adds, then those of the pipelines. Raises SettingsError if an entry names an unknown value or changes nothing, or if
    no combination is left."""
    base = _lists(settings)
    left = dict.fromkeys(_product(base))
    for entry in settings.exclude:
        _exclude(left, _lists_of(entry, settings), base, _describe(entry))
    known = [one.name for one in list_retrievers(settings)]
    for more in settings.include:
        left |= _include(left, {**base, **_lists_of(more, settings)}, known, _describe(more))
    for one in settings.pipelines:
        left |= dict.fromkeys(_product(pipeline_lists(one, base)))
    if not left:
        raise SettingsError("exclude removes every combination; keep at least one")
    return list(left)


def list_retrievers(settings: RunSettings) -> list[RetrieverFactor]:
    """Return every retriever of a run. Raises SettingsError if two different retrievers have the same name."""
    known = {one.name: one for one in settings.retriever}
    for entry in settings.include:
        for one in entry.retriever or ():
            if isinstance(one, SearchSettings) and known.setdefault(one.name, one) != one:
                raise SettingsError(f"{_describe(entry)}: another retriever has the name {one.name}; give this "
                                    "one a different `name`")
    return list(known.values())


def _lists(settings: RunSettings) -> Lists:
    own: dict[str, Sequence[Any]] = {
        "repeat": range(settings.repeats), "seed": settings.seeds,
        "chunker": [label(one) for one in settings.chunkers] or [None],
        "embedder": [label(one) for one in settings.embedders] or [None],
        "retriever": [one.name for one in settings.retriever], "prompts": [*map(prompts_label, settings.prompts)],
        **{family: [one.label for one in getattr(settings, family)] for family in FAMILIES}}
    return {name: own[name] if name in own else getattr(settings, key) for name, key in _KEYS.items()}


def _lists_of(entry: Excluded | Included, settings: RunSettings) -> dict[str, Sequence[Any]]:
    if settings.benchmark.kind not in (entry.benchmark or [settings.benchmark.kind]):
        raise SettingsError(f"{_describe(entry)}: the benchmark of this run is {settings.benchmark.kind}; remove "
                            "the entry")
    given = {name: values for name, key in _KEYS.items() if (values := getattr(entry, key, None)) is not None}
    if "retriever" in given:
        given["retriever"] = [one if isinstance(one, str) else one.name for one in given["retriever"]]
    for family in FAMILIES:
        if family in given:
            given[family] = [one if isinstance(one, str) else one.label for one in given[family]]
    if "prompts" in given:
        given["prompts"] = [*map(prompts_label, given["prompts"])]
    if "repeat" in given:
        given["repeat"] = range(getattr(entry, "repeats", 1))
    return given


def _describe(entry: Excluded | Included) -> str:
    key = "include" if hasattr(entry, "repeats") else "exclude"
    text = yaml.safe_dump(entry.model_dump(mode="json", exclude_none=True, exclude_defaults=True),
                          default_flow_style=True, sort_keys=False, allow_unicode=True, width=2**20).strip()
    return f"{key} {text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + '...'}"


def _product(lists: Lists) -> Iterator[Combination]:
    lengths = {key: len(lists[name]) for name, key in _KEYS.items()}
    if (count := math.prod(lengths.values())) > _MAX_COMBINATIONS:
        longest = sorted(lengths, key=lambda key: -lengths[key])[:3]
        raise SettingsError(f"the lists have {count:,} combinations, more than {_MAX_COMBINATIONS:,}; shorten the "
                            f"longest: {', '.join(f'{key} ({lengths[key]})' for key in longest if lengths[key] > 1)}")
    return itertools.starmap(Combination, itertools.product(*(lists[name] for name in _KEYS)))


def _exclude(left: dict[Combination, None], entry: Lists, base: Lists, described: str) -> None:
    if not entry:
        raise SettingsError(f"{described} is empty and would remove everything; add a key, as in "
                            "{conditions: closed-book, reasoning: least_to_most}")
    for name, values in entry.items():
        if unknown := [str(value) for value in values if value not in base[name]]:
            raise SettingsError(f"{described}: {', '.join(unknown)} is not a value of {_KEYS[name]}; "
                                f"{did_you_mean(unknown[0], map(str, base[name]))}the run has "
                                f"{', '.join(map(str, base[name]))}")
    dropped = [one for one in left if all(getattr(one, name) in values for name, values in entry.items())]
    if not dropped:
        raise SettingsError(f"{described} removes nothing, as earlier entries remove the same; delete it")
    for one in dropped:
        del left[one]


def _include(left: Collection[Combination], lists: Lists, retrievers: Sequence[str],
             described: str) -> dict[Combination, None]:
    unknown = [name for name in lists["retriever"] if name not in retrievers]
    if unknown:
        raise SettingsError(f"{described}: unknown retriever {unknown[0]}; {did_you_mean(unknown[0], retrievers)}"
                            f"the run has {', '.join(retrievers)}. Name "
                            "one of them, or give the settings of another")
    added = {one: None for one in _product(lists) if one not in left}
    if not added:
        raise SettingsError(f"{described} adds nothing new; delete it")
    return added
