"""Execute the source of a strategy that is none of the project's, and say in one line what is wrong with it."""
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

_MOST_BYTES = 1_000_000  # of a file; a strategy has a hundred lines
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
def execute_file(file: Path, named: str) -> tuple[ModuleType, str]:
    """Return the module of a file, by its whole path and as the user names it, and the hash of the source that was
    executed, which is read once in a process. Raises SettingsError where there is no such file, it needs another file
    beside it, or its code fails."""
    text = _read(file, named)
    tree, code = _parsed(text, file, named)
    for line, beside in _beside(tree, file):
        raise SettingsError(f"{named}:{line}: imports {beside}, which stands beside it; a strategy is one file, whose "
                            "hash the run keeps: put it all into that file, or install the two as a package")
    name = f"ragbed_plugin_{digest(str(file))[:12]}"
    loader = _Text(file, code, text)
    spec = spec_from_loader(name, loader)
    assert spec is not None
    module = sys.modules[name] = module_from_spec(spec)  # dataclasses look their module up by its name
    with UserCode(lambda said: SettingsError(f"{named}: {said}")):
        loader.exec_module(module)
    return module, digest(text)


def resolve_file(path: Path) -> Path:
    """Return the whole path of a file that settings name; raise SettingsError where it can name none."""
    try:
        return expand_path(path).resolve()
    except BenchmarkError as error:
        raise SettingsError(str(error)) from error


def read_signature(file: Path, named: str, function: str) -> tuple[int, str]:
    """Return how many parameters a function of a file has before the star, and how it annotates what it returns; 0 and
    nothing where it has no such function. The file is read and not executed. Errors are those of `execute_file` before
    it executes."""
    tree, _ = _parsed(_read(file, named), file, named)
    return next(((len(node.args.posonlyargs) + len(node.args.args), ast.unparse(node.returns) if node.returns else "")
                 for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == function), (0, ""))


def read_parameters(file: Path, named: str, function: str) -> list[str]:
    """Return the names of the parameters of a function of a file, which is read and not executed; none where it has no
    such function. Errors are those of `execute_file` before it executes."""
    tree, _ = _parsed(_read(file, named), file, named)
    return next(([one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                 for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                 and node.name == function), [])


def hash_file(file: Path) -> str:
    """Return the hash that `execute_file` gives a file, which is only read; raise SettingsError where it cannot be."""
    return digest(_read(resolve_file(file), str(file)))


def _parsed(text: str, file: Path, named: str) -> tuple[ast.Module, CodeType]:
    try:
        tree = ast.parse(text, filename=str(file))
        return tree, compile(tree, str(file), "exec")
    except SyntaxError as error:
        raise SettingsError(f"{named}:{error.lineno or 1}: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise SettingsError(f"{named}: no Python source: {error}") from error


def _read(file: Path, named: str) -> str:
    try:
        if file.exists() and not file.is_file():  # a pipe or a device, which may never come to an end
            raise SettingsError(f"{named}: no file; a strategy is a file of Python source")
        with file.open("rb") as source:
            read = source.read(_MOST_BYTES + 1)
        if len(read) > _MOST_BYTES:
            raise SettingsError(f"{named}: larger than {_MOST_BYTES:,} bytes; a strategy is a short file")
        return decode_source(read)
    except FileNotFoundError as error:
        raise SettingsError(f"{named}: no such file; a path is relative to the current folder") from error
    except OSError as error:
        raise SettingsError(f"{named}: cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, SyntaxError, LookupError) as error:
        raise SettingsError(f"{named}: no Python source: {error}") from error


def _beside(tree: ast.AST, file: Path) -> Iterator[tuple[int, str]]:
    """Yield the imports, with their line, of what stands in the folder of the file and is found nowhere else."""
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
    if name in sys.stdlib_module_names:
        return True
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return False
    return spec is not None and spec.origin is not None and not Path(spec.origin).is_relative_to(sibling)
