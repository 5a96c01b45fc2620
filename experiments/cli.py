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
# The most used commands with their help lines, in the order in which people need them.
FIRST = {
    "demo": "Try ragbed on bundled questions, with recorded replies.",
    "index": "Parse, chunk, embed and index documents.",
    "ask": "Answer one question from an index, with citations or a refusal.",
    "run": "Run an experiment, or continue it where it stopped.",
    "compare": "Test which differences between runs or cells are significant.",
    "show": "Show one question: gold, answers, causes, scores and every step.",
    "report": "Write the report of a run as one HTML file.",
    "serve": "Serve configurations: an OpenAI-compatible API and a chat page.",
    "construct": "Generate a benchmark from your documents and check its questions.",
    "import": "Score another tool's answers as a run.",
    "export": "Export records, results, answers or mined negatives.",
    "verify": "Recompute the figures and hashes of a run and compare them.",
}
# All commands by panel, as MODULE:FUNCTION. Guests in `ragbed/built_in.py` add the commands with an empty value.
PANELS: dict[str, dict[str, str]] = {
    "Start": {"demo": "", "list": "listing:list_", "models list": "",
              "models pull": "", "schema": "listing:schema", "new strategy": "",
              "check strategy": "", "check metric": "", "doctor": ""},
    "Ask": {"index": "index:index", "search": "ask:search", "ask": "ask:ask", "show-prompt": ""},
    "Build": {"construct": "", "questions": "", "review": ""},
    "Measure": {"run": "run:run", "gate": "", "merge": "", "import": "", "judge": "",
                "rescore": ""},
    "Serve": {"serve": ""},
    "Read": {"watch": "", "report": "read:report", "show": "read:show", "compare": "",
             "effects": "", "dose": "", "diagnose": "read:diagnose"},
    "Retrieval": {"evaluate-retrieval": "", "negatives": ""},
    "Share": {"export": "", "plot": "", "cassette export": "",
              "cassette show": "", "leaderboard": "", "verify": ""},
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
                        "`ragbed COMMAND --help` explains a command; `ragbed help all` lists all of them.",
                        _EXAMPLES])


def all_page(app: Commands, ctx: Any) -> str:
    """Return the help of `ragbed help all`: every command by panel, with those of third-party guests last."""
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


MAX_MESSAGE = 2_000  # longest error message, in characters; it may quote a very long name
_NO_MEMORY = ("failed to map segment", "can't start new thread", "annot allocate memory")  # what libraries report


def main() -> None:
    """Run a command. An error that the user can fix, or a failed call, is one line on stderr and exit status 2."""
    gc.set_threshold(50_000, 20, 100)  # imported objects stay in memory: scanning them repeatedly, and again at
    atexit.register(gc.freeze)  # exit, took a third of the time of `ask`
    sys.stdout = sys.stdout or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")  # None if the caller closed it
    sys.stderr = sys.stderr or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if isinstance(sys.stdout, io.TextIOWrapper):  # as stderr does: the terminal may not support all characters
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        from ragbed.documents.errors import CallError, UserError
        status = build_app()(prog_name="ragbed", standalone_mode=False)
        sys.stdout.flush()
    except KeyboardInterrupt:  # during imports; later, each command handles it
        sys.exit(130)
    except ModuleNotFoundError as error:
        if _is_ours(error.name):
            raise
        _exit_with(f"{error.name} is not installed; run: pip install ragbed")
    except (UserError, CallError, TyperException) as error:
        from ragbed.experiments.terminal.display import printable
        if isinstance(error, TyperException) and not error.format_message():
            sys.exit(2)  # the help page was already shown
        _exit_with(printable(_format_typer_error(error) if isinstance(error, TyperException) else str(error)))
    except (MemoryError, ImportError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not any(said in str(error) for said in _NO_MEMORY):
            raise
        _exit_with("out of memory; give the command more memory, or less to do")
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            _exit_with(f"{error.strerror}; ask for fewer at once, or raise the limit (`ulimit -Hn` shows it), and "
                       "repeat the command")
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # flushing stdout at exit would fail again
        _exit_with(f"cannot write: {error.strerror}; free space, or write elsewhere, and repeat the command")
    sys.exit(status)


def _is_ours(module: str | None) -> bool:
    top = (module or "").partition(".")[0]
    return not top or top == "ragbed" or top in sys.stdlib_module_names


def _format_typer_error(error: TyperException) -> str:
    context = getattr(error, "ctx", None)
    help = f"; see `{context.command_path} --help`" if context else ""
    said = error.format_message().replace("Value error, ", "").rstrip(".")
    return f"{said}{help}"


def _exit_with(reason: str) -> NoReturn:
    line = " ".join(reason.split())
    if len(line) > MAX_MESSAGE:
        line = f"{line[:MAX_MESSAGE - 200]} ... {line[-200:]}"
    print(f"ragbed: {line}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
