"""The papers' result tables as printed, shown with a run's own figures."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, ConfigDict

from ragbed.documents.errors import SettingsError
from ragbed.experiments.analysis.inputs import AnalysisInput
from ragbed.experiments.analysis.view import Value, View
from ragbed.experiments.metrics import Estimate, Scoring, aggregate, chain_pattern, estimate_clustered_share, may_refuse
from ragbed.experiments.question import Question
from ragbed.experiments.record import Result

_FOLDER = ("data", "published")
_DIGITS = 8
_ON_PAPERS = ("Rows marked `published` are copied from the paper, without percent signs; they were measured with other "
              "models, prompts and questions. Rows of this run have an interval.")

Factor = str | int | None | tuple[str, ...]


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PublishedColumn(_Closed):
    """A column of a paper's table, and the figure of a run that corresponds to it."""

    name: str
    metric: str | None = None  # ragbed's metric; None if no metric corresponds
    pattern: str | None = None  # the column shows the share of this chain outcome, such as `c w c`
    tags: dict[str, str] = {}  # tags of its questions, in addition to the table's
    cell: dict[str, Factor] = {}  # factor levels of its cells, in addition to the table's
    percent: bool = False  # the paper gives percentages


class PublishedRow(_Closed):
    """One row; `values` are as printed, one for each column."""

    model: str
    method: str
    values: tuple[str, ...]


class PublishedTable(_Closed):
    """One table of a paper."""

    name: str
    paper: str
    table: str  # number or description of the table
    caption: str
    n: str  # the number of questions, if the paper states it
    layout: str  # the order of the prompt
    judge: str | None  # the judge model, if there is one
    tags: dict[str, str] = {}  # tags of all columns; `cell` has the factor levels of all
    cell: dict[str, Factor] = {}
    columns: tuple[PublishedColumn, ...]
    rows: tuple[PublishedRow, ...]
    notes: tuple[str, ...] = ()  # known inconsistencies


def list_published() -> list[str]:
    """Return the names of the tables."""
    folder = files("ragbed.experiments").joinpath(*_FOLDER)
    return sorted(entry.name.removesuffix(".json") for entry in folder.iterdir() if entry.name.endswith(".json"))


@lru_cache(maxsize=32)
def load_published(name: str) -> PublishedTable:
    """Return the table of this name. `crest_3` is Table 3 of CReSt's paper. Raises SettingsError if it is unknown."""
    if name not in list_published():
        raise SettingsError(f"unknown published table {name!r}; there are: {', '.join(list_published())}")
    file = files("ragbed.experiments").joinpath(*_FOLDER, f"{name}.json")
    return PublishedTable.model_validate_json(file.read_bytes())


def match_figures(table: PublishedTable, cell: Mapping[str, Any], results: Sequence[Result],
                questions: Mapping[str, Question], scoring: Scoring, seed: int,
                grouped: Mapping[str, str] = MappingProxyType({})) -> list[Estimate | None]:
    """Return the cell's figure for each column, as a share rather than a percentage, or None."""
    known: dict[tuple[tuple[str, str], ...], dict[str, Estimate]] = {}
    found: list[Estimate | None] = []
    for column in table.columns:
        tags = table.tags | column.tags
        if not (column.metric or column.pattern) or not _is_of(cell, table.cell | column.cell):
            found.append(None)
            continue
        chosen = [result for result in results if (question := questions.get(result.question)) is not None
                  and all(value in question.tags.get(name, ()) for name, value in tags.items())]
        if column.pattern:
            chains = [(chain == tuple(one == "c" for one in column.pattern.split()), of)
                      for chain, of in zip((chain_pattern(result.scores) for result in chosen), (
                          grouped.get(result.question, result.question) for result in chosen), strict=True)
                      if len(chain) == len(column.pattern.split())]  # chains of that length
            found.append(estimate_clustered_share(*zip(*chains, strict=True)) if chains else None)
            continue
        key = tuple(sorted(tags.items()))
        if key not in known:
            known[key] = cell["metrics"] if len(chosen) == len(results) else aggregate(
                chosen, scoring, seed, refusing=may_refuse(cell["rules"]),
                clusters=[grouped.get(result.question, result.question) for result in chosen]) if chosen else {}
        found.append(known[key].get(column.metric or ""))
    return found


def _is_of(cell: Mapping[str, Any], wanted: Mapping[str, Factor]) -> bool:
    return all(cell.get(name) in (value if isinstance(value, tuple) else (value,)) for name, value in wanted.items())


def paper_views(material: AnalysisInput) -> list[View]:
    """Return the papers' tables. If any figure of the run corresponds, the run's rows come first."""
    return [_paper(load_published(name), material) for name in material.published]


def _paper(table: PublishedTable, material: AnalysisInput) -> View:
    shares = [column.percent for column in table.columns]
    unit = "All figures are in percent." if all(shares) else "Columns with % are in percent." if any(shares) else ""
    names = [f"{one.name}, %" if one.percent and not all(shares) else one.name for one in table.columns]
    own = [row for label, cell in material.labelled() if (row := _own_row(table, label, cell, material))]
    judged = f"; judge: {table.judge}" if table.judge else ""
    measured = f"{table.table}; n: {table.n}; prompt: {table.layout}{judged}"
    printed = [("published", f"{row.model} {row.method}".strip(), measured, *(
        text.removesuffix("%").rstrip() if column.percent else text
        for text, column in zip(row.values, table.columns, strict=True))) for row in table.rows]
    notes = (_ON_PAPERS, *([unit] if unit else []), *table.notes)
    return View(f"paper:{table.name}", f"{table.paper}, {table.table}: {table.caption}",
                ("source", "row", "measured", *names), (*own, *printed), 3, 3, notes, section="Published figures",
                folded=not own)


def _own_row(table: PublishedTable, label: str, cell: Mapping[str, Any],
             material: AnalysisInput) -> tuple[Value, ...] | None:
    figures = match_figures(table, cell, material.results.get(cell["id"], []), material.questions, cell["scoring"],
                          material.seed, material.clusters)
    if all(figure is None or figure["mean"] is None for figure in figures):
        return None
    judged = f"; judge: {cell['judge']}" if table.judge and cell["judge"] else ""
    measured = f"this run, {cell['scoring']} scoring; n: {cell['n']}; prompt: {cell.get('layout')}{judged}"
    return "this run", {"text": label, "cells": [label]}, measured.replace("_", " "), *(
        _convert_unit(figure, column) for figure, column in zip(figures, table.columns, strict=True))


def _convert_unit(figure: Estimate | None, column: PublishedColumn) -> Value:
    if figure is None or figure["mean"] is None:
        return None
    scale = 100 if column.percent else 1
    low, high = (None if bound is None else round(bound * scale, _DIGITS) for bound in (figure["low"], figure["high"]))
    return {"mean": round(figure["mean"] * scale, _DIGITS), "low": low, "high": high, "n": figure["n"]}
