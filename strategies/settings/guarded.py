"""Playing a strategy that is none of the project's: what its code raises or breaks of the protocol is a failure of the
question, and never the end of the run, in whatever strategy it is a part of."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator
from functools import wraps
from typing import Any

from documents.errors import RagbedError, RecipeFailed
from strategies.protocol import check_asked, draft_of
from strategies.settings.source import RAISED_BY_CODE, aside, failing_line
from strategies.types import Passage


def guarded(kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with whatever it raises raised as RecipeFailed, in one line, and with all that it yields and returns
    checked, before the strategy around it takes it.

    Args:
        kind: what settings call it.
    """

    @wraps(function)
    def recipe(*given: Any, **values: Any) -> Generator[Any, Any, Any]:
        try:
            returned = yield from _checked(kind, function(*given, **values))
        except RagbedError:
            raise
        except RAISED_BY_CODE as error:
            raise RecipeFailed(f"{kind}: {failing_line(error)}") from error
        with _naming(kind):
            (_check_evidence if len(given) > 1 else _check_answer)(returned)
        return returned

    return recipe


def _checked(kind: str, inner: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """The recipe, each of its wishes checked."""
    result: Any = None
    try:
        while True:
            try:
                with aside():
                    asked = inner.send(result)
            except StopIteration as end:
                return end.value
            with _naming(kind):
                check_asked(asked)
            result = yield asked
    finally:
        with aside():
            inner.close()


@contextlib.contextmanager
def _naming(kind: str) -> Iterator[None]:
    """Says whose the breach is."""
    try:
        yield
    except RecipeFailed as error:
        raise RecipeFailed(f"{kind}: {error}") from None


def _check_answer(value: Any) -> None:
    if draft_of(value).gathered is not None:
        raise RecipeFailed("the strategy makes a draft with gathered, which only search_only does")


def _check_evidence(value: Any) -> None:
    if not (isinstance(value, tuple) and all(isinstance(one, Passage) for one in value)):
        raise RecipeFailed(f"the strategy returned {value!r:.60}; it has to end with the evidence, a tuple of what "
                           "searches found")
