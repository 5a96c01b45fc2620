"""Run many small cases as one test, because pytest takes longer to manage a test than such a case takes."""
from collections.abc import Callable, Sequence
from typing import Any

import pytest


def each(names: str | tuple[str, ...], cases: Sequence[Any]) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Like `pytest.mark.parametrize`, but one test, which runs every case and reports all that fail."""
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)

    def decorate(test: Callable[..., None]) -> Callable[[], None]:
        def run() -> None:
            assert cases
            failed: list[BaseException] = []
            for case in cases:
                values = dict(zip(keys, case if len(keys) > 1 else [case], strict=True))
                try:
                    test(**values)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - reported below
                    error.add_note(f"in the case {values!r}")
                    failed.append(error)
            if len(failed) > 1:
                raise BaseExceptionGroup(f"{len(failed)} of {len(cases)} cases fail", failed)
            if failed:
                raise failed[0]

        run.__name__, run.__qualname__, run.__module__ = test.__name__, test.__qualname__, test.__module__
        run.__doc__ = test.__doc__
        return run

    return decorate
