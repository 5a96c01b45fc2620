"""The console command `ragbed`."""
from __future__ import annotations

import atexit
import errno
import gc
import io
import os
import sys
from collections.abc import Callable
from functools import cache, partial
from importlib import metadata
from typing import Annotated, NoReturn

import typer
from typer.exceptions import TyperException

from ragbed.experiments.commands.ask import ask, search
from ragbed.experiments.commands.index import index
from ragbed.experiments.commands.options import Command, refuse
from ragbed.experiments.commands.read import compare, diagnose, effects, report, show
from ragbed.experiments.commands.retrieval import evaluate_retrieval
from ragbed.experiments.commands.run import run
from ragbed.experiments.commands.share import cassette_export, cassette_show, export, judge, rescore, verify
from ragbed.experiments.commands.tools import demo, list_, list_models, new_strategy, pull, schema
from ragbed.guests import entries, leave_out, load

_EXAMPLES = """Examples:

ragbed demo

ragbed index docs/ --out idx && ragbed ask "How long is the warranty?" --index idx --model openai:gpt-4o-mini

ragbed run compare.yaml && ragbed report runs/compare"""


def about(version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False) -> None:
    """Find out which way of retrieving and reasoning answers, cites and refuses as it should."""
    if version:
        typer.echo(f"ragbed {metadata.version('ragbed')}")
        raise typer.Exit


# The commands of the core by the name that users type; those of guests are in `ragbed/guests.py`.
_COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo, "list": list_, "models list": list_models, "models pull": pull, "schema": schema,
    "new strategy": new_strategy, "index": index, "search": search, "ask": ask,
    "run": run, "judge": judge, "rescore": rescore, "report": report, "show": show,
    "compare": compare, "effects": effects, "diagnose": diagnose,
    "evaluate-retrieval": evaluate_retrieval, "export": export,
    "cassette export": cassette_export, "cassette show": cassette_show, "verify": verify}
# The first word of each command, in the order of the help. Commands of other people's guests come last.
_PANELS: dict[str, tuple[str, ...]] = {
    "Start": ("demo", "list", "models", "schema", "new", "check"),
    "Ask": ("index", "search", "ask"),
    "Build": ("construct", "questions", "review"),
    "Measure": ("run", "merge", "import", "judge", "rescore"),
    "Serve": ("serve",),
    "Read": ("report", "show", "compare", "effects", "dose", "diagnose"),
    "Retrieval": ("evaluate-retrieval", "negatives"),
    "Share": ("export", "cassette", "verify")}
_GROUP_HELP = {"cassette": "Keep a run in one file, and replay it anywhere.", "check": "Check your own code.",
               "models": "List and download local models.", "new": "Create a file to start from."}


@cache
def build_app() -> typer.Typer:
    """Return the command line with the commands of the core and of the guests."""
    from ragbed.documents.errors import SettingsError

    app = typer.Typer(name="ragbed", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
    app.callback(invoke_without_command=True, epilog=_EXAMPLES)(about)
    commands = dict(_COMMANDS)
    for name, target in entries("command").items():
        if name in commands:
            leave_out(f"command {name!r} of a guest", "ragbed has a command of this name")
            continue
        try:
            commands[name] = load(target)
        except SettingsError as error:  # the other commands work without it
            commands[name] = partial(_broken, str(error))
            commands[name].__doc__ = "Not available: its package cannot be imported."
    order = [first for names in _PANELS.values() for first in names]
    groups: dict[str, typer.Typer] = {}
    for name in sorted(commands, key=lambda name: order.index(first_word(name)) if first_word(name) in order else 99):
        first, _, second = name.partition(" ")
        panel = next((panel for panel, names in _PANELS.items() if first in names), "Guests")
        if not second:
            app.command(name, cls=Command, rich_help_panel=panel)(commands[name])
            continue
        if first not in groups:
            groups[first] = typer.Typer(no_args_is_help=True, help=_GROUP_HELP.get(first, ""))
            app.add_typer(groups[first], name=first, rich_help_panel=panel)
        groups[first].command(second, cls=Command)(commands[name])
    return app


def first_word(command: str) -> str:
    """Return `check` of `check strategy`."""
    return command.partition(" ")[0]


def _broken(why: str) -> None:
    refuse(why)


_LONGEST = 2_000  # characters of the one line, which may name what a stranger called very long
_NO_MEMORY = ("failed to map segment", "can't start new thread", "annot allocate memory")  # as libraries say it


def main() -> None:
    """Run the command; what the user can mend, and a call that failed, is one line on stderr and exit status 2."""
    gc.set_threshold(50_000, 20, 100)  # what imports make stays; looking through it again and again, and a last time
    atexit.register(gc.freeze)  # at the end, took a third of the time of `ask`
    sys.stdout = sys.stdout or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")  # None where it is closed
    sys.stderr = sys.stderr or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if isinstance(sys.stdout, io.TextIOWrapper):  # as stderr is: a terminal may lack a document's characters
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        from ragbed.documents.errors import CallError, UserError
        status = build_app()(prog_name="ragbed", standalone_mode=False)
        sys.stdout.flush()
    except KeyboardInterrupt:  # while modules are loaded; later each command says what it keeps
        sys.exit(130)
    except ModuleNotFoundError as error:
        if _is_ours(error.name):
            raise
        _end(f"{error.name} is not installed; run: pip install ragbed")
    except (UserError, CallError, TyperException) as error:
        from ragbed.experiments.terminal.display import printable
        if isinstance(error, TyperException) and not error.format_message():
            sys.exit(2)  # the page of help has been shown
        _end(printable(_said(error) if isinstance(error, TyperException) else str(error)))
    except (MemoryError, ImportError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not any(said in str(error) for said in _NO_MEMORY):
            raise
        _end("there is not enough memory for this; give the command more, or less to do")
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            _end(f"{error.strerror}; allow more, as `ulimit -n 1024` does, and give the command again")
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what stdout still holds would fail again as it is closed
        _end(f"cannot write: {error.strerror}; free space, or write elsewhere, and give the command again")
    sys.exit(status)


def _is_ours(module: str | None) -> bool:
    top = (module or "").partition(".")[0]
    return not top or top == "ragbed" or top in sys.stdlib_module_names


def _said(error: TyperException) -> str:
    context = getattr(error, "ctx", None)
    help = f"; see `{context.command_path} --help`" if context else ""
    said = error.format_message().replace("Value error, ", "").rstrip(".")
    return f"{said}{help}"


def _end(reason: str) -> NoReturn:
    line = " ".join(reason.split())
    print(f"ragbed: {line if len(line) <= _LONGEST else f'{line[:_LONGEST - 200]} ... {line[-200:]}'}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
