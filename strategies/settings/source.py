"""Execute the source file of a user's strategy, and report problems in one line."""
from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from importlib.abc import ExecutionLoader
from importlib.util import decode_source, find_spec, module_from_spec, spec_from_loader
from pathlib import Path
from types import CodeType, ModuleType

from ragbed.documents.errors import BenchmarkError, SettingsError
from ragbed.documents.paths import expand_path
from ragbed.documents.types import digest
from ragbed.documents.user_code import UserCode

_MAX_BYTES = 1_000_000  # largest size of a file; a strategy has about a hundred lines
_OURS = "ragbed"  # in a clone of the repository, a folder of this name is next to the user's file


class _Text(ExecutionLoader):
    """Loads a module from the hashed text, without a cached bytecode file."""

    def __init__(self, path: Path, code: CodeType, text: str) -> None:
        self._path, self._code, self._text = path, code, text

    def get_filename(self, fullname: str) -> str:
        return str(self._path)

    def get_source(self, fullname: str) -> str:
        return self._text

    def get_code(self, fullname: str) -> CodeType:
        return self._code


def execute_file(file: Path, named: str) -> tuple[ModuleType, str]:
    """Execute a file once per process and content, and return its module and the hash of its source.

    Args:
        file: the full path.
        named: the path as the user wrote it, for messages.

    Raises:
        SettingsError: the file does not exist, imports another file of its folder, or fails.
    """
    return _execute(file, named, _read(file, named))


@cache
def _execute(file: Path, named: str, text: str) -> tuple[ModuleType, str]:
    tree, code = _parsed(text, file, named)
    for line, beside in _beside(tree, file):
        raise SettingsError(f"{named}:{line}: imports {beside} from its own folder, but a run records the hash of one "
                            "file only; put all code into that file, or install the two as a package")
    name = f"ragbed_plugin_{digest(str(file))[:12]}"
    loader = _Text(file, code, text)
    spec = spec_from_loader(name, loader)
    assert spec is not None
    module = sys.modules[name] = module_from_spec(spec)  # dataclasses look up their module by name
    with UserCode(lambda said: SettingsError(f"{named}: {said}")):
        loader.exec_module(module)
    return module, digest(text)


def resolve_file(path: Path) -> Path:
    """Return the full path of a file in settings. Raises SettingsError if it cannot be a path."""
    try:
        return expand_path(path).resolve()
    except BenchmarkError as error:
        raise SettingsError(str(error)) from error


def parse_file(file: Path, named: str) -> ast.Module:
    """Parse a file without executing it. Raises SettingsError as `execute_file` does before execution."""
    return _parsed(_read(file, named), file, named)[0]


def hash_file(file: Path) -> str:
    """Return the hash of a file as `execute_file` computes it. Raises SettingsError if it cannot be read."""
    return digest(_read(resolve_file(file), str(file)))


def _parsed(text: str, file: Path, named: str) -> tuple[ast.Module, CodeType]:
    try:
        tree = ast.parse(text, filename=str(file))
        return tree, compile(tree, str(file), "exec")
    except SyntaxError as error:
        raise SettingsError(f"{named}:{error.lineno or 1}: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise SettingsError(f"{named}: not valid Python source: {error}") from error


def _read(file: Path, named: str) -> str:
    try:
        if file.exists() and not file.is_file():  # reading a pipe or device may never end
            raise SettingsError(f"{named}: not a file; a strategy is a file of Python source")
        with file.open("rb") as source:
            read = source.read(_MAX_BYTES + 1)
        if len(read) > _MAX_BYTES:
            raise SettingsError(f"{named}: larger than {_MAX_BYTES:,} bytes; a strategy is a short file")
        return decode_source(read)
    except FileNotFoundError as error:
        raise SettingsError(f"{named}: no such file; a path is relative to the current folder") from error
    except OSError as error:
        raise SettingsError(f"{named}: cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, SyntaxError, LookupError) as error:
        raise SettingsError(f"{named}: not valid Python source: {error}") from error


def _beside(tree: ast.AST, file: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and name of each import that is found only in the file's own folder."""
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
            if sibling is not None and top != _OURS and not _found_elsewhere(top, sibling):
                yield node.lineno, sibling.name


def _found_elsewhere(name: str, sibling: Path) -> bool:
    if name in sys.stdlib_module_names:
        return True
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return False
    return spec is not None and spec.origin is not None and not Path(spec.origin).is_relative_to(sibling)
