"""Playing a strategy that is none of the project's: what its code raises is a failure of the question, and never the
end of the run."""
from __future__ import annotations

from collections.abc import Callable, Generator
from functools import wraps
from typing import Any

from documents.errors import RagbedError, RecipeFailed
from strategies.settings.source import failing_line, raised_by_code
from strategies.types import Passage


def guarded(kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with whatever it raises raised as RecipeFailed, in one line, and evidence that is none too.

    Args:
        kind: what settings call it.
    """

    @wraps(function)
    def recipe(*given: Any, **values: Any) -> Generator[Any, Any, Any]:
        inner = function(*given, **values)
        try:
            returned = yield from inner
        except RagbedError:
            raise
        except raised_by_code() as error:
            raise RecipeFailed(f"{kind}: {failing_line(error)}") from error
        if len(given) > 1 and not _is_evidence(returned):
            raise RecipeFailed(f"{kind} returns {returned!r:.60}; it has to end with the evidence, a tuple of what "
                               "searches found")
        return returned

    return recipe


def _is_evidence(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(one, Passage) for one in value)
