"""The setting `metrics`: functions of users that score records, each as `FILE.py:FUNCTION` or with its properties.

An error is data: the record keeps its text instead of values, the summary counts it, and the answer has no score. A
function gets an immutable view of the record and `SECONDS` per record (`agents.watchdog`).
"""
from __future__ import annotations

import inspect
import math
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from numbers import Real
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

from pydantic import AfterValidator, BaseModel, ConfigDict, RootModel, ValidationError, model_validator

from ragbed.agents.watchdog import WATCHED, watchdog
from ragbed.documents.errors import RecipeFailed, SettingsError, did_you_mean
from ragbed.documents.types import digest
from ragbed.documents.user_code import UserCode
from ragbed.experiments.cells import Cell
from ragbed.experiments.guests.own_metrics.record_view import view_record
from ragbed.experiments.metrics import Metric, declare_metrics, score_result
from ragbed.experiments.metrics.metric import MetricGroup
from ragbed.experiments.metrics.scoring import BUILT_IN
from ragbed.experiments.question import Question, Scheme
from ragbed.experiments.record import Result
from ragbed.experiments.settings.validation import explain
from ragbed.strategies.settings.plugins import parse_file_kind
from ragbed.strategies.settings.source import execute_file, resolve_file

if TYPE_CHECKING:
    from ragbed.experiments.running.plan import Plan
    from ragbed.experiments.runs.store import RunFolder

SECONDS = 10.0  # per record
_HANGS = 3  # a function that did not return for this many answers is not called again
_LATE = "it did not return in time"
PIN = "own metrics"  # the name under which a run keeps the hash of its functions
_LARGEST, _MOST, _LONGEST = 1e15, 50, 300  # of a value, of names per function, of characters of an error
_ADDRESS = re.compile(r"0x[0-9a-f]{4,}")
Where = Literal["all", "answered", "answerable", "unanswerable"]
_OVER: dict[Where, str] = {"all": "all questions", "answered": "answered questions",
                           "answerable": "answerable questions", "unanswerable": "unanswerable questions"}
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)
_MODULE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", re.ASCII)


def _check_place(place: str) -> str:
    if parse_file_kind(place) is None and not _MODULE.fullmatch(place):
        raise ValueError(f"{place!r} does not name a function; write FILE.py:FUNCTION or package.module:FUNCTION")
    return place


def check_name(name: str) -> str:
    """Return the name of a metric. Raises ValueError if it is no name, or a metric of ragbed has it."""
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r:.60} is not a metric's name: use lower-case letters, digits and _, at most 40")
    if name in BUILT_IN:
        raise ValueError(f"{name} is a metric of ragbed; choose another name")
    return name


