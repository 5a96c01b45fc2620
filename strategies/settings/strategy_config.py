"""Parse strategies in settings: a name, or a mapping with `kind`, `name` and the strategy's own parameters.

`parse_strategy` validates a user's settings. This loads, and so executes, plug-ins, and reads files of worked examples.
For settings that were validated before, such as those stored with a run, pass `execute=False`: nothing is executed or
read until `loaded()` makes the strategy ready to run.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, cast

from ragbed.documents.errors import SettingsError
from ragbed.guests import entries, load
from ragbed.strategies.catalogue import HISTORY, REASONING, RETRIEVAL, SEARCH_ONLY
from ragbed.strategies.prompting import with_prompts
from ragbed.strategies.settings.exemplars import Exemplars, open_exemplars
from ragbed.strategies.settings.parameters import (
    expand_sweep,
    is_strategy,
    parameter_default,
    parameter_hints,
    validate_parameters,
)
from ragbed.strategies.settings.plugins import guard_recipe, load_plugin, parse_file_kind, plugin_label
from ragbed.strategies.settings.prompt_texts import OF_STRATEGY, check_text, shorten_text
from ragbed.strategies.settings.source import hash_file
from ragbed.strategies.types import Family, Reasoning, Retrieval, Tools

_MAX_NAME = 80  # characters
_MAX_SAMPLES = 1_000  # per question; a limit on calls would not help, since all samples start before the first call

_KNOWN: Mapping[Family, Mapping[str, Callable[..., Any]]] = {
    "reasoning": REASONING, "retrieval": RETRIEVAL, "history": HISTORY}

Spec = str | dict[str, Any]


@dataclass(frozen=True, slots=True)
class Strategy:
    """A strategy with its parameters.

    Attributes:
        spec: its settings in the shortest form, after validation.
        label: its name in tables.
        values: its parameters; nested strategies are `Strategy` objects. The values of a plug-in that is not loaded are
            not validated.
        content: hash of the source of a loaded plug-in; empty otherwise.
        samples: number of samples per question, nested samples included.
        tools: the tools of the strategy and its nested strategies.
        texts: its `instruction` and `system`, which replace the prompts of these names.
    """

    family: Family
    kind: str
    spec: Spec
    label: str
    values: Mapping[str, Any]
    content: str = ""
    samples: int = 1
    texts: Mapping[str, str] = field(default_factory=dict)
    tools: Tools = field(default_factory=Tools)

    @property
    def function(self) -> Callable[..., Any]:
        """Return the recipe with its parameters bound. The strategy must be loaded."""
        function = _function(self.family, self.kind)
        function = guard_recipe(self.family, self.kind, function) if self.is_plugin else function
        values = {name: value.function if isinstance(value, Strategy) else value for name, value in self.values.items()}
        return with_prompts(partial(function, **values) if values else function, self.texts)

    @property
    def is_plugin(self) -> bool:
        """Return whether the strategy is a plug-in rather than built in."""
        return self.kind not in built_in(self.family)

    @property
    def gathers(self) -> bool:
        """Return whether it may use the retrieval strategy. A built-in function that never does has `gathers = False`;
        one that leaves it to the strategy `of` has `gathers = "of"`."""
        own = self.is_plugin or getattr(_function(self.family, self.kind), "gathers", True)
        inner = self.values.get("of")
        return inner.gathers if own == "of" and isinstance(inner, Strategy) else bool(own)

    @property
    def searches(self) -> bool:
        """Return whether it may search: with the retrieval strategy, or with a tool."""
        return self.gathers or any(str(tool).startswith("search") for tool in self.tools)

    @property
    def parts(self) -> tuple[Strategy, ...]:
        """Return this strategy and its nested strategies, as far as they are known without loading plug-ins."""
        inner = (value.parts for value in self.values.values() if isinstance(value, Strategy))
        return self, *chain.from_iterable(inner)

    @property
    def has_plugins(self) -> bool:
        """Return whether it or a nested strategy is a plug-in."""
        return any(part.is_plugin for part in self.parts)

    @property
    def files(self) -> tuple[str, ...]:
        """Return every `FILE.py:FUNCTION` in its settings. Loading the strategy executes these files."""
        return tuple(dict.fromkeys(_files(self.spec)))

    @property
    def sources(self) -> dict[str, str]:
        """Return hashes of the sources of its plug-ins and tools, and of its files of worked examples, by name. The
        strategy must be loaded."""
        return {part.kind: part.content for part in self.parts if part.content} | {
            one.file: one.content for one in self.exemplars} | {
            file: hash_file(found[0]) for file in _files(list(self.tools)) if (found := parse_file_kind(file))}

    @property
    def exemplars(self) -> tuple[Exemplars, ...]:
        """Return the files of worked examples of a loaded strategy and its nested strategies."""
        return tuple(value for part in self.parts for value in part.values.values() if isinstance(value, Exemplars))

    @property
    def is_loaded(self) -> bool:
        """Return whether every plug-in was executed and every file of examples was read."""
        return (all(part.content or not part.is_plugin for part in self.parts)
                and all(one.examples for one in self.exemplars))

    def loaded(self) -> Strategy:
        """Return the strategy ready to run. Raises SettingsError if a plug-in or a file cannot be loaded."""
        return self if self.is_loaded else parse_strategy(self.family, self.spec)


def reasoning(spec: str | Mapping[str, Any]) -> Reasoning:
    """Return the reasoning strategy with this name or these settings. Raises SettingsError if they are not valid."""
    return cast(Reasoning, parse_strategy("reasoning", spec).function)


def retrieval(spec: str | Mapping[str, Any]) -> Retrieval:
    """Return the retrieval strategy with this name or these settings. Raises SettingsError if they are not valid."""
    return cast(Retrieval, parse_strategy("retrieval", spec).function)


def parse_strategy(family: Family, spec: Any, execute: bool = True) -> Strategy:
    """Parse a strategy in settings.

    Args:
        execute: load plug-ins and read files of worked examples. Pass False for settings that were validated before:
            the parameters of a plug-in are then taken as they are.

    Raises:
        SettingsError: the strategy is unknown, a plug-in or file cannot be loaded, or a parameter is not valid.
    """
    kind, name, given = _taken(family, spec)
    try:
        if execute or kind in built_in(family):
            return _opened(family, spec, execute)
        return Strategy(family, kind, spec, name or _label(kind, given), given)
    except RecursionError:
        raise SettingsError(f"{family}: strategies are nested too deeply") from None


def built_in(family: Family) -> Mapping[str, Callable[..., Any]]:
    """Return ragbed's own strategies of a family, by name."""
    return _KNOWN[family]


