"""Measure the ratios that have a bar, and compare them with `bench/bars.json`. Exit with status 1 if one is missed.

    python bench/bars.py [--only WORD]

It takes about ten minutes and needs an idle machine. Each bar has the command that measures it, relative to `bench/`,
and a regular expression that finds the figure in what the command prints. `--only` measures those with this word in
their name.
"""
from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="")
    only = parser.parse_args().only
    bars = [bar for bar in json.loads((HERE / "bars.json").read_text()) if only in bar["name"]]
    if not bars:
        sys.exit(f"no bar has {only!r} in its name")
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=HERE, capture_output=True, text=True)
    print(f"{time.strftime('%Y-%m-%d')}, commit {commit.stdout.strip()}, {platform.machine()}, {os.cpu_count()} cores, "
          f"load {os.getloadavg()[0]:.1f}, Python {platform.python_version()}")
    print(f"{'':70}{'measured':>10}{'bar':>12}")
    missed = [bar for bar in bars if not _show(bar)]
    sys.exit(1 if missed else 0)


def _show(bar: dict[str, Any]) -> bool:
    """Print a figure beside its bar, and return whether it holds."""
    found = re.search(bar["figure"], _output(tuple(bar["command"])), re.MULTILINE)
    if found is None:
        sys.exit(f"{bar['name']}: {' '.join(bar['command'])} printed no such figure; mend its expression in bars.json")
    figure, most, least = float(found[1]), bar.get("at_most", float("inf")), bar.get("at_least", 0.0)
    holds = bool(least <= figure <= most)
    said = f"<= {most:g}" if "at_most" in bar else f">= {least:g}"
    print(f"{bar['name']:70}{figure:>10g}{said:>12}{'' if holds else '  missed'}", flush=True)
    return holds


@cache
def _output(command: tuple[str, ...]) -> str:
    done = subprocess.run([sys.executable, HERE / command[0], *command[1:]], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()[-500:]}")
    return done.stdout


if __name__ == "__main__":
    main()
