"""Things that every run in a process would make again, made once: most of the time of a small run."""
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpcore2
import kept_workers
import pytest
from jinja2 import Environment

from ragbed.documents import workers
from ragbed.experiments.commands.help import Commands
from ragbed.retrieval.lexical import tokenizers


@contextmanager
def made_once() -> Iterator[None]:
    """Compile report templates, build the command line, start parsing processes, load the Korean analyser and read the
    certificates of the system only once."""
    compile_, compiled = Environment.compile, {}

    def compile_once(environment: Environment, source: str, name: Any = None, filename: Any = None, *more: Any) -> Any:
        key = (filename, source)
        if filename is None or key not in compiled:
            compiled[key] = compile_(environment, source, name, filename, *more)
        return compiled[key]

    make_command, commands = Commands.get_command, {}

    def make_command_once(group: Commands, context: Any, name: str) -> Any:
        target = group.targets.get(name)
        key = (name, group._load(name, target)) if isinstance(target, str) else (name, target)
        if key not in commands:
            commands[key] = make_command(group, context, name)
        return commands[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Commands, "get_command", make_command_once)
        patch.setattr(Environment, "compile", compile_once)
        patch.setattr(httpcore2, "default_ssl_context", functools.cache(httpcore2.default_ssl_context))
        patch.setattr(tokenizers, "_kiwi", functools.cache(_small_kiwi))
        patch.setattr(workers, "Worker", kept_workers.KeptWorker)
        yield
    kept_workers.end_all()


def _small_kiwi() -> Any:
    """Load the Korean analyser without its dictionary of names of several words, in half of the ten seconds."""
    from kiwipiepy import Kiwi

    return Kiwi(load_multi_dict=False)