def sweep(family: Family, spec: Any) -> Iterator[Any]:
    """Yield the settings of each strategy in a sweep: one for each combination of listed values."""
    if not isinstance(spec, Mapping):
        yield spec
        return
    kind, name, given = _taken(family, spec)
    rows: list[dict[str, Any]] = list(expand_sweep(_function(family, kind), given, OF_STRATEGY))
    if name and len(rows) > 1:
        raise SettingsError(f"{family}: the name {name} would label {len(rows)} strategies; omit the name")
    yield from ({"kind": kind, **({"name": name} if name else {}), **row} for row in rows)


def _opened(family: Family, spec: Any, execute: bool) -> Strategy:
    kind, name, given = _taken(family, spec)
    function, content = _function(family, kind), ""
    if kind not in built_in(family):
        content = load_plugin(family, kind, tuple(built_in(family))).content
    texts = {one: check_text(given[one], f"{family} strategy {kind}: {one}") for one in OF_STRATEGY
             if one in given and one not in parameter_hints(function)}
    if texts and (family != "reasoning" or kind == SEARCH_ONLY):
        raise SettingsError(f"{family} strategy {kind}: {min(texts)} has no effect; it belongs to a strategy in "
                            "`reasoning` that answers. The setting `prompts` replaces the texts of all strategies")
    given = {one: value for one, value in given.items() if one not in texts}
    values = validate_parameters(kind, function, given, partial(_value, execute),
                                 OF_STRATEGY if family == "reasoning" else ())
    shown: dict[str, Any] = {}
    for one, value in values.items():
        default = parameter_default(function, one)
        if isinstance(value, Strategy):  # show its shortest form
            shown |= {one: value.spec} if value.spec != getattr(default, "__name__", None) else {}
        elif value != default:  # show numbers as parsed
            shown[one] = value if isinstance(value, bool | int | float | str) else given[one]
    shown |= texts
    label = name or (_label(kind, shown) if content else kind + _in_brackets(function, shown, values))
    settings: Spec = {"kind": kind, **({"name": name} if name else {}), **shown} if shown or name else kind
    own = values.get("samples", (function.__kwdefaults__ or {}).get("samples", 1))
    parts = [value.samples for value in values.values() if isinstance(value, Strategy)]
    samples = (own if isinstance(own, int) else 1) * max(parts, default=1)
    if samples > _MAX_SAMPLES:
        raise SettingsError(f"{family} strategy {kind}: its nested strategies draw {samples:,} samples per question; "
                            f"the maximum is {_MAX_SAMPLES:,}")
    own = [value for one in parameter_hints(function)
           if isinstance(value := values.get(one, parameter_default(function, one)), Tools)]
    tools = [*own, *(value.tools for value in values.values() if isinstance(value, Strategy) and value.tools)]
    if any(one != tools[0] for one in tools):
        raise SettingsError(f"{family} strategy {kind}: its nested strategies have different tools, but a question has "
                            "one set of tools; give all the same")
    return Strategy(family, kind, settings, label, values, content, samples, texts, tools[0] if tools else Tools())


