"""Import the names of a package's `__init__.pyi` when each is first used."""
from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def attach_stub(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` for a package whose stub lists `from .module import name`.

    Args:
        package: the package's `__name__`.
        file: its `__file__`; the stub is next to it.
    """
    imports = (node for node in ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8")).body
               if isinstance(node, ast.ImportFrom))
    modules = {alias.asname or alias.name: f"{package}.{node.module}" for node in imports for alias in node.names}

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name]), name)

    return load, lambda: sorted(modules), sorted(modules)
