"""The parameters of a strategy: the keyword-only arguments of its function, checked by their annotations."""
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

from ragbed.documents.errors import SettingsError
from ragbed.strategies.settings.exemplars import Exemplars
from ragbed.strategies.types import Reasoning, Retrieval

_MOST_SETTINGS = 1_000  # that a sweep stands for; each is a cell of a run
_TAKEN = ("kind", "name")  # which settings of every strategy have


@cache
def parameter_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotation of every parameter by name, those after the star in the function's signature; SettingsError
    where one has none, or one that cannot be resolved."""
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        raise SettingsError(f"strategy {function.__name__}: its annotations cannot be read: {error}") from error
    named = [one.name for one in inspect.signature(function).parameters.values() if one.kind is one.KEYWORD_ONLY]
    for name in named:
        if name not in hints:
            raise SettingsError(f"strategy {function.__name__}: annotate its parameter {name}, as in `{name}: int = 3`")
        if name in _TAKEN or name.startswith("_") or hasattr(BaseModel, name):
            raise SettingsError(f"strategy {function.__name__}: no parameter can be called {name}; give it another "
                                "name")
    return {name: hints[name] for name in named}


def validate_parameters(kind: str, function: Callable[..., Any], given: Mapping[str, Any],
            opened: Callable[[str, Any], Any]) -> dict[str, Any]:
    """Return the values of the parameters that are given to the strategy `kind`, each as its annotation demands, in the
    signature's order; `opened` returns those of a `reasoning` or `retrieval` strategy, or of a file of `exemplars`.
    Raises SettingsError in one line: an unknown or a missing parameter, or a value that does not fit."""
    model = _model(function)
    try:
        values = model.model_validate({str(name): value for name, value in given.items()}, context=opened)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        if first["type"] == "extra_forbidden":
            known = ", ".join(model.model_fields) or "none"
            raise SettingsError(f"strategy {kind}: no parameter is called {place}; there are: {known}") from error
        if first["type"] == "missing":
            raise SettingsError(f"strategy {kind}: {place} has to be given") from error
        raise SettingsError(f"strategy {kind}: {place}: {first['msg'].removeprefix('Value error, ')}") from error
    return {name: getattr(values, name) for name in parameter_hints(function) if name in given}


def parameter_default(function: Callable[..., Any], name: str) -> Any:
    """Return the default of a parameter; `inspect.Parameter.empty` where it has to be given."""
    return inspect.signature(function).parameters[name].default


def expand_sweep(function: Callable[..., Any], given: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the settings of a sweep one by one, where parameters that are no lists are given lists; SettingsError where
    a list is empty, or they are more than a run could ask."""
    hints = parameter_hints(function)
    lists = {name: value for name, value in given.items()
             if isinstance(value, list) and name in hints and not _takes_several(hints[name])}
    for name, value in lists.items():
        if not value:
            raise SettingsError(f"strategy {function.__name__}: {name}: an empty list; give a value, or leave it out")
    if (count := math.prod(map(len, lists.values()))) > _MOST_SETTINGS:
        raise SettingsError(f"strategy {function.__name__}: its lists stand for {count:,} strategies, of which a run "
                            f"takes {_MOST_SETTINGS:,}; shorten {' or '.join(lists)}")
    for values in product(*lists.values()):
        yield {**given, **dict(zip(lists, values, strict=True))}


def is_strategy(hint: Any) -> bool:
    """Tell whether a parameter is a strategy itself."""
    return _bare(hint) in (Reasoning, Retrieval)


@cache
def _model(function: Callable[..., Any]) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for name, hint in parameter_hints(function).items():
        default, bare = parameter_default(function, name), _bare(hint)
        if bare in (Reasoning, Retrieval, Exemplars):
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
    """Return the JSON Schema of each parameter by name, with its default where it has one that JSON can say. One that
    is a strategy has the name of its family as its description: `reasoning` or `retrieval`."""
    found: dict[str, dict[str, Any]] = {}
    for name, hint in parameter_hints(function).items():
        default, bare = parameter_default(function, name), _bare(hint)
        if is_strategy(hint):
            usual = {"default": default.__name__} if inspect.isfunction(default) else {}
            found[name] = {"description": bare.__name__.lower(), **usual}
        elif bare is Exemplars:
            found[name] = {"type": "string", "description": "a JSON Lines file of worked examples"}
        else:
            usual = {} if default is inspect.Parameter.empty else {"default": default}
            schema: dict[str, Any] = {}
            with contextlib.suppress(PydanticUserError):  # a type of a plug-in's own
                schema = TypeAdapter(hint).json_schema()
            found[name] = {**schema, **usual}
    return found


def takes_several(function: Callable[..., Any], name: str) -> bool:
    """Tell whether a list given for a parameter is one value of it, and no sweep."""
    return _takes_several(parameter_hints(function)[name])
