"""Playing a recipe inside another one, with a say in what it asks for."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from typing import Any, TypeVar

End = TypeVar("End")


def driven(recipe: Generator[Any, Any, End], rewrite: Callable[[Any], Any]) -> Generator[Any, Any, End]:
    """Play a recipe to its end, and return what it returns.

    Args:
        rewrite: whatever it asks for, each of a list alone, before it goes out.
    """
    with contextlib.closing(recipe):
        result: Any = None
        while True:
            try:
                asked = recipe.send(result)
            except StopIteration as end:
                returned: End = end.value
                return returned
            result = yield [*map(rewrite, asked)] if isinstance(asked, list) else rewrite(asked)
