"""Write docs/commands.md: every command with its arguments and options, out of `ragbed COMMAND --help`.

    python bench/commands.py

`make docs` runs it, and a test compares the page with the commands as they are.
"""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from typer.core import TyperArgument, TyperOption
from typer.main import get_command

from ragbed.experiments.cli import build_app

PAGE = Path(__file__).parent.parent / "docs" / "commands.md"
_HEAD = """# Commands

Every command, its arguments and its options. This page is made by `make docs` from the text of `ragbed COMMAND --help`:
do not edit it here. Most commands that print a table print JSON with `--json`. Relative paths count from the current
folder.

**Exit status.** 0: done. 1: the command worked, and the news is bad: no answer, no reply to any question, a replay that
missed a call or came out otherwise, a gate that fails, a figure that `verify` computes differently. 2: something that
you can mend, said in one line on stderr, or a budget that is spent.

**Environment.**

| variable | means |
|---|---|
| `OPENAI_API_KEY`, `OPENAI_BASE_URL` | for `openai:NAME`; the key goes to no other host |
| `RAGBED_API_KEY` | for `http(s)://host/v1#NAME` |
| `RAGBED_MODELS` | a folder in which models are looked for first |
| `RAGBED_CACHE` | where embeddings and pulled models are kept; else the platform's cache folder |
| `RAGBED_INDEX` | the index that `langgraph dev` opens |
| `RAGBED_DATA` | for tests and bench scripts: a folder with public datasets that are not shipped |
"""


def page() -> str:
    """Return the text of docs/commands.md."""
    panels: dict[str, list[str]] = {}
    for words, command, panel in leaves(get_command(build_app()), ["ragbed"], ""):
        panels.setdefault(panel, []).append(section(words, command))
    return "\n".join([_HEAD, *(f"## {panel}\n\n" + "\n".join(parts) for panel, parts in panels.items())])


def leaves(command: Any, words: list[str], panel: str) -> Iterator[tuple[list[str], Any, str]]:
    """Yield the words, the command and the panel of everything that can be run."""
    if not hasattr(command, "commands"):
        yield words, command, panel
        return
    for name, inner in command.commands.items():
        named = getattr(inner, "rich_help_panel", None)
        yield from leaves(inner, [*words, name], named if isinstance(named, str) else panel)


def section(words: list[str], command: Any) -> str:
    """Return the section of one command: what it does, how it is called, and a table of what it takes."""
    taken = [one for one in command.params if not getattr(one, "hidden", False) and one.name != "help"]
    arguments = [one for one in taken if isinstance(one, TyperArgument)]
    options = [one for one in taken if isinstance(one, TyperOption)]
    usage = " ".join([*words, *(_shown(one) for one in arguments), *("[OPTIONS]" for _ in options[:1])])
    lines = [f"### {' '.join(words)}", "", " ".join((command.help or "").split()), "", "```", usage, "```", ""]
    rows = [f"| `{_shown(one)}` | {_text(one)} |" for one in arguments]
    rows += [f"| `{_flags(one)}` | {_text(one)} |" for one in options]
    return "\n".join(lines + (["| | |", "|---|---|", *rows, ""] if rows else []))


def _shown(argument: Any) -> str:
    name = f"{_value(argument)}..." if argument.nargs == -1 else _value(argument)
    return name if argument.required else f"[{name}]"


def _flags(option: Any) -> str:
    names = ", ".join([*option.opts, *option.secondary_opts])
    return names if option.is_flag else f"{names} {_value(option)}"


def _value(param: Any) -> str:
    annotation = param.type_descriptor.annotation
    literal = next((one for one in (annotation, *get_args(annotation)) if get_origin(one) is Literal), None)
    if literal is not None:
        return "{" + ",".join(get_args(literal)) + "}"
    return param.metavar or param.name.strip("_").upper()


def _text(param: Any) -> str:
    default = param.default() if callable(param.default) else param.default
    shown = default not in (None, False, True, ..., (), []) and not param.required
    text = " ".join((getattr(param, "help", None) or "").split())
    text += f" Default: `{default}`." if shown else ""
    text += " Required." if param.required and isinstance(param, TyperOption) else ""
    return text.strip().replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
