"""What building an index costs beside the embedding: memory and time, by the number of chunks.

    python bench/building.py --data RAW_DATA [--chunks 10000 20000] [--against CHECKOUT] [--json]

The texts of the raw data's `novels` are written again and again, every fiftieth word of each copy replaced, until there
are enough of them for so many chunks of about 800 characters. They are indexed by an embedder that makes 384 numbers
out of a text's hash, so that neither a model's memory nor its time is in the figures. Every build runs in a process of
its own, with an empty cache, and then once more with nothing changed. With `--against`, the same is done with another
checkout of ragbed, each size right after ours. Memory is of the building process: its growth above what it has when
its libraries are imported, of which the vectors that faiss holds are the part that cannot be saved.
"""
from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
OURS = HERE.parent.parent
CHUNK = 800
FILE = 60_000
DIMENSION = 384


class Hashed:
    """Vectors out of hashes, at almost no cost."""

    name, identity, dimension, window = "hashed", "hashed-1", DIMENSION, 512

    def windows(self, texts: Any, header: str = "") -> Any:
        return [[(0, len(text))] for text in texts]

    def embed_queries(self, texts: Any) -> Any:
        return self.embed_passages(texts)

    def embed_passages(self, texts: Any) -> Any:
        import numpy as np

        seeds = [int.from_bytes(sha256(text.encode()).digest()[:8]) for text in texts]
        drawn = np.stack([np.random.default_rng(seed).standard_normal(DIMENSION, np.float32) for seed in seeds])
        return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def main() -> None:
    options = _options()
    if options.child:
        print(json.dumps(_build(Path(options.child))))
        return
    if not options.data:
        sys.exit("name the folder of the raw data with --data or RAGBED_DATA")
    trees = {"streaming": OURS} | ({"against": Path(options.against).resolve()} if options.against else {})
    rows = []
    for chunks in options.chunks:
        with tempfile.TemporaryDirectory() as folder:
            size = _write(Path(options.data), Path(folder) / "pages", chunks)
            for name, tree in trees.items():
                rows.append({"build": name, "size": size, **_child(tree, Path(folder), name)})
    report = {"machine": {"cores": os.cpu_count(), "python": sys.version.split()[0]}, "builds": rows}
    print(json.dumps(report, indent=2) if options.json else _table(rows, report["machine"]))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("RAGBED_DATA"))
    parser.add_argument("--chunks", type=int, nargs="+", default=[10_000, 20_000])
    parser.add_argument("--against", help="the root of another checkout")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser.parse_args()


def _write(data: Path, folder: Path, chunks: int) -> int:
    """Text files for about so many chunks; their bytes."""
    folder.mkdir()
    total = number = 0
    for text in _texts(data):
        for start in range(0, len(text), FILE):
            if total >= chunks * CHUNK:
                return total
            (folder / f"{number:05}.txt").write_text(text[start:start + FILE])
            total, number = total + len(text[start:start + FILE]), number + 1
    return total


def _texts(data: Path) -> Iterator[str]:
    novels = [path.read_text(encoding="utf-8", errors="replace") for path in sorted((data / "novels").rglob("*.txt"))]
    for copy in range(100_000):
        drawn = random.Random(copy)
        for novel in novels:
            yield " ".join(f"w{drawn.randrange(10_000)}" if word.strip() and drawn.random() < 0.02 else word
                           for word in novel.split(" "))


def _child(tree: Path, folder: Path, name: str) -> dict[str, Any]:
    (folder / name).mkdir()
    environment = {**os.environ, "PYTHONPATH": str(tree), "RAGBED_CACHE": str(folder / name / "cache")}
    done = subprocess.run([sys.executable, HERE, "--child", folder / name], env=environment, stdout=subprocess.PIPE,
                          text=True, check=True, cwd=tree)
    taken: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return taken


def _build(place: Path) -> dict[str, Any]:
    """Build twice in this process's tree: from nothing, and, in the same folder, with nothing changed."""
    sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != HERE.parent]
    import faiss  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    from ragbed.retrieval import build_index

    before, begun = _peak(resource.RUSAGE_SELF), time.perf_counter()
    report = build_index([place.parent / "pages"], place / "index", embedder=Hashed())
    seconds, peak = time.perf_counter() - begun, _peak(resource.RUSAGE_SELF)
    begun = time.perf_counter()
    build_index([place.parent / "pages"], place / "index", embedder=Hashed())
    again = time.perf_counter() - begun
    return {"chunks": report.chunks, "seconds": round(seconds, 1), "again_seconds": round(again, 1),
            "start_mb": round(before), "peak_mb": round(peak), "growth_mb": round(peak - before),
            "vectors_mb": round(report.windows * 4 * DIMENSION / 1e6),
            "parser_mb": round(_peak(resource.RUSAGE_CHILDREN)),
            "stages": {stage: round(taken, 1) for stage, taken in report.seconds.items()}}


def _peak(whose: int) -> float:
    """Megabytes."""
    taken = resource.getrusage(whose).ru_maxrss
    return taken / 1e6 if sys.platform == "darwin" else taken * 1_024 / 1e6


def _table(rows: list[dict[str, Any]], machine: dict[str, Any]) -> str:
    lines = [f"{machine['cores']} cores, Python {machine['python']}",
             f"{'build':10} {'chunks':>8} {'text MB':>8} {'vectors MB':>10} {'growth MB':>10} {'peak MB':>8} {'s':>7} "
             f"{'again s':>8}"]
    lines += [f"{row['build']:10} {row['chunks']:8,} {row['size'] / 1e6:8.1f} {row['vectors_mb']:10} "
              f"{row['growth_mb']:10} {row['peak_mb']:8} "
              f"{row['seconds']:7} {row['again_seconds']:8}" for row in rows]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
