"""The process that plays strategies: `python -m agents.conformance.child ORDER FILE`, with what to play as JSON and the
file that gets a line for each; what is printed is noted.

An audit hook, which cannot be taken out again, sees what strategies do that reaches beyond the process. What no hook
sees, and what a strategy has no business with, its source may not name.
"""
from __future__ import annotations

import ast
import contextlib
import faulthandler
import inspect
import json
import os
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from agents.conformance.playing import examine
from documents.errors import SettingsError
from strategies.settings.choosing import Strategy, chosen

_NO_CLOCK, _NO_CHANCE = "a recipe has no clock", "a recipe draws by task.rng() alone"
_WHY = {**dict.fromkeys(("time", "sched", "calendar"), _NO_CLOCK), **dict.fromkeys(("secrets", "uuid"), _NO_CHANCE),
        **dict.fromkeys(("agents", "experiments"), "a strategy imports documents, retrieval and strategies alone"),
        **dict.fromkeys((
            "asyncio", "ctypes", "http", "httpx", "aiohttp", "multiprocessing", "openai", "requests", "signal",
            "socket", "sqlite3", "ssl", "subprocess", "tempfile", "threading", "urllib3", "urllib.request", "gc",
            "inspect", "os"), "a recipe asks for what it needs and does nothing itself")}
_SEEN = ("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.kill",
         "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.chmod", "os.link", "os.symlink", "os.truncate",
         "os.putenv", "os.startfile", "shutil.", "ctypes.dlopen", "urllib.", "http.", "ftplib.", "smtplib.", "sqlite3.",
         "tempfile.", "webbrowser.", "builtins.input", "pty.")
_LOADS = 3.0  # plays that loading it may take as long as: packages that it imports may be large
_CODE = (".py", ".pyc", ".so", ".pyd", ".zip")
_SCREENS, _MOST_PRINTED = (1, 2), 1 << 25  # bytes


def broken_rules(source: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a source that break a rule, each with what it does."""
    for node in ast.walk(ast.parse(source)):
        modules: list[str] = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [node.module or ""]
            if modules == ["random"] and any(alias.name != "Random" for alias in node.names):
                yield node.lineno, f"imports what random draws by; {_NO_CHANCE}"
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else node.value.attr
            if owner in ("datetime", "date") and node.attr in ("now", "utcnow", "today"):
                yield node.lineno, f"reads {owner}.{node.attr}; {_NO_CLOCK}"
            elif owner == "random" and node.attr != "Random":
                yield node.lineno, f"draws by random.{node.attr}; {_NO_CHANCE}"
            elif node.attr in ("_getframe", "_current_frames"):
                yield node.lineno, f"looks around by {node.attr}; a recipe sees its task alone"
        for name in (one for module in modules for one in (module, module.partition(".")[0]) if one in _WHY):
            yield getattr(node, "lineno", 0), f"imports {name}; {_WHY[name]}"
            break


class SideEffects:
    """Notes what reaches beyond the process."""

    def __init__(self) -> None:
        self.on = False
        self.seen: dict[str, None] = {}
        self._named: frozenset[str] = frozenset()
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
            if event == "os.fork":  # else there would be two that play, and tell of it
                raise PermissionError("a recipe starts no process")

    def _is_allowed(self, path: str) -> bool:
        return path.endswith(_CODE) or path in self._named or os.path.abspath(path).startswith(self._allowed)

    @contextlib.contextmanager
    def watching(self, said: Any) -> Iterator[None]:
        """Note what is done inside, what is printed too.

        Args:
            said: the settings of the strategy, which may name files of worked examples.
        """
        self._named = frozenset(_texts(said))
        self.seen.clear()
        for screen in _SCREENS:
            os.ftruncate(screen, 0)
        self.on = True
        try:
            yield
        finally:
            self.on = False
            sys.stdout.flush()
            printed = b"".join(os.pread(screen, 160, 0) for screen in _SCREENS).decode(errors="replace")
            if printed:
                self.seen[f"prints {printed[:40]!r}"] = None


def _texts(said: Any) -> Iterator[str]:
    if isinstance(said, str):
        yield said
    elif isinstance(said, dict | list):
        for value in said.values() if isinstance(said, dict) else said:
            yield from _texts(value)


def main() -> None:
    """Play what the first argument says; one line of JSON for each strategy goes into the file of the second."""
    _limit_files()
    order, watch = json.loads(sys.argv[1]), SideEffects()
    sys.dont_write_bytecode = True
    sys.unraisablehook = lambda unraisable: None  # what a stopped generator raises is told as what breaks a limit
    with Path(sys.argv[2]).open("w", encoding="utf-8") as told:
        for family, said in order["strategies"]:
            told.write(json.dumps(_result(family, said, watch, order["again"], order["seconds"], told)) + "\n")
            told.flush()
    os._exit(0)  # a strategy's threads are not waited for


def _limit_files() -> None:
    """Whoever prints without end must not fill the disk."""
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (_MOST_PRINTED, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def _result(family: Any, said: Any, watch: SideEffects, again: bool, seconds: float, told: TextIO) -> dict[str, Any]:
    stop = partial(faulthandler.dump_traceback_later, exit=True, file=told)
    try:
        with watch.watching(said):
            stop(_LOADS * seconds)
            strategy = chosen(family, said)
            found = examine(strategy, partial(stop, seconds), again)
    except SettingsError as error:
        return {"error": str(error)}
    finally:
        faulthandler.cancel_dump_traceback_later()
    found.problems += [("io", what) for what in watch.seen] + _of_source(strategy)
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
