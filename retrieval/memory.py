"""Free and used memory of this machine."""
from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")


def free_memory(proc: Path = PROC, cgroups: Path = CGROUPS) -> int | None:
    """Return the bytes that can be used without swapping, within the limits of control groups. If unknown, return the
    machine's total memory, or None."""
    known = [free for free in (_machine_free(proc), *_group_free(proc, cgroups)) if free is not None]
    return min(known, default=None)


def peak_memory(children: int = 0) -> int | None:
    """Estimate the peak bytes of this process and of `children` children as large as the largest. None on Windows."""
    if sys.platform == "win32":
        return None
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    own, child = (resource.getrusage(whose).ru_maxrss for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return unit * (own + children * child)


def _machine_free(proc: Path) -> int | None:
    for line in _lines(proc / "meminfo"):
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        return None


def _group_free(proc: Path, cgroups: Path) -> Iterator[int]:
    """Yield the free bytes of this process's control group (version 2) and of each group above it."""
    for line in _lines(proc / "self" / "cgroup"):
        own = cgroups / line.removeprefix("0::").strip("/")
        for folder in (own, *own.parents) if line.startswith("0::") else ():
            if folder != cgroups and cgroups not in folder.parents:
                break
            most, now = ("".join(_lines(folder / f"memory.{name}")).strip() for name in ("max", "current"))
            if most.isdigit() and now.isdigit():  # `max` means no limit
                cached = [int(line.split()[1]) for line in _lines(folder / "memory.stat")
                          if line.startswith("inactive_file ")]
                yield max(int(most) - int(now) + sum(cached), 0)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
