"""The factors of a run as its settings name them: the values of each, and parts of the matrix, out of it or added."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    ValidationInfo,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

from documents.chunkers import ChunkerSettings
from documents.errors import SettingsError
from documents.types import Format
from experiments.cells import Show
from retrieval.conditions import Condition, Perturbation
from retrieval.embedders import EmbedderSettings
from strategies.settings.choosing import Family, Strategy, chosen, sweep
from strategies.settings.plugins import FAMILIES
from strategies.types import AnswerFormat, Framing, Rules

# Keys that may also be called as their column in the tables is.
COLUMNS = {"model": "models", "condition": "conditions", "perturbation": "perturbations", "format": "formats",
           "chunker": "chunkers", "embedder": "embedders", "answer_format": "answer_formats", "framing": "framings"}


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
    """Return the settings, each list under its key and not under the name of its column; ValueError where it has
    both."""
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
else:
    Reasonings, Retrievals = (Annotated[
        list[str | dict[str, Any]], Many, AfterValidator(_Strategies(family)), PlainSerializer(
            lambda values: values and [one.said for one in values])] for family in FAMILIES)
RulesNames = Annotated[list[Rules], Many, Distinct, AfterValidator(_no_condition)]
Conditions = Annotated[list[Condition], Many, Distinct]
Perturbations = Annotated[list[Annotated[str, AfterValidator(
    lambda name: str(Perturbation.parse(name)))]], Many, Distinct]
Shows = Annotated[list[Show], Many, Distinct]
Formats = Annotated[list[Format], Many, Distinct]
AnswerFormats = Annotated[list[AnswerFormat], Many, Distinct]
Framings = Annotated[list[Framing], Many, Distinct]
Cuts = Annotated[list[ChunkerSettings], ListOf(0), Distinct]
Embeddings = Annotated[list[EmbedderSettings], ListOf(0), Distinct]
Seeds = Annotated[list[int], Many, Distinct]
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
