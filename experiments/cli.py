"""The console command `ragbed`."""
from __future__ import annotations

import atexit
import errno
import gc
import io
import os
import sys
from collections.abc import Callable
from importlib import metadata
from typing import Annotated, NoReturn

import typer
from typer.exceptions import TyperException

from ragbed.experiments.commands.ask import ask, resume, search
from ragbed.experiments.commands.construct import construct, questions, review
from ragbed.experiments.commands.index import index
from ragbed.experiments.commands.options import Command
from ragbed.experiments.commands.read import budgets, compare, diagnose, dose, effects, report, show
from ragbed.experiments.commands.retrieval import evaluate_retrieval, negatives
from ragbed.experiments.commands.run import import_, run
from ragbed.experiments.commands.serve import serve
from ragbed.experiments.commands.shards import merge
from ragbed.experiments.commands.share import cassette_export, cassette_show, export, judge, rescore, verify
from ragbed.experiments.commands.tools import check_strategy, demo, list_, list_models, new_strategy, pull, schema

app = typer.Typer(name="ragbed", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
cassette = typer.Typer(no_args_is_help=True, help="Keep a run in one file, and make it again anywhere.")
check = typer.Typer(no_args_is_help=True, help="Put something of your own to the test.")
models = typer.Typer(no_args_is_help=True, help="List and fetch local models.")
new = typer.Typer(no_args_is_help=True, help="Write something of your own to begin with.")

_EXAMPLES = """Examples:

ragbed demo

ragbed index docs/ --out idx && ragbed ask "How long is the warranty?" --index idx --model openai:gpt-4o-mini

ragbed run compare.yaml && ragbed report runs/compare"""


@app.callback(invoke_without_command=True, epilog=_EXAMPLES)
def about(version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False) -> None:
    """Find out which way of retrieving and reasoning answers, cites and refuses as it should."""
    if version:
        typer.echo(f"ragbed {metadata.version('ragbed')}")
        raise typer.Exit


# In the order of the help, where each group is a panel.
_GROUPS: dict[str, tuple[Callable[..., None] | tuple[typer.Typer, str], ...]] = {
    "Start": (demo, list_, (models, "models"), schema, (new, "new"), (check, "check")),
    "Ask": (index, search, ask, resume),
    "Build": (construct, questions, review),
    "Measure": (run, merge, import_, judge, rescore),
    "Serve": (serve,),
    "Read": (report, show, compare, effects, dose, budgets, diagnose),
    "Retrieval": (evaluate_retrieval, negatives),
    "Share": (export, (cassette, "cassette"), verify)}
for panel, members in _GROUPS.items():
    for member in members:
        if isinstance(member, tuple):
            app.add_typer(member[0], name=member[1], rich_help_panel=panel)
        else:
            app.command(member.__name__.rstrip("_").replace("_", "-"), cls=Command, rich_help_panel=panel)(member)
cassette.command("export", cls=Command)(cassette_export)
cassette.command("show", cls=Command)(cassette_show)
check.command("strategy", cls=Command)(check_strategy)
models.command("list", cls=Command)(list_models)
models.command("pull", cls=Command)(pull)
new.command("strategy", cls=Command)(new_strategy)

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
        status = app(prog_name="ragbed", standalone_mode=False)
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
