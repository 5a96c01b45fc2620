"""Whether a file may be written: nothing is there, or an earlier export of the same form."""
from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from documents.errors import RunError

# How every export of a form begins; what other programs write in it begins otherwise.
_BEGINS: Mapping[str, re.Pattern[bytes]] = MappingProxyType({
    ".jsonl": re.compile(rb'\{"run": "[^"]*", "cell": \{"id": "'),
    ".csv": re.compile(rb"run,cell,cell_name,"),
    ".xml": re.compile(rb"<\?xml version='1\.0' encoding='utf-8'\?>\n<testsuites name=\"[^\"]*\" tests=")})
_PARQUET = ["run", "cell", "cell_name"]
_LOOKED_AT = 4096  # bytes


def check_replaceable(path: Path, form: str) -> None:
    """Make sure that writing there destroys nothing but an earlier export.

    Args:
        form: the ending of files of that form, whatever that of this one is.

    Raises:
        RunError: something else is there.
    """
    if path.is_dir():
        raise RunError(f"{path}: that is a folder; name a file")
    if not path.exists():
        return
    if not path.is_file():
        raise RunError(f"{path}: that is a device or a pipe; name a file")
    if not _written_by_us(path, form):
        raise RunError(f"{path} is there, and not an earlier export of this form; name another file")


def _written_by_us(path: Path, form: str) -> bool:
    try:
        with path.open("rb") as stream:
            begins = stream.read(_LOOKED_AT)
    except OSError as error:
        raise RunError(f"{path} is there, and cannot be read: {error.strerror}; name another file") from error
    return not begins or (_columns(path) == _PARQUET if form == ".parquet" else bool(_BEGINS[form].match(begins)))


def _columns(path: Path) -> list[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return list(pq.read_schema(path).names[:len(_PARQUET)])
    except (pa.ArrowException, OSError):
        return []
