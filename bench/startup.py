"""Measure how long commands that load no model take, from the shell's prompt back to the prompt.

    python bench/startup.py [--rounds 7]

The commands search an index over this repository's docs with BM25; `ask` asks a server of this script that answers at
once. The baseline is a Python process that only imports the libraries that `ask` needs. Each round runs every command
once. Figures are seconds, and the ratio is the median of each round's ratio to the baseline.
"""
from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from overhead import server

ROOT = Path(__file__).parent.parent
RAGBED = (sys.executable, "-m", "ragbed")
BASE = "python -c 'import langchain_openai, langgraph.graph, numpy, pyarrow'"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder, server() as url:
        index = ("--index", f"{folder}/idx", "--retriever", "bm25")
        _seconds((*RAGBED, "index", str(ROOT / "docs"), "--out", f"{folder}/idx", "--embedder", "none"))
        commands = {BASE: (sys.executable, "-c", BASE.split("'")[1]), "ragbed --help": (*RAGBED, "--help"),
                    "ragbed search": (*RAGBED, "search", "how do shards merge", *index),
                    "ragbed ask": (*RAGBED, "ask", "How do shards merge?", *index, "--model", f"{url}#instant")}
        for command in commands.values():
            _seconds(command)  # what is read from the disk, and compiled, once
        taken = [{name: _seconds(command) for name, command in commands.items()} for _ in range(rounds)]
    print(f"{'':70}{'median':>8}{'min':>8}{'ratio':>8}")
    for name in commands:
        seconds = [one[name] for one in taken]
        ratio = statistics.median(one[name] / one[BASE] for one in taken)
        print(f"{name:70}{statistics.median(seconds):>8.2f}{min(seconds):>8.2f}{ratio:>8.2f}")


def _seconds(command: Sequence[str]) -> float:
    begun = perf_counter()
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT,
                   env={name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"})
    return perf_counter() - begun


if __name__ == "__main__":
    main()
