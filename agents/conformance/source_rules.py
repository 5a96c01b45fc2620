"""What the source of a strategy may not name: what no audit hook sees, and what it has no business with."""
from __future__ import annotations

import ast
from collections.abc import Iterator

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
