"""The console command `ragbed`."""
from __future__ import annotations

import io
import sys
from importlib import metadata, util

import typer

from documents.errors import UserError
from experiments.commands.ask import ask
from experiments.commands.demo import demo
from experiments.commands.index import index
from experiments.commands.list import list_
from experiments.commands.models import pull
from experiments.commands.report import report
from experiments.commands.run import run
from experiments.commands.schema import schema
from experiments.commands.search import search

app = typer.Typer(name="ragbed", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
                  help="Find out which way of retrieving and reasoning answers, cites and refuses as it should.")
models = typer.Typer(no_args_is_help=True, help="Local models.")

for command in (demo, index, search, ask, run, report, schema):
    app.command()(command)
app.command("list")(list_)
models.command("pull")(pull)
app.add_typer(models, name="models")

_PACKAGES = ("documents", "retrieval", "strategies", "agents", "experiments")


def main() -> None:
    """Run the command; what the user can mend is one line on stderr and exit status 2."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # as stderr is: a terminal may lack a document's characters
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        check_packages()
        app()
    except UserError as error:
        print(f"ragbed: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("ragbed: interrupted", file=sys.stderr)
        sys.exit(130)


def check_packages() -> None:
    """Make sure that our five package names are ours: another distribution may have installed over one.

    Raises:
        UserError: one line that names the other owner.
    """
    for name in _PACKAGES:
        spec = util.find_spec(name)
        origin = spec.origin if spec else None
        if origin is None or '__distribution__ = "ragbed"' not in _source(origin):
            owners = set(metadata.packages_distributions().get(name, ())) - {"ragbed"}
            raise UserError(f"the package {name!r} belongs to {', '.join(sorted(owners)) or 'something else'} here, "
                            "not to ragbed; install ragbed into an environment of its own")


def _source(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


if __name__ == "__main__":
    main()
