"""What every run in this process would make anew, made once: most of the time of a small run."""
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from jinja2 import Environment
from typer import main


@contextmanager
def made_once() -> Iterator[None]:
    """Compile each template of the report and build the command line once, as long as this is entered."""
    compile_, compiled = Environment.compile, {}

    def compile_once(environment: Environment, source: str, name: Any = None, filename: Any = None, *more: Any) -> Any:
        key = (filename, source)
        if filename is None or key not in compiled:
            compiled[key] = compile_(environment, source, name, filename, *more)
        return compiled[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Environment, "compile", compile_once)
        patch.setattr(main, "get_command", functools.cache(main.get_command))
        yield
