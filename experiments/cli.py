"""The console command `ragbed`."""
from __future__ import annotations

import atexit
import errno
import gc
import io
import os
import sys
from functools import cache
from typing import Any, NoReturn

import typer
from typer.exceptions import TyperException

from ragbed.experiments.commands.help import Commands, rows_text, summaries
from ragbed.guests import entries, leave_out, load

_IN = "ragbed.experiments.commands"
# The most used commands, in the order in which people need them, each with its line of help.
FIRST = {
    "demo": "Try ragbed on bundled questions, with recorded replies.",
    "index": "Parse, chunk, embed and index documents.",
    "ask": "Answer one question from an index, with citations or a refusal.",
    "run": "Run an experiment, or continue it where it stopped.",
    "compare": "Test which differences between runs or cells are significant.",
    "show": "Show one question: gold, answers, causes, scores and every step.",
    "report": "Write the report of a finished run as one HTML file.",
    "serve": "Serve the best configuration: OpenAI's API and a chat page.",
    "construct": "Generate a benchmark from your documents and check its questions.",
    "import": "Score the answers of another tool as a run.",
    "export": "Write records or answers for other tools.",
    "verify": "Recompute the figures and hashes of a run and compare them.",
}
# All commands by panel, with the place of their functions; empty if a guest in `ragbed/guests.py` adds the command.
PANELS: dict[str, dict[str, str]] = {
    "Start": {"demo": "tools:demo", "list": "tools:list_", "models list": "",
              "models pull": "", "schema": "tools:schema", "new strategy": "tools:new_strategy",
              "check strategy": ""},
    "Ask": {"index": "index:index", "search": "ask:search", "ask": "ask:ask"},
    "Build": {"construct": "", "questions": "", "review": ""},
    "Measure": {"run": "run:run", "merge": "", "import": "", "judge": "",
                "rescore": ""},
    "Serve": {"serve": ""},
    "Read": {"report": "read:report", "show": "read:show", "compare": "read:compare", "effects": "read:effects",
             "dose": "", "diagnose": "read:diagnose"},
    "Retrieval": {"evaluate-retrieval": "", "negatives": ""},
    "Share": {"export": "share:export", "cassette export": "share:cassette_export",
              "cassette show": "share:cassette_show", "verify": ""},
}
_GROUP_HELP = {"cassette": "Keep a run in one file, and replay it anywhere.", "check": "Check your own code.",
               "models": "List and download local models.", "new": "Create a file to start from."}
_ABOUT = "Compare RAG strategies by answer quality, citations and refusals."
_EXAMPLES = """Examples:
  ragbed demo
  ragbed index docs/ --out idx
  ragbed ask "How long is the warranty?" --index idx --model openai:gpt-4o-mini
  ragbed run compare.yaml"""


@cache
def build_app() -> Commands:
    """Return the command line with the commands of the core and of the guests."""
    targets = {name: f"{_IN}.{target}" for panel in PANELS.values() for name, target in panel.items() if target}
    for name, target in entries("command").items():
        if name in targets:
            leave_out(f"command {name!r} of a guest", "ragbed has a command of this name")
            continue
        targets[name] = target
    groups: dict[str, dict[str, str]] = {}
    for name, target in targets.items():
        first, _, second = name.partition(" ")
        groups.setdefault(first, {})[second] = target
    order = [name.partition(" ")[0] for panel in PANELS.values() for name in panel]
    made: dict[str, str | Commands] = {
        name: own[""] if "" in own else Commands(name, own, _load, help=_GROUP_HELP.get(name, ""))
        for name, own in sorted(groups.items(), key=lambda group: order.index(group[0]) if group[0] in order else 99)}
    return Root("ragbed", made, _load, first_page)


class Root(Commands):
    """The command line: `ragbed COMMAND`, `ragbed help`, `ragbed --version`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args[:1] == ["--version"]:
            from importlib import metadata

            typer.echo(f"ragbed {metadata.version('ragbed')}")
            raise typer.Exit
        if args[:1] == ["help"]:
            if args[1:] in ([], ["all"]):
                typer.echo(all_page(self, ctx) if args[1:] else first_page(ctx))
                raise typer.Exit
            args = [*args[1:], "--help"]
        return super().parse_args(ctx, args)


def first_page(ctx: Any) -> str:
    """Return the help of `ragbed --help`, without importing any command."""
    return "\n\n".join(["Usage: ragbed COMMAND [OPTIONS]", _ABOUT, rows_text("Commands", FIRST.items()),
                        "`ragbed COMMAND --help` explains a command; `ragbed help all` lists every command.",
                        _EXAMPLES])


def all_page(app: Commands, ctx: Any) -> str:
    """Return the help of `ragbed help all`: every command by panel, those of other people's guests last."""
    rows = dict(summaries(app, ctx))
    panels = {title: [(name, rows.pop(name)) for name in dict.fromkeys(one.partition(" ")[0] for one in panel)
                      if name in rows] for title, panel in PANELS.items()} | {"Guests": list(rows.items())}
    width = max(len(name) for panel in panels.values() for name, _ in panel)
    return "\n\n".join(["Usage: ragbed COMMAND [OPTIONS]", *(
        rows_text(title, found, width) for title, found in panels.items() if found)])


def _load(name: str, target: str) -> Any:
    """Import a command. If an installed guest's command cannot be imported, only that command fails."""
    from ragbed.documents.errors import SettingsError

    try:
        return load(target)
    except SettingsError as error:
        why = str(error)

        def broken() -> None:
            raise SettingsError(why)
        broken.__doc__ = "Not available: its package cannot be imported."
        return broken


MAX_MESSAGE = 2_000  # characters of an error message, which may quote a very long name
_NO_MEMORY = ("failed to map segment", "can't start new thread", "annot allocate memory")  # messages of libraries


def main() -> None:
    """Run a command. An error that the user can fix, or a failed call, is one line on stderr and exit status 2."""
    gc.set_threshold(50_000, 20, 100)  # imported objects stay: collecting them again and again, and once more at the
    atexit.register(gc.freeze)  # end, took a third of the time of `ask`
    sys.stdout = sys.stdout or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")  # None if it is closed
    sys.stderr = sys.stderr or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if isinstance(sys.stdout, io.TextIOWrapper):  # like stderr: a terminal may lack a document's characters
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        from ragbed.documents.errors import CallError, UserError
        status = build_app()(prog_name="ragbed", standalone_mode=False)
        sys.stdout.flush()
    except KeyboardInterrupt:  # during imports; later each command says what it keeps
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
        _end("out of memory; give the command more memory, or less to do")
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            _end(f"{error.strerror}; raise the limit, e.g. with `ulimit -n 1024`, and repeat the command")
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the rest of stdout would fail again
        _end(f"cannot write: {error.strerror}; free space, or write elsewhere, and repeat the command")
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
    if len(line) > MAX_MESSAGE:
        line = f"{line[:MAX_MESSAGE - 200]} ... {line[-200:]}"
    print(f"ragbed: {line}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
