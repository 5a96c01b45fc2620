"""Playing a recipe inside another one, with a say in what it asks for."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from typing import Any, TypeVar

End = TypeVar("End")


def driven(recipe: Generator[Any, Any, End], rewrite: Callable[[Any], Any] = lambda asked: asked,
           came: Callable[[Any, Any], None] = lambda asked, result: None) -> Generator[Any, Any, End]:
    """Play a recipe to its end, and return what it returns.

    Args:
        rewrite: whatever it asks for, each of a list alone, before it goes out.
        came: told what went out and its result, before the recipe is.
    """
    with contextlib.closing(recipe):
        result: Any = None
        while True:
            try:
                asked = recipe.send(result)
            except StopIteration as end:
                returned: End = end.value
                return returned
            sent = [*map(rewrite, asked)] if isinstance(asked, list) else rewrite(asked)
            result = yield sent
            came(sent, result)
