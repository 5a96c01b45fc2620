"""Playing a strategy that is none of the project's: what its code raises, or does against the protocol, is a failure
of the question, and never the end of the run."""
from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import suppress
from functools import wraps
from typing import Any

from documents.errors import RagbedError, RecipeFailed
from strategies.source import failing_line, raised_by_code
from strategies.types import Decision, Draft, Generate, Passage, Search

_MOST_IDLE = 1_000  # decisions and empty lists in a row


def guarded(kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with whatever it raises, yields or returns out of place raised as RecipeFailed, in one line.

    Args:
        kind: what settings call it.
    """

    @wraps(function)
    def recipe(*given: Any, **values: Any) -> Generator[Any, Any, Any]:
        inner, sent, idle = function(*given, **values), None, 0
        try:
            while True:
                asked = inner.send(sent)
                idle = 0 if _performed(kind, asked) else idle + 1
                if idle > _MOST_IDLE:
                    raise RecipeFailed(f"{kind} decides without end, and asks for nothing")
                sent = yield asked
        except StopIteration as end:
            return _returned(kind, end.value, is_gathering=len(given) > 1)
        except RagbedError:
            raise
        except raised_by_code() as error:
            raise RecipeFailed(f"{kind}: {failing_line(error)}") from error
        finally:
            with suppress(*raised_by_code()):  # what it does after its end is of no interest
                inner.close()

    return recipe


def _performed(kind: str, asked: Any) -> bool:
    """Whether what was yielded is to be performed; RecipeFailed where it is nothing that a recipe may ask for."""
    if isinstance(asked, Decision):
        return False
    several = asked if isinstance(asked, list) else [asked]
    if {type(one) for one in several} not in ({Search}, {Generate}, set()):
        raise RecipeFailed(f"{kind} yields {asked!r:.60}; a recipe yields a Search, a Generate, a list of one of the "
                           "two, or a Decision")
    return bool(several)


def _returned(kind: str, value: Any, is_gathering: bool) -> Any:
    fits = isinstance(value, tuple) and all(isinstance(one, Passage) for one in value) if is_gathering else \
        isinstance(value, Draft)
    if not fits:
        raise RecipeFailed(f"{kind} returns {value!r:.60}; it has to end with " + (
            "the evidence, a tuple of what searches found" if is_gathering else "a Draft"))
    odd = [name for name, figure in value.figures.items() if not isinstance(figure, int | float)] if isinstance(
        value, Draft) else []
    if odd:
        raise RecipeFailed(f"{kind} measures {odd[0]!r:.60} as {value.figures[odd[0]]!r:.60}; figures are numbers")
    return value