class OwnMetric(BaseModel):
    """A function of one record to a number, or to several numbers by name.

    Attributes:
        metric: `FILE.py:FUNCTION`, relative to the current folder, or `package.module:FUNCTION`.
        name: its name in tables, files and settings. By default the function's.
        names: the keys of the dict that it returns, in the order of the columns. Only a `headline` needs them.
        where: the questions that it applies to: `all`, `answered` (neither refused nor failed), `answerable` or
            `unanswerable`.
        better: whether `more` or `less` is better.
        range: lowest and highest value. By default any number; if all values are 0 or 1, they count as shares.
        help: what it measures, for the report.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    metric: Annotated[str, AfterValidator(_check_place)]
    name: str = ""
    names: tuple[Annotated[str, AfterValidator(check_name)], ...] = ()
    where: Where = "all"
    better: Literal["more", "less"] = "more"
    range: tuple[float, float] | None = None
    help: str = ""

    @model_validator(mode="before")
    @classmethod
    def _name_function(cls, fields: Any) -> Any:
        fields = {"metric": fields} if isinstance(fields, str) else fields
        if callable(fields):
            raise ValueError(f"{fields!r:.60} is a function; name it as 'FILE.py:FUNCTION', so that it can be recorded")
        named = isinstance(fields, dict) and isinstance(fields.get("metric"), str) and not fields.get("name")
        return {**fields, "name": fields["metric"].rpartition(":")[2]} if named else fields

    @model_validator(mode="after")
    def _check(self) -> OwnMetric:
        check_name(self.name)
        if self.range is not None and not -math.inf < self.range[0] < self.range[1] < math.inf:
            raise ValueError(f"range: {list(self.range)} is not a lowest and a highest value, such as [0, 1]")
        return self

    @property
    def told(self) -> tuple[str, ...]:
        """Return the names of its metrics that are known before the run."""
        return self.names or (self.name,)

    def made(self, name: str) -> Metric:
        """Return the metric of this name that the function computes."""
        low, high = self.range or (None, None)
        return Metric(name, self.help or f"computed by {self.metric}", _OVER[self.where], low=low, high=high,
                      share=self.range in (None, (0, 1)), less=self.better == "less")

    def applies(self, result: Result) -> bool:
        """Return whether the metric applies to an answer."""
        return {"all": True, "answered": result.outcome == "answered", "answerable": result.answerable,
                "unanswerable": not result.answerable}[self.where]

    def load(self) -> tuple[Callable[[Any], Any], str]:
        """Execute the file, or import the module. Return the function and a hash of its source. Raises SettingsError
        with the place if that fails, or the function cannot take one record."""
        _guard_exit()
        module, content = self._module()
        name = self.metric.rpartition(":")[2]
        function = getattr(module, name, None)
        if not callable(function):
            there = [one for one, value in vars(module).items() if inspect.isfunction(value)
                     and value.__module__ == module.__name__ and not one.startswith("_")]
            raise SettingsError(f"metrics: {self.metric}: there is no function {name!r}; {did_you_mean(name, there)}"
                                f"its functions: {', '.join(there[:9]) or 'none'}")
        shape = f"write a plain function of one record, as in def {name}(record)"
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            raise SettingsError(f"metrics: {self.metric}: the function is async or has a yield; {shape}")
        try:
            inspect.signature(function).bind(None)
        except (TypeError, ValueError) as error:
            raise SettingsError(f"metrics: {self.metric}: it cannot take one record ({error}); {shape}") from None
        return function, content

    def _module(self) -> tuple[Any, str]:
        place = parse_file_kind(self.metric)
        if place is not None:
            return execute_file(resolve_file(place[0]), str(place[0]))
        name = self.metric.partition(":")[0]
        with UserCode(lambda line: SettingsError(f"metrics: {self.metric}: {line}; a file is named with its ending, as "
                                                 f"in {name.replace('.', '/')}.py:FUNCTION")):
            module = import_module(name)
        return module, digest(inspect.getsource(module)) if getattr(module, "__file__", None) else name


def read_metrics(specs: Sequence[Any]) -> OwnMetrics:
    """Return the metrics of these values of the setting. Raises SettingsError if one is not valid."""
    try:
        return OwnMetrics.model_validate(list(specs))
    except ValidationError as error:
        raise SettingsError(f"metrics: {explain(error, OwnMetric)}") from None


def _allow_names(schema: dict[str, Any]) -> None:
    one = [{"type": "string"}, schema.pop("items")]
    schema.pop("type")
    schema["anyOf"] = [*one, {"type": "array", "items": {"anyOf": one}}]


class OwnMetrics(RootModel[tuple[OwnMetric, ...]]):
    """Custom metrics: functions of a record to a number, as `FILE.py:FUNCTION` or with properties."""

    model_config = ConfigDict(frozen=True, json_schema_extra=_allow_names)

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return value if isinstance(value, list | tuple) else [value]

    @model_validator(mode="after")
    def _declare(self) -> OwnMetrics:
        if twice := next((name for name, count in Counter(self.names).items() if count > 1), None):
            raise ValueError(f"two metrics have the name {twice}; give one of them a different `name`")
        declare_metrics(one.made(name) for one in self.root for name in one.told)
        return self

    @property
    def names(self) -> list[str]:
        """Return the names of the metrics that are known before the run."""
        return [name for one in self.root for name in one.told]

    def add_columns(self, scheme: Scheme) -> Scheme:
        """Return the scheme with a column for each metric whose name is known before the run."""
        return replace(scheme, columns=tuple(dict.fromkeys((*scheme.columns, *self.names))))

    def open(self) -> Measuring:
        """Load the functions. Raises SettingsError if one cannot be loaded."""
        return Measuring(self)

    def returned(self, results: Sequence[Result]) -> list[str]:
        """Return the names under which the functions returned values."""
        found = (result.measured.get(one.name) for one in self.root for result in results)
        return list(dict.fromkeys(name for values in found if isinstance(values, dict) for name in values))

    def review(self, results: Sequence[Result]) -> dict[str, str]:
        """Declare the names that functions returned. Describe how often each function failed, by metric."""
        said: dict[str, str] = {}
        for one in self.root:
            found = [result.measured[one.name] for result in results if one.name in result.measured]
            names = dict.fromkeys(name for values in found if isinstance(values, dict) for name in values)
            declare_metrics(map(one.made, names))
            if failed := Counter(why for why in found if isinstance(why, str)):
                why, most = failed.most_common(1)[0]
                text = (f"{one.name} failed on {failed.total():,} of {len(found):,} answers, which have no value: "
                        f"{why}{'' if most == failed.total() else f' ({most} times, and other errors)'}")
                said |= dict.fromkeys((*names, one.name), text)
        return said


def read_values(returned: Any, metric: OwnMetric) -> dict[str, float | None]:
    """Return what a function returned as values by name. Raises ValueError if it is neither a number nor numbers by
    name, or a number is out of range."""
    if not isinstance(returned, Mapping):
        if metric.names:
            raise ValueError(f"returned {returned!r:.60} instead of a dict with {', '.join(metric.names)}")
        return {metric.name: _number(returned, metric)}
    if len(returned) > _MOST or not all(isinstance(name, str) for name in returned):
        raise ValueError(f"returned a dict with {len(returned)} keys; it may have {_MOST}, each a text")
    if metric.names and (other := next((name for name in returned if name not in metric.names), None)) is not None:
        raise ValueError(f"returned the key {other!r:.60}, which is not among its `names`")
    return {check_name(name): _number(value, metric) for name, value in returned.items()}


def _number(value: Any, metric: OwnMetric) -> float | None:
    if value is None:
        return None
    value = value.item() if callable(getattr(value, "item", None)) else value  # a number of NumPy or PyTorch
    if not isinstance(value, Real):
        raise ValueError(f"returned {value!r:.60}, which is not a number")
    number, (low, high) = float(value), metric.range or (-_LARGEST, _LARGEST)
    if not low <= number <= high:  # also False for nan
        raise ValueError(f"returned {number:g}, which is not in its range, {low:g} to {high:g}")
    return number


@cache
def _guard_exit() -> None:
    """Let `os._exit` raise if a metric calls it. It would end the run without a word."""
    leave, process = os._exit, os.getpid()

    def leave_or_raise(status: int) -> NoReturn:
        frame = inspect.currentframe() if os.getpid() == process else None
        while frame is not None and frame.f_code is not call_guarded.__code__:
            frame = frame.f_back
        if frame is not None:
            raise RuntimeError(f"it called os._exit({status!r}), which would end the run")
        leave(status)

    os._exit = leave_or_raise


def call_guarded(function: Callable[[Any], Any], record: Any, until: float) -> Any:
    """Call a user's function. Raises RecipeFailed with its error in one line. The watchdog finds this call by its
    code, and ends it after `until`."""
    try:
        with UserCode(RecipeFailed):
            return function(record)
    except RecipeFailed:
        if time.monotonic() < until:
            raise
    raise RecipeFailed(_LATE)


WATCHED[call_guarded.__code__] = lambda local: ("the metric", local["record"].id)


class Measuring:
    """The loaded functions of a run.

    Attributes:
        content: one hash of the functions' sources, and of the settings that their values depend on.
    """

    def __init__(self, metrics: OwnMetrics) -> None:
        self._loaded = [(one, *one.load()) for one in metrics.root]
        self._late = Counter[str]()
        self.content = digest(*(part for one, _, content in self._loaded for part in (
            content, one.model_dump_json(exclude={"better", "help"}))))

    def measure(self, result: Result, question: Question, cell: Cell, text: Callable[[str], str]) -> Result:
        """Return the result with the values of every function. `text` returns a stored text by its hash."""
        record, measured = view_record(result, question, cell, text), dict(result.measured)
        for one, function, _ in self._loaded:
            if not one.applies(result):
                found: dict[str, float | None] | str = dict.fromkeys(one.told)
            else:
                found = _LATE if self._late[one.name] >= _HANGS else measure_one(one, function, record)
            self._late[one.name] += found == _LATE
            taken = {name for key, values in measured.items() if key != one.name and isinstance(values, dict)
                     for name in values}
            if isinstance(found, dict) and (same := taken & found.keys()):
                found = f"returned {min(same)}, which another metric of the run is called"
            measured[one.name] = found
        return result.model_copy(update={"measured": measured})


def measure_one(metric: OwnMetric, function: Callable[[Any], Any], record: Any) -> dict[str, float | None] | str:
    """Return the values of one record by name, or the error as text."""
    try:
        with UserCode(RecipeFailed, ValueError):  # what was returned may run code when it is read
            return read_values(call_guarded(function, record, time.monotonic() + SECONDS), metric)
    except (RecipeFailed, ValueError) as error:
        return _ADDRESS.sub("0x...", str(error))[:_LONGEST]


def refresh(plan: Plan, folder: RunFolder) -> Iterator[str]:
    """Compute the values of all stored records again if the functions or their settings have changed. This makes no
    call. Yield a note on it."""
    own = plan.measuring
    now = own.content if own else ""
    if folder.pins().get(PIN, "") == now:
        return
    cells, questions = {cell.id: cell for cell in plan.cells}, folder.questions()
    folder.reopen()
    count = 0
    with folder.database.transaction(), watchdog():
        for stored in folder.results(traces=True):
            cell, question = cells.get(stored.cell), questions.get(stored.question)
            if cell is not None and question is not None:
                bare = score_again(plan, stored.model_copy(update={"measured": {}}), cell, question)
                folder.replace_result(score_again(plan, own.measure(bare, question, cell, folder.database.text),
                                                  cell, question) if own else bare)
                count += 1
        folder.pin(PIN, now, replace=True)
    if count:
        yield f"the metrics have changed: computed for {count:,} stored answers, without a call"


def score_again(plan: Plan, result: Result, cell: Cell, question: Question) -> Result:
    """Return the result with its scores by the plan's scheme."""
    return score_result(result, question, plan.scheme, plan.settings.scoring, cell.rules, cell.separators, cell.ranked)


GROUP = MetricGroup((), lambda item, scoring: {
    name: value for values in item.extra.get("own_metrics", {}).values() if isinstance(values, dict)
    for name, value in values.items()}, material=lambda result, is_right: result.measured or None)