def check_tools(spec: Any) -> Tools:
    """Return the validated value of a strategy's parameter `tools`. Raises SettingsError if it is not valid."""
    if not isinstance(spec, list | tuple):
        raise SettingsError(f"tools: expected a list such as [search], not {spec!r:.80}")
    check = entries("toolbox").get("check")
    if check is None:
        raise SettingsError("tools: no guest implements tools; install one with the slot `toolbox`")
    return Tools(load(check)(list(spec)))


def common_tools(strategies: Iterable[Strategy]) -> Tools:
    """Return the tools of the strategies that play a question. Raises SettingsError if two have different tools."""
    having = [one for one in strategies if one.tools]
    for one in having:
        if one.tools != having[0].tools:
            raise SettingsError(f"{having[0].label} and {one.label} have different tools, but a question has one set; "
                                "give both the same")
    return having[0].tools if having else Tools()


def _files(spec: Any) -> Iterator[str]:
    if isinstance(spec, str):
        yield from [spec] if parse_file_kind(spec) else []
    elif isinstance(spec, Mapping | list):
        for value in spec.values() if isinstance(spec, Mapping) else spec:
            yield from _files(value)


def _value(execute: bool, what: str, spec: Any) -> Strategy | Exemplars | Tools:
    if what == "tools":
        return check_tools(spec) if execute else Tools(spec)
    if what == "exemplars":
        return open_exemplars(spec, execute)
    found = parse_strategy(cast(Family, what), spec, execute)
    if found.kind == SEARCH_ONLY:
        raise SettingsError(f"reasoning: {SEARCH_ONLY} gives no answer, so it cannot be part of another strategy")
    return found


def _function(family: Family, kind: str) -> Callable[..., Any]:
    own = built_in(family)
    return own[kind] if kind in own else load_plugin(family, kind, tuple(own)).function


def _taken(family: Family, spec: Any) -> tuple[str, str, dict[str, Any]]:
    if isinstance(spec, str):
        return spec, "", {}
    if not isinstance(spec, Mapping) or not isinstance(spec.get("kind"), str):
        raise SettingsError(f"{family}: expected a name, or settings such as {{kind: NAME}}, not {spec!r:.80}")
    name = spec.get("name") or ""
    if not isinstance(name, str) or len(name) > _MAX_NAME or not name.isprintable() or name.isspace():
        raise SettingsError(f"{family}: a name must be one line of at most {_MAX_NAME} printable characters, not "
                            f"{name!r:.80}")
    return spec["kind"], name, {one: value for one, value in spec.items() if one not in ("kind", "name")}


def _in_brackets(function: Callable[..., Any], shown: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    """Format the parameters that differ from their defaults: strategies first. If a strategy can have only one inner
    strategy, it is shown without the parameter's name."""
    hints = parameter_hints(function)
    alone = sum(map(is_strategy, hints.values())) == 1
    inner = [f"{'' if alone else f'{name}='}{values[name].label}" for name in shown if is_strategy(hints.get(name))]
    spec = [f"{name}={Path(value).name if isinstance(values.get(name), Exemplars) else _plainly(value)}"
            for name, value in shown.items() if not is_strategy(hints.get(name))]
    return f"({', '.join([*inner, *spec])})" if shown else ""


def _label(kind: str, shown: Mapping[str, Any]) -> str:
    """Return a plug-in's label from its settings alone: inspecting its function would execute it."""
    plain = plugin_label(kind)
    plain = f"{plain}.py" if plain != kind and plain in (*REASONING, *RETRIEVAL, *HISTORY) else plain
    spec = [f"{name}={_plainly(value)}" for name, value in shown.items()]
    return f"{plain}({', '.join(spec)})" if spec else plain


def _plainly(value: Any) -> str:
    """Format a plug-in's parameter for its label. A nested strategy is shown by its own label."""
    if isinstance(value, list):
        return f"[{', '.join(map(_plainly, value))}]"
    if not isinstance(value, Mapping) or not isinstance(value.get("kind"), str):
        return shorten_text(value) if isinstance(value, str) else str(value)
    rest = {name: inner for name, inner in value.items() if name not in ("kind", "name")}
    return str(value.get("name") or _label(value["kind"], rest))
