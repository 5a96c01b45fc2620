"""The console command `ragbed`."""
from __future__ import annotations

import io
import sys
from importlib import metadata, util
from typing import Annotated, NoReturn

import typer
from typer.exceptions import TyperException

from experiments.commands import cassette as cassettes
from experiments.commands import check as check_commands
from experiments.commands import new as new_commands
from experiments.commands.ask import ask
from experiments.commands.budgets import budgets
from experiments.commands.compare import compare
from experiments.commands.convert import convert
from experiments.commands.demo import demo
from experiments.commands.diagnose import diagnose
from experiments.commands.dose import dose
from experiments.commands.effects import effects
from experiments.commands.evaluate_retrieval import evaluate_retrieval
from experiments.commands.export import export
from experiments.commands.index import index
from experiments.commands.judge import judge
from experiments.commands.list import list_
from experiments.commands.models import distil, pull
from experiments.commands.negatives import negatives
from experiments.commands.options import Command
from experiments.commands.report import report
from experiments.commands.rescore import rescore
from experiments.commands.resume import resume
from experiments.commands.run import run
from experiments.commands.schema import schema
from experiments.commands.search import search
from experiments.commands.show import show
from experiments.commands.verify import verify

app = typer.Typer(name="ragbed", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
models = typer.Typer(no_args_is_help=True, help="Local models.")
new = typer.Typer(no_args_is_help=True, help="Something of your own, to begin with.")
check = typer.Typer(no_args_is_help=True, help="Whether something of your own keeps what it has to.")
cassette = typer.Typer(no_args_is_help=True, help="A run in one file, to be made again anywhere.")

@app.callback(invoke_without_command=True)
def about(version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False) -> None:
    """Find out which way of retrieving and reasoning answers, cites and refuses as it should."""
    if version:
        typer.echo(f"ragbed {metadata.version('ragbed')}")
        raise typer.Exit


for command in (demo, index, search, ask, resume, run, evaluate_retrieval, judge, rescore, compare, effects, dose,
                budgets, diagnose, convert, negatives, report, show, verify, export, schema):
    app.command(cls=Command)(command)
app.command("list", cls=Command)(list_)
models.command("pull", cls=Command)(pull)
models.command("distil", cls=Command)(distil)
app.add_typer(models, name="models")
cassette.command("export", cls=Command)(cassettes.export)
cassette.command("show", cls=Command)(cassettes.show)
app.add_typer(cassette, name="cassette")
new.command("strategy", cls=Command)(new_commands.strategy)
app.add_typer(new, name="new")
check.command("strategy", cls=Command)(check_commands.strategy)
app.add_typer(check, name="check")

_PACKAGES = ("documents", "retrieval", "strategies", "agents", "experiments")


def main() -> None:
    """Run the command; what the user can mend, and a call that failed, is one line on stderr and exit status 2."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # as stderr is: a terminal may lack a document's characters
        sys.stdout.reconfigure(errors="backslashreplace")
    foreign = check_packages()
    if foreign:
        _end(foreign)
    from documents.errors import CallError, UserError
    try:
        status = app(prog_name="ragbed", standalone_mode=False)
    except (UserError, CallError, TyperException) as error:
        from experiments.terminal.display import printable
        _end(printable(_said(error) if isinstance(error, TyperException) else str(error)))
    except ModuleNotFoundError as error:
        if _is_ours(error.name):
            raise
        _end(f"{error.name} is not installed; run: pip install ragbed")
    sys.exit(status)


def _is_ours(module: str | None) -> bool:
    """Whether a module that is missing is ragbed's or Python's own, which no installation mends."""
    top = (module or "").partition(".")[0]
    return not top or top in _PACKAGES or top in sys.stdlib_module_names


def _said(error: TyperException) -> str:
    """What is amiss with the words of the command line, and where to read what it takes."""
    context = getattr(error, "ctx", None)
    help = f"; see `{context.command_path} --help`" if context else ""
    said = error.format_message().replace("Value error, ", "").rstrip(".")
    return f"{said or 'give a command'}{help}"


def _end(reason: str) -> NoReturn:
    print(f"ragbed: {' '.join(reason.split())}", file=sys.stderr)
    sys.exit(2)


def check_packages() -> str | None:
    """Whether our five package names are ours: another distribution may have installed over one.

    Returns:
        None where all is well, else one line that names the other owner.
    """
    for name in _PACKAGES:
        spec = util.find_spec(name)
        origin = spec.origin if spec else None
        if origin is None or '__distribution__ = "ragbed"' not in _source(origin):
            owners = set(metadata.packages_distributions().get(name, ())) - {"ragbed"}
            return (f"the package {name!r} belongs to {', '.join(sorted(owners)) or 'something else'} here, "
                    "not to ragbed; install ragbed into an environment of its own")
    return None


def _source(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


if __name__ == "__main__":
    main()
