"""The process that plays strategies: `python -m agents.conformance.child`, with what to play as JSON on standard input.

Whatever the strategies do that reaches beyond the process is seen by an audit hook, which cannot be taken out again.

What the source of a strategy may not name: what no audit hook sees, and what it has no business with.
"""
from __future__ import annotations

import ast
import contextlib
import faulthandler
import inspect
import io
import json
import os
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from agents.conformance.playing import examine
from documents.errors import SettingsError
from strategies.settings.choosing import Strategy, chosen

_CLOCKS = ("time", "sched", "calendar")
_CHANCE = ("secrets", "uuid")
_WORLD = ("asyncio", "ctypes", "http", "httpx", "aiohttp", "multiprocessing", "openai", "requests", "signal", "socket",
          "sqlite3", "ssl", "subprocess", "tempfile", "threading", "urllib3", "gc", "inspect", "os")
_ABOVE = ("agents", "experiments")
_WHY = {**dict.fromkeys(_CLOCKS, "a recipe has no clock"),
        **dict.fromkeys(_CHANCE, "a recipe draws by task.rng() alone"),
        **dict.fromkeys(_WORLD, "a recipe asks for what it needs and does nothing itself"),
        **dict.fromkeys(_ABOVE, "a strategy imports documents, retrieval and strategies alone")}
_NOW = ("now", "utcnow", "today")
_DATES = ("datetime", "date")
_FRAMES = ("_getframe", "_current_frames")


def broken_rules(source: str) -> Iterator[tuple[int, str]]:
    """The lines of a source that break a rule, each with what it does."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _imported(node.lineno, alias.name, ())
        elif isinstance(node, ast.ImportFrom):
            yield from _imported(node.lineno, node.module or "", tuple(alias.name for alias in node.names))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else node.value.attr
            if owner in _DATES and node.attr in _NOW:
                yield node.lineno, f"reads {owner}.{node.attr}; a recipe has no clock"
            elif owner == "random" and node.attr != "Random":
                yield node.lineno, f"draws by random.{node.attr}; a recipe draws by task.rng() alone"
            elif node.attr in _FRAMES:
                yield node.lineno, f"looks around by {node.attr}; a recipe sees its task alone"


def _imported(line: int, module: str, names: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    top = module.partition(".")[0]
    if top in _WHY:
        yield line, f"imports {top}; {_WHY[top]}"
    elif module == "random" and [name for name in names if name != "Random"]:
        yield line, "imports what random draws by; a recipe draws by task.rng() alone"
    elif module == "urllib.request":
        yield line, f"imports {module}; {_WHY['http']}"


_SEEN = ("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.kill",
         "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.chmod", "os.link", "os.symlink", "os.truncate",
         "os.putenv", "os.startfile", "shutil.", "ctypes.dlopen", "urllib.", "http.", "ftplib.", "smtplib.", "sqlite3.",
         "tempfile.", "webbrowser.", "builtins.input", "pty.")
_LOADS = 3.0  # plays that loading it may take as long as: packages that it imports may be large
_CODE = (".py", ".pyc", ".so", ".pyd", ".zip")


class Watch:
    """Notes what reaches beyond the process, while it is on."""

    def __init__(self) -> None:
        self.on = False
        self.seen: dict[str, None] = {}
        self._named: frozenset[str] = frozenset()
        self._screen = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        places = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
        self._allowed = (*map(str, places), str(Path(__file__).parents[2]) + os.sep + "strategies")
        sys.addaudithook(self._hook)

    def _hook(self, event: str, given: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event == "open":
            path, mode = given[0], given[1]
            reads = mode is None or not set(str(mode)) & set("wax+")
            if isinstance(path, str | bytes | os.PathLike) and not (reads and self._is_allowed(os.fsdecode(path))):
                self.seen[f"{'opens' if reads else 'writes'} {os.fsdecode(path)!r:.80}"] = None
        elif event.startswith(_SEEN):
            self.seen[f"{event} {given!r:.60}"] = None

    def _is_allowed(self, path: str) -> bool:
        """Code, what installed packages and prompts hold, and the files that the settings name."""
        return path.endswith(_CODE) or path in self._named or os.path.abspath(path).startswith(self._allowed)

    @contextlib.contextmanager
    def watching(self, said: Any) -> Iterator[None]:
        """Notes what is done inside, what is printed too.

        Args:
            said: the settings of the strategy, which may name files of worked examples.
        """
        self._named, errors = frozenset(_texts(said)), io.StringIO()
        self.seen.clear()
        self.on = True
        try:
            with contextlib.redirect_stderr(errors):
                yield
        finally:
            self.on = False
            printed = self._printed() + errors.getvalue()
            if printed:
                self.seen[f"prints {printed[:40]!r}"] = None

    def take_screen(self) -> TextIO:
        """Standard output as it was; what the process writes there from now on is noted instead, however it does it."""
        told = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(self._screen.fileno(), 1)
        return told

    def _printed(self) -> str:
        """What was written to standard output since the last time."""
        sys.stdout.flush()
        self._screen.seek(0)
        printed = self._screen.read().decode(errors="replace")
        self._screen.seek(0)
        self._screen.truncate()
        return printed


def _texts(said: Any) -> Iterator[str]:
    if isinstance(said, str):
        yield said
    elif isinstance(said, dict | list):
        for value in said.values() if isinstance(said, dict) else said:
            yield from _texts(value)


def main() -> None:
    """Play what standard input says; one line of JSON for each strategy on standard output."""
    asked = json.load(sys.stdin)
    sys.dont_write_bytecode = True
    sys.unraisablehook = lambda unraisable: None  # what a stopped generator raises is told as what breaks a limit
    watch = Watch()
    out = watch.take_screen()
    for family, said in asked["strategies"]:
        out.write(json.dumps(_result(family, said, watch, asked["again"], asked["seconds"])) + "\n")
        out.flush()


def _result(family: Any, said: Any, watch: Watch, again: bool, seconds: float) -> dict[str, Any]:
    try:
        with watch.watching(said):
            faulthandler.dump_traceback_later(_LOADS * seconds, exit=True, file=2)
            strategy = chosen(family, said)
            found = examine(strategy, partial(faulthandler.dump_traceback_later, seconds, exit=True, file=2), again)
    except SettingsError as error:
        return {"error": str(error)}
    finally:
        faulthandler.cancel_dump_traceback_later()
    found.problems += [("io", what) for what in watch.seen]
    found.problems += _of_source(strategy)
    return {**asdict(found), "plays": len(found.asked)}


def _of_source(strategy: Strategy) -> list[tuple[str, str]]:
    function = strategy.function
    bare = inspect.unwrap(function.func if isinstance(function, partial) else function)
    module = inspect.getmodule(bare)
    try:
        source = inspect.getsource(module) if module else ""
    except OSError:
        return []
    name = Path(inspect.getfile(bare)).name
    return [("source", f"{name}:{line}: {what}") for line, what in broken_rules(source)]


if __name__ == "__main__":
    main()
