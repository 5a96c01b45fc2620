"""Settings of a run: a YAML file, closed and typed. A scalar stands for a list of one."""
from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from agents.catalogue import DEFAULT
from agents.settings import Limits, ModelSettings
from documents.errors import SettingsError
from documents.types import Format
from experiments.benchmarks import BenchmarkSettings
from experiments.judges import JudgeSettings, Lexical
from experiments.metrics.scored import Scoring
from retrieval.conditions import Condition
from retrieval.settings import IndexSettings
from strategies.catalogue import reasoning, retrieval
from strategies.types import Layout, Rules


def _listed(value: Any) -> Any:
    if value == []:
        raise ValueError("an empty list; name at least one, or leave the key out")
    return value if isinstance(value, list) else [value]


def _distinct(values: list[Any]) -> list[Any]:
    if len(values) != len({str(value) for value in values}):
        raise ValueError("names a value twice")
    return values


def _judge_by_name(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return {"kind": "lexical"} if value == "lexical" else {"kind": "model", "model": value}


def _known_reasoning(name: str) -> str:
    reasoning(name)
    return name


def _known_retrieval(name: str) -> str:
    retrieval(name)
    return name


def _no_condition(rules: list[Rules]) -> list[Rules]:
    if "closed-book" in rules:
        raise ValueError("closed-book rules come with the condition of that name; set conditions: closed-book")
    return rules


def _folder_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}", name):
        raise ValueError(f"{name!r} cannot name the run's folder; give a `name` of letters, digits and . _ - only")
    return name


ReasoningName = Annotated[str, AfterValidator(_known_reasoning)]
RetrievalName = Annotated[str, AfterValidator(_known_retrieval)]


class Closed(BaseModel):
    """Unknown keys are refused, values are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Dense(Closed):
    """Dense retrieval.

    Attributes:
        name: what tables call it; by default `dense@k`.
        k: chunks per search.
        index: an index folder made by `ragbed index`; None builds one over the benchmark's corpus.
        build: how that index is built.
    """

    kind: Literal["dense"] = "dense"
    name: str = ""
    k: int = Field(default=5, ge=1, le=1000)
    index: Path | None = None
    build: IndexSettings = IndexSettings()

    @model_validator(mode="before")
    @classmethod
    def _named(cls, fields: Any) -> Any:
        if isinstance(fields, dict) and not fields.get("name"):
            return {**fields, "name": f"dense@{fields.get('k', 5)}"}
        return fields


Many = BeforeValidator(_listed)


class _Loader(yaml.SafeLoader):
    """Refuses a key that a mapping has twice; else the later value would win without a word."""

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if (key.tag, key.value) in seen:
                raise yaml.MarkedYAMLError(problem=f"line {key.start_mark.line + 1} gives the key {key.value!r} again; "
                                                   "keep one of the two")
            seen.add((key.tag, key.value))
        return node


class RunSettings(Closed):
    """One experiment. Lists are factors: their product is the set of cells."""

    name: Annotated[str, AfterValidator(_folder_name)]
    out: Path = Path("runs")
    benchmark: BenchmarkSettings
    models: Annotated[list[str], Many, AfterValidator(_distinct)] = [DEFAULT]
    reasoning: Annotated[list[ReasoningName], Many, AfterValidator(_distinct)] = ["direct"]
    retrieval: Annotated[list[RetrievalName], Many, AfterValidator(_distinct)] = ["once"]
    retriever: Annotated[list[Dense], Many] = [Dense(name="dense@5")]
    rules: Annotated[list[Rules], Many, AfterValidator(_distinct), AfterValidator(_no_condition)] = ["grounded"]
    conditions: Annotated[list[Condition], Many, AfterValidator(_distinct)] = ["given"]
    formats: Annotated[list[Format], Many, AfterValidator(_distinct)] = ["plain"]
    layout: Layout = "documents_first"
    repeats: int = Field(default=1, ge=1)
    judge: Annotated[JudgeSettings, BeforeValidator(_judge_by_name)] = Lexical()
    scoring: Scoring = "corrected"
    seed: int = 0
    limits: Limits = Limits()
    calls: ModelSettings = ModelSettings()
    concurrency: int = Field(default=8, ge=1, le=1024)

    @model_validator(mode="after")
    def _retrievers_differ(self) -> RunSettings:
        names = [one.name for one in self.retriever]
        if len(names) != len(set(names)):
            raise ValueError(f"two retrievers are called {names[0]}; give each a `name` of its own")
        return self

    @property
    def folder(self) -> Path:
        return self.out / self.name

    def resolved(self) -> str:
        """Every setting, defaults included, as YAML."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def read_settings(path: Path) -> RunSettings:
    """The settings of a YAML file. Relative paths in it count from the current folder, as on the command line.

    Raises:
        SettingsError: one line that names the file, the key and what is wrong.
    """
    try:
        content = _plain(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from error
    except RecursionError:
        raise SettingsError(f"{path}: not readable as YAML: nested beyond reason") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: not readable as YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise SettingsError(f"{path}: a mapping of settings is expected")
    return check_settings({"name": path.stem, **content}, str(path))


def _plain(text: str) -> Any:
    loader = _Loader(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


def check_settings(content: dict[str, Any], where: str) -> RunSettings:
    """Typed settings from plain ones; SettingsError names the first thing that does not fit."""
    try:
        return RunSettings.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise SettingsError(f"{where}: {explain(first, RunSettings)}") from error


def explain(error: Any, model: type[BaseModel]) -> str:
    """One line for a pydantic error: the key, what is wrong with it, and the valid keys of a typo."""
    key = ".".join(str(part) for part in error["loc"]) or "settings"
    if error["type"] == "extra_forbidden":
        return f"unknown setting {key!r}; there are: {', '.join(_keys_at(model, error['loc'][:-1]))}"
    message = error["msg"].removeprefix("Value error, ")
    return f"{key}: {message}"


def _keys_at(model: type[BaseModel], place: Sequence[int | str]) -> list[str]:
    """The valid keys of the mapping at a place of an error; a place may name the `kind` of one of several."""
    models = [model]
    for part in place:
        inner = [below for one in models if part in one.model_fields
                 for below in _models_in(one.model_fields[str(part)].annotation)]
        kinds = [one for one in models if "kind" in one.model_fields and one.model_fields["kind"].default == part]
        models = inner or kinds or models
    return list(dict.fromkeys(key for one in models for key in one.model_fields))


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models_in(part)]
