"""Executing the source of a strategy that is none of the project's, and saying in one line what is amiss with it."""
from __future__ import annotations

import ast
import sys
import traceback
from collections.abc import Iterator
from functools import cache
from importlib.abc import ExecutionLoader
from importlib.util import decode_source, find_spec, module_from_spec, spec_from_loader
from pathlib import Path
from sysconfig import get_path
from types import CodeType, ModuleType

from documents.errors import SettingsError
from documents.types import digest

_OURS = ("documents", "retrieval", "strategies", "agents", "experiments")


class _Text(ExecutionLoader):
    """Loads a module from the text that was hashed, and keeps no compiled copy of it."""

    def __init__(self, path: Path, code: CodeType, text: str) -> None:
        self._path, self._code, self._text = path, code, text

    def get_filename(self, fullname: str) -> str:
        return str(self._path)

    def get_source(self, fullname: str) -> str:
        return self._text

    def get_code(self, fullname: str) -> CodeType:
        return self._code


@cache
def executed(file: Path, named: str) -> tuple[ModuleType, str]:
    """The module of a file and the hash of the source that was executed, which is read once in a process.

    Args:
        file: its whole path.
        named: as the user names it, for messages.

    Raises:
        SettingsError: there is no such file, it needs another file beside it, or its code fails.
    """
    text = _read(file, named)
    try:
        tree = ast.parse(text, filename=str(file))
        code = compile(tree, str(file), "exec")
    except SyntaxError as error:
        raise SettingsError(f"{named}:{error.lineno or 1}: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise SettingsError(f"{named}: no Python source: {error}") from error
    for line, beside in _beside(tree, file):
        raise SettingsError(f"{named}:{line}: imports {beside}, which stands beside it; a strategy is one file, whose "
                            "hash the run keeps: put it all into that file, or install the two as a package")
    return _module(file, named, _Text(file, code, text)), digest(text)


def hash_of(file: Path) -> str:
    """The hash that `executed` gives a file, which is read and not executed; SettingsError where it cannot be."""
    return digest(_read(file, str(file)))


def _read(file: Path, named: str) -> str:
    try:
        return decode_source(file.read_bytes())
    except FileNotFoundError as error:
        raise SettingsError(f"{named}: no such file; a path is relative to the current folder") from error
    except OSError as error:
        raise SettingsError(f"{named}: cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, SyntaxError, LookupError) as error:
        raise SettingsError(f"{named}: no Python source: {error}") from error


def _module(file: Path, named: str, loader: _Text) -> ModuleType:
    name = f"ragbed_plugin_{digest(str(file))[:12]}"
    spec = spec_from_loader(name, loader)
    assert spec is not None
    module = sys.modules[name] = module_from_spec(spec)  # dataclasses look their module up by its name
    try:
        loader.exec_module(module)
    except raised_by_code() as error:
        del sys.modules[name]
        raise SettingsError(f"{named}: {failing_line(error)}") from error
    return module


def raised_by_code() -> tuple[type[BaseException], ...]:
    """What code that others wrote may raise and a user can mend; an interrupt is none of it, ending the program is."""
    return (ArithmeticError, AssertionError, AttributeError, BufferError, EOFError, ImportError, LookupError,
            MemoryError, NameError, OSError, RuntimeError, SyntaxError, SystemExit, TypeError, ValueError)


def failing_line(error: BaseException) -> str:
    """What code raised, in one line, with the last place of it that is no library's."""
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}: {error.msg}"
    installed = (get_path("stdlib"), get_path("purelib"), get_path("platlib"), str(Path(__file__).parent.parent), "<")
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(installed)]
    at = f"{Path(own[-1].filename).name}:{own[-1].lineno}: " if own else ""
    return " ".join(f"{at}{said}".split())


def _beside(tree: ast.AST, file: Path) -> Iterator[tuple[int, str]]:
    """The imports, with their line, of what stands in the folder of the file and is found nowhere else."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            yield node.lineno, "." * node.level + (node.module or "")
            continue
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        for name in names:
            top = name.partition(".")[0]
            sibling = next((one for one in (file.parent / f"{top}.py", file.parent / top) if one.exists()), None)
            if sibling is not None and top not in _OURS and not _found_elsewhere(top, sibling):
                yield node.lineno, sibling.name


def _found_elsewhere(name: str, sibling: Path) -> bool:
    """Whether a name is Python's own or an installed package's."""
    if name in sys.stdlib_module_names:
        return True
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return False
    return spec is not None and spec.origin is not None and not Path(spec.origin).is_relative_to(sibling)
