"""Commands that are imported when used, and their plain-text help pages with one line per option.

An option with `rich_help_panel=MORE` is left out of `ragbed COMMAND --help` and shown by `ragbed COMMAND --help-all`.
"""
from __future__ import annotations

import shutil
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, get_args, get_origin

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.main import get_command

MORE = "More options"
MAX_WIDTH = 100  # columns of a help page
MAX_LEFT = 34  # width of the names of options; after longer names, the text begins on a new line
Row = tuple[str, str]


class Command(TyperCommand):
    """A command with a short help page. It rejects options with empty values, which unset shell variables cause."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(command_page(self, ctx, everything=False))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if "--help-all" in args:
            typer.echo(command_page(self, ctx, everything=True))
            raise typer.Exit
        valued = {name for one in self.params if isinstance(one, TyperOption) and not one.is_flag for name in one.opts}
        for before, given in pairwise(["", *args]):
            name = before if given == "" else given.removesuffix("=") if given.endswith("=") else ""
            if name in valued:
                from ragbed.documents.errors import SettingsError

                raise SettingsError(f"{name} has an empty value; give it a value, or leave it out")
        return super().parse_args(ctx, args)


class Commands(TyperGroup):
    """Commands by name, each imported only when it is used or its help is shown.

    Args:
        targets: for each name, a "module:attribute" string, or a group of commands.
        load: imports the object that a "module:attribute" string names.
        page: makes the help page of the group.
    """

    def __init__(self, name: str, targets: Mapping[str, str | Commands], load: Callable[[str, str], Any],
                 page: Callable[[Any], str] | None = None, help: str = "") -> None:
        super().__init__(name=name, help=help)
        self.targets, self._load, self._page = targets, load, page
        self.commands = dict.fromkeys(targets)  # type: ignore[assignment]  # for suggestions; `get_command` imports

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.targets)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args:
            typer.echo(ctx.get_help())
            raise typer.Exit(2)
        return super().parse_args(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        target = self.targets.get(cmd_name)
        if not isinstance(target, str):
            return target
        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        app.command(cmd_name, cls=Command)(self._load(cmd_name, target))
        return get_command(app)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(self._page(ctx) if self._page else "\n\n".join([
            self.get_usage(ctx), self.help or "", rows_text("Commands", summaries(self, ctx))]))


def summaries(group: Commands, ctx: Any) -> list[Row]:
    """Return each command of a group with the first line of its help."""
    found = ((name, group.get_command(ctx, name)) for name in group.list_commands(ctx))
    return [(name, ((command.help or "").strip().splitlines() or [""])[0]) for name, command in found if command]


def command_page(command: Any, ctx: Any, everything: bool) -> str:
    """Return the help page of a command: its usage, what it does, and its options by panel."""
    panels: dict[str, list[Row]] = {"Arguments": [], "Options": []}
    left_out = 0
    for param in command.get_params(ctx):
        panel = getattr(param, "rich_help_panel", None)
        if getattr(param, "hidden", False):
            continue
        if panel == MORE and not everything:
            left_out += 1
            continue
        panels.setdefault("Arguments" if isinstance(param, TyperArgument) else panel or "Options", []).append(
            (left(param), right(param)))
    if left_out:
        panels["Options"].append(("--help-all", f"Show {left_out} more option{'s' * (left_out > 1)} and exit."))
    if MORE in panels:
        panels[MORE] = panels.pop(MORE)
    width = max((len(name) for rows in panels.values() for name, _ in rows if len(name) <= MAX_LEFT), default=0)
    arguments = [one for one in command.params if isinstance(one, TyperArgument)]
    usage = " ".join([f"Usage: {ctx.command_path}", "[OPTIONS]",
                      *(_value(one) if one.required else f"[{_value(one)}]" for one in arguments)])
    text = "\n\n".join(textwrap.fill(" ".join(part.split()), _columns()) for part in (command.help or "").split("\n\n"))
    return "\n\n".join([usage, text, *(rows_text(panel, rows, width) for panel, rows in panels.items() if rows)])


def left(param: Any) -> str:
    """Return the form of a parameter, such as `--budget PART=AMOUNT`."""
    if isinstance(param, TyperArgument):
        return _value(param)
    names = ", ".join([*param.opts, *param.secondary_opts])
    return names if param.is_flag else f"{names} {_value(param)}"


def right(param: Any) -> str:
    """Return the help of a parameter, with its default and whether it is repeatable."""
    default = param.default() if callable(param.default) else param.default
    shown = default not in (None, "", False, True, ..., (), []) and not param.required
    help = " ".join((getattr(param, "help", None) or "").split())
    repeatable = getattr(param, "multiple", False) and "epeatable" not in help
    return " ".join(filter(None, [help, "Repeatable." if repeatable else "",
                                  f"[default: {default}]" if shown else "",
                                  "[required]" if param.required and isinstance(param, TyperOption) else ""]))


def _value(param: Any) -> str:
    descriptor = getattr(param, "type_descriptor", None)
    annotation = getattr(descriptor, "annotation", None)
    literal = next((one for one in (annotation, *get_args(annotation)) if get_origin(one) is Literal), None)
    name = "|".join(get_args(literal)) if literal is not None and param.metavar is None else \
        param.metavar or param.name.strip("_").upper()
    if isinstance(param, TyperOption) and literal is None and param.metavar is None:
        name = _PLACEHOLDERS.get(str(annotation), "TEXT")
    return f"{name}..." if param.nargs == -1 and not name.endswith("...") else name


_PLACEHOLDERS = {"<class 'int'>": "N", "<class 'float'>": "X", "<class 'pathlib.Path'>": "PATH",
                 "<class 'pathlib._local.Path'>": "PATH"}


def rows_text(title: str, rows: Iterable[Row], width: int | None = None) -> str:
    """Return a titled list of names and texts in two columns."""
    rows = list(rows)
    width = max((len(name) for name, _ in rows), default=0) if width is None else width
    lines = [f"{title}:"]
    for name, text in rows:
        wrapped = textwrap.wrap(text, max(20, _columns() - width - 4), break_on_hyphens=False) or [""]
        if len(name) > width:
            lines.append(f"  {name}")
            name = ""
        lines += [f"  {name if not at else '':{width}}  {part}".rstrip() for at, part in enumerate(wrapped)]
    return "\n".join(lines)


def _columns() -> int:
    return max(40, min(shutil.get_terminal_size((MAX_WIDTH, 24)).columns, MAX_WIDTH))


def leaves(group: Any, ctx: Any, words: Sequence[str] = ()) -> Iterable[tuple[tuple[str, ...], Any]]:
    """Yield every command with its words, such as `("check", "strategy")`; imports all of them."""
    for name in group.list_commands(ctx):
        found = group.get_command(ctx, name)
        if isinstance(found, Commands):
            yield from leaves(found, ctx, (*words, name))
        else:
            yield (*words, name), found
