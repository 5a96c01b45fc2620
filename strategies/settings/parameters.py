"""Validate the parameters of a strategy: the keyword-only arguments of its function, by their annotations."""
from __future__ import annotations

import contextlib
import inspect
import math
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import product
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, PlainValidator, TypeAdapter, ValidationError, ValidationInfo, create_model
from pydantic.errors import PydanticUserError

from ragbed.documents.errors import SettingsError, did_you_mean
from ragbed.strategies.settings.exemplars import Exemplars
from ragbed.strategies.types import Reasoning, Retrieval, Tools

_MAX_SETTINGS = 1_000  # strategies of one sweep; each becomes a cell of a run
_TAKEN = ("kind", "name")  # keys that the settings of every strategy have


@cache
def parameter_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of a strategy's parameters: the arguments after the star in its signature. Raises
    SettingsError if one is missing or cannot be resolved."""
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        raise SettingsError(f"strategy {function.__name__}: its annotations cannot be read: {error}") from error
    named = [one.name for one in inspect.signature(function).parameters.values() if one.kind is one.KEYWORD_ONLY]
    for name in named:
        if name not in hints:
            raise SettingsError(f"strategy {function.__name__}: annotate its parameter {name}, as in `{name}: int = 3`")
        if name in _TAKEN or name.startswith("_") or hasattr(BaseModel, name):
            raise SettingsError(f"strategy {function.__name__}: a parameter cannot be called {name}; give it another "
                                "name")
    return {name: hints[name] for name in named}


def validate_parameters(kind: str, function: Callable[..., Any], given: Mapping[str, Any],
            opened: Callable[[str, Any], Any], more: Sequence[str] = ()) -> dict[str, Any]:
    """Validate the parameters given to the strategy `kind`, and return their values in the signature's order. `more`
    are further keys that a message may suggest.

    `opened` is called to parse a nested `reasoning` or `retrieval` strategy, a file of `exemplars`, or `tools`.

    Raises:
        SettingsError: a parameter is unknown or missing, or a value is not valid.
    """
    model = _model(function)
    try:
        values = model.model_validate({str(name): value for name, value in given.items()}, context=opened)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        if first["type"] == "extra_forbidden":
            known = [*model.model_fields, *more]
            raise SettingsError(f"strategy {kind}: unknown parameter {place}; {did_you_mean(place, known)}choose from: "
                                f"{', '.join(known) or 'none'}") from error
        if first["type"] == "missing":
            raise SettingsError(f"strategy {kind}: {place} is required") from error
        raise SettingsError(f"strategy {kind}: {place}: {first['msg'].removeprefix('Value error, ')}") from error
    return {name: getattr(values, name) for name in parameter_hints(function) if name in given}


def parameter_default(function: Callable[..., Any], name: str) -> Any:
    """Return the default of a parameter; `inspect.Parameter.empty` if it is required."""
    return inspect.signature(function).parameters[name].default


def expand_sweep(function: Callable[..., Any], given: Mapping[str, Any],
                 more: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
    """Expand a sweep: yield one setting for each combination of listed values. `more` are keys of every strategy that
    may have several values, too. Raises SettingsError if a list is empty,
    or there are too many combinations for a run."""
    hints = parameter_hints(function)
    lists = {name: value for name, value in given.items()
             if isinstance(value, list) and (name in hints or name in more) and not _takes_several(hints.get(name))}
    for name, value in lists.items():
        if not value:
            raise SettingsError(f"strategy {function.__name__}: {name}: the list is empty; give a value, or omit the "
                                "key")
    if (count := math.prod(map(len, lists.values()))) > _MAX_SETTINGS:
        raise SettingsError(f"strategy {function.__name__}: its lists expand to {count:,} strategies, but a run takes "
                            f"at most {_MAX_SETTINGS:,}; shorten {' or '.join(lists)}")
    for values in product(*lists.values()):
        yield {**given, **dict(zip(lists, values, strict=True))}


def is_strategy(hint: Any) -> bool:
    """Return whether a parameter is itself a strategy."""
    return _bare(hint) in (Reasoning, Retrieval)


@cache
def _model(function: Callable[..., Any]) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for name, hint in parameter_hints(function).items():
        default, bare = parameter_default(function, name), _bare(hint)
        if bare in (Reasoning, Retrieval, Exemplars, Tools):
            hint = Annotated[Any, PlainValidator(partial(_open, bare.__name__.lower()))]
        fields[name] = (hint, ... if default is inspect.Parameter.empty else default)
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    return create_model(function.__name__, __config__=config, **fields)


def _open(name: str, value: Any, info: ValidationInfo) -> Any:
    assert info.context is not None
    return info.context(name, value)


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _takes_several(hint: Any) -> bool:
    hint = _bare(hint)
    if get_origin(hint) in (Union, types.UnionType):
        return any(map(_takes_several, get_args(hint)))
    origin = get_origin(hint) or hint
    return isinstance(origin, type) and issubclass(origin, Sequence | Mapping) and origin is not str


def fields_schema(function: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of each parameter by name, with its default if JSON can represent it. For a nested
    strategy, the description is its family: `reasoning` or `retrieval`."""
    found: dict[str, dict[str, Any]] = {}
    for name, hint in parameter_hints(function).items():
        default, bare = parameter_default(function, name), _bare(hint)
        if is_strategy(hint):
            usual = {"default": default.__name__} if inspect.isfunction(default) else {}
            found[name] = {"description": bare.__name__.lower(), **usual}
        elif bare is Exemplars:
            found[name] = {"type": "string", "description": "a JSON Lines file of worked examples"}
        elif bare is Tools:
            kinds = {"anyOf": [{"type": "string"}, {"type": "object"}]}
            found[name] = {"type": "array", "items": kinds, "description": "the tools that it may call",
                           **({"default": list(default)} if isinstance(default, Tools) else {})}
        else:
            usual = {} if default is inspect.Parameter.empty else {"default": default}
            schema: dict[str, Any] = {}
            with contextlib.suppress(PydanticUserError):  # a plug-in's custom type
                schema = TypeAdapter(hint).json_schema()
            found[name] = {**schema, **usual}
    return found


def takes_several(function: Callable[..., Any], name: str) -> bool:
    """Return whether a parameter takes a list as its value, so that a list is not a sweep."""
    return _takes_several(parameter_hints(function)[name])
