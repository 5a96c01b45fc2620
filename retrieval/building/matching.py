"""Sources by name, folder or pattern."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase


def matching(name: str, sources: Iterable[str]) -> Iterator[str]:
    """The sources of that name; where there is none, those below a folder of that name, or that match the pattern."""
    known = list(sources)
    if name in known:
        yield name
        return
    folder = name.rstrip("/") + "/"
    yield from (source for source in known if source.startswith(folder) or fnmatchcase(source, name))
