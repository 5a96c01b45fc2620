"""Compare the tool `grep` with ripgrep on the same documents.

    python bench/grep.py [--chunks 100000] [--characters 2000] [--rounds 9] [--json]

The documents are made of words whose frequencies follow Zipf's law, with 20 chunks of `--characters` each. They are
stored as in an index, and as files for ripgrep. Patterns are of the kinds that models write: words, phrases, word
boundaries, alternatives, distances, and classes without any fixed text. Both sides stop after 1,000 matching lines, and
run on one thread.

`first` is the first search ever, which reads the documents. `cold` is the first search of a process after that, and
`warm` any further one. A round searches every pattern on both sides in turn. A process of ripgrep is always new, and
its files are in the system's memory. Processor time is printed too: a busy machine has less influence on it.
"""
from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import accumulate
from pathlib import Path
from typing import Any

from ragbed.agents.tools import ToolOutput
from ragbed.documents.types import Chunk, Document
from ragbed.experiments.guests.agent_tools import corpus_text
from ragbed.experiments.guests.agent_tools.grep import grep
from ragbed.experiments.guests.agent_tools.reading import ToolContext
from ragbed.retrieval.storage.parquet import DocumentTable, DocumentWriter

_OF_DOCUMENT = 20  # chunks
_WORDS, _LETTERS, _LINE = 30_000, "abcdefghijklmnopqrstuvwxyz", 14


class Corpus:
    """The documents of a Parquet file."""

    format, chunks = "plain", ()

    def __init__(self, path: Path) -> None:
        self._documents, self.hash = DocumentTable(path), str(path)
        self.ids = list(self._documents.sources)

    def document(self, id: str) -> Document:
        return self._documents[id]

    def spans(self, id: str, start: int, end: int) -> tuple[Chunk, ...]:
        return (Chunk.of(self.document(id), "plain", start, end),)


def make(folder: Path, chunks: int, characters: int) -> list[str]:
    """Write the documents, and return the words, most frequent first."""
    draw = random.Random(1)
    words = ["".join(draw.choices(_LETTERS, k=draw.randint(2, 10))) for _ in range(_WORDS)]
    weights = [*accumulate(1 / rank for rank in range(1, _WORDS + 1))]
    (folder / "files").mkdir()
    writer = DocumentWriter(folder / "documents.parquet")
    for number in range(chunks // _OF_DOCUMENT):
        text, size = [], 0
        while size < characters * _OF_DOCUMENT:
            text.append(" ".join(draw.choices(words, cum_weights=weights, k=_LINE)))
            size += len(text[-1]) + 1
        name, whole = f"{number:06}.txt", "\n".join(text) + "\n"
        writer.document(Document(name, name, name, whole, whole), "", {})
        (folder / "files" / name).write_text(whole)
    writer.close()
    return words


def patterns(words: list[str]) -> dict[str, str]:
    """Return patterns by their kind."""
    often, some, rare, other = words[200], words[3_000], words[20_000], words[20_001]
    return {"rare word": rare, "no such word": "qxzvjq", "phrase": f"{some} {often}", "boundary": rf"\b{rare}\b",
            "boundaries": rf"\b{some}\b", "suffix": rf"\w+{rare[-4:]}\b", "distance": rf"{rare}.*{often}",
            "plural": rf"{rare}s?\b", "alternatives": f"{rare}|{other}", "group": rf"(?:{rare}|{other}) {often}",
            "class": "[0-9]{4}", "capitals": "[A-Z]{2,}-[0-9]+"}


def spent(work: Any) -> tuple[float, float, Any]:
    """Return the seconds and processor seconds of a function, its children included, and its value."""
    def processor() -> float:
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(one.ru_utime + one.ru_stime for one in used)

    started, before = time.perf_counter(), processor()
    value = work()
    return time.perf_counter() - started, processor() - before, value


def ripgrep(folder: Path, pattern: str) -> int:
    """Return the number of matching lines, at most 1,000, that ripgrep finds."""
    case = [] if any(map(str.isupper, pattern.replace("\\b", "").replace("\\w", ""))) else ["-i"]
    running = subprocess.Popen(["rg", "-j1", "--no-heading", "-n", *case, "-e", pattern, str(folder / "files")],
                               stdout=subprocess.PIPE)
    assert running.stdout is not None
    lines = sum(1 for _ in zip(range(1_000), running.stdout, strict=False))
    running.stdout.close()
    running.wait()
    return lines


def counted(output: ToolOutput) -> int:
    words = str(output.parts[0]).split()
    return 0 if words[0] == "No" else int(words[0].replace(",", ""))


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--chunks", type=int, default=100_000)
    asked.add_argument("--characters", type=int, default=2_000)
    asked.add_argument("--rounds", type=int, default=9)
    asked.add_argument("--json", action="store_true")
    given = asked.parse_args()
    if shutil.which("rg") is None:
        sys.exit("ripgrep is not installed")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["RAGBED_CACHE"] = str(folder / "cache")
        print(json.dumps(measure(folder, given), indent=1)) if given.json else report(measure(folder, given))


def measure(folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    words = make(folder, given.chunks, given.characters)
    kinds = patterns(words)
    corpus = Corpus(folder / "documents.parquet")

    def search(pattern: str, cold: bool = False) -> ToolOutput:
        if cold:
            corpus_text._texts.clear()
        return grep(ToolContext(corpus, {}), pattern)

    first = spent(lambda: search("qxzvjq"))[0]
    rounds: dict[str, dict[str, list[tuple[float, float]]]] = {
        kind: {"cold": [], "warm": [], "ripgrep": []} for kind in kinds}
    for _ in range(given.rounds):
        for kind, pattern in kinds.items():
            *cold, output = spent(lambda pattern=pattern: search(pattern, True))
            *warm, _ = spent(lambda pattern=pattern: search(pattern))
            *other, lines = spent(lambda pattern=pattern: ripgrep(folder, pattern))
            if counted(output) != lines:
                sys.exit(f"{pattern}: {counted(output)} lines, but ripgrep finds {lines}")
            for name, figures in (("cold", cold), ("warm", warm), ("ripgrep", other)):
                rounds[kind][name].append((figures[0], figures[1]))
    table = {kind: {name: {"ms": 1_000 * statistics.median(one for one, _ in found),
                           "cpu_ms": 1_000 * statistics.median(one for _, one in found)}
                    for name, found in named.items()} for kind, named in rounds.items()}
    return {"chunks": given.chunks, "first_ms": 1_000 * first,
            "megabytes": sum(one.size for one in corpus_text.read_corpus(corpus).entries) / 1e6,
            "patterns": {kind: {"pattern": kinds[kind], **row} for kind, row in table.items()},
            "median": {name: {unit: statistics.median(row[name][unit] for row in table.values())
                              for unit in ("ms", "cpu_ms")} for name in ("cold", "warm", "ripgrep")}}


def report(found: dict[str, Any]) -> None:
    print(f"{found['chunks']:,} chunks, {found['megabytes']:.0f} MB; first search ever {found['first_ms']:.0f} ms")
    print(f"{'milliseconds (of processor)':30}{'cold':>14}{'warm':>14}{'ripgrep':>14}{'warm / ripgrep':>16}")
    for kind, row in [*found["patterns"].items(), ("median", found["median"])]:
        cells = "".join(f"{row[name]['ms']:7.0f} ({row[name]['cpu_ms']:.0f})".rjust(14)
                        for name in ("cold", "warm", "ripgrep"))
        print(f"{kind:30}{cells}{row['warm']['ms'] / row['ripgrep']['ms']:16.2f}")


if __name__ == "__main__":
    main()
