"""Memory that a process may still take on this machine."""
from __future__ import annotations

import os
import sys
from pathlib import Path

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")


def free_memory(proc: Path = PROC, cgroups: Path = CGROUPS) -> int | None:
    """Return bytes that can be taken without swapping: of the machine, or of the control groups that this process is
    in.

    Where the system does not tell what is free, all of its memory; None where it tells nothing.
    """
    known = [free for free in (_of_machine(proc), *_of_groups(proc, cgroups)) if free is not None]
    return min(known, default=None)


def peak_memory(children: int = 0) -> int | None:
    """Return bytes at the peak of this process, and of that many like its largest child; None where no system tells."""
    if sys.platform == "win32":
        return None
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    own, child = (resource.getrusage(whose).ru_maxrss for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return unit * (own + children * child)


def _of_machine(proc: Path) -> int | None:
    for line in _lines(proc / "meminfo"):
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        return None


def _of_groups(proc: Path, cgroups: Path) -> list[int | None]:
    left: list[int | None] = []
    for line in _lines(proc / "self" / "cgroup"):
        controllers, _, path = line.partition(":")[2].partition(":")
        if controllers == "":  # version 2
            left += _upwards(cgroups, path, "memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            left += _upwards(cgroups / "memory", path, "memory.limit_in_bytes", "memory.usage_in_bytes",
                             "total_inactive_file")
    return left


def _upwards(root: Path, path: str, limit: str, used: str, reclaimable: str) -> list[int | None]:
    own = root / path.strip("/")
    return [_left(folder, limit, used, reclaimable) for folder in (own, *own.parents)
            if folder == root or root in folder.parents]


def _left(folder: Path, limit: str, used: str, reclaimable: str) -> int | None:
    most, now = _number(folder / limit), _number(folder / used)
    if most is None or now is None:
        return None
    cached = [int(line.split()[1]) for line in _lines(folder / "memory.stat") if line.split()[0] == reclaimable]
    return max(most - now + sum(cached), 0)


def _number(path: Path) -> int | None:
    text = "".join(_lines(path)).strip()
    return int(text) if text.isdigit() else None  # `max` is no limit


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
