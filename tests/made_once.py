"""Things that every run in a process would make again, made once: most of the time of a small run."""
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from jinja2 import Environment
from typer import main

from ragbed.retrieval.lexical import korean


@contextmanager
def made_once() -> Iterator[None]:
    """Compile report templates, build the command line and load the Korean analyser only once."""
    compile_, compiled = Environment.compile, {}

    def compile_once(environment: Environment, source: str, name: Any = None, filename: Any = None, *more: Any) -> Any:
        key = (filename, source)
        if filename is None or key not in compiled:
            compiled[key] = compile_(environment, source, name, filename, *more)
        return compiled[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Environment, "compile", compile_once)
        patch.setattr(main, "get_command", functools.cache(main.get_command))
        patch.setattr(korean, "_kiwi", functools.cache(_small_kiwi))
        yield


def _small_kiwi() -> Any:
    """Load the Korean analyser without its dictionary of names of several words, in half of the ten seconds."""
    from kiwipiepy import Kiwi

    return Kiwi(load_multi_dict=False)
