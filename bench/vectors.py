"""Compare kinds of vector index: build time, recall and search speed.

    python bench/vectors.py [--vectors 1000000] [--kinds flat,rabitq,hnsw] [--real FILE.npy] [--json]

Unit vectors in clusters: a random unit centre plus independent Gaussian noise whose expected length is `--noise`,
scaled to length 1; queries are made the same way. With `--real`, the vectors are the rows of a file, and the queries
its last rows. If more vectors are wanted than the file has, each further one is a row plus noise of the length
`--noise`, scaled to length 1. The ground truth is the ten nearest vectors of each query, found by numpy over all
vectors. Each kind is built and written in one process from a memory-mapped file, and searched in another that maps the
index. Peak memory is the process's largest resident set; while building it holds the pages of the input that were read
(at most its size, which is printed), which the system can take back. `processor` counts the seconds of all cores, which
other work on the machine affects less than wall time. Single queries run one by one on one core, and `single, ms` is
the median of their processor time. The last table divides each kind's figures by those of the first kind. Milvus runs
as its embedded engine, in the same process.
"""
from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbed.experiments.guests.milvus.collection import Milvus
from ragbed.retrieval import Flat, Hnsw, RaBitQ
from ragbed.retrieval.index_settings import IndexSettings
from ragbed.retrieval.vector_index import FLAT_LIMIT
from ragbed.retrieval.vectors import BuiltVectors, VectorKind, VectorTask

if TYPE_CHECKING:
    import numpy as np

    from ragbed.retrieval import Matrix

KINDS: dict[str, VectorKind] = {
    "flat": Flat(), "flat/float16": Flat(codes="float16"), "flat/sq8": Flat(codes="sq8"),
    "rabitq": RaBitQ(), "rabitq/sq8": RaBitQ(codes="sq8"), "hnsw/sq8": Hnsw(codes="sq8"),
    "hnsw": Hnsw(), "hnsw/threads": Hnsw(threads=os.cpu_count() or 1),
    "milvus/flat": Milvus(uri="vectors.db", search=Flat()),
    "milvus/hnsw": Milvus(uri="vectors.db").choose(2 * FLAT_LIMIT, 384).settings}

OTHERS = ("hnsw/threads", "milvus/flat", "milvus/hnsw")  # only where they are named
K = 10
BLOCK = 16_384
SINGLE_SECONDS = 10.0


def main(count: int = 1_000_000, kinds: str = ",".join(name for name in KINDS if name not in OTHERS)) -> None:
    """Print the table of these kinds over so many vectors, unless options say others."""
    options = _options(count, kinds)
    with tempfile.TemporaryDirectory(dir=options.folder) as made:
        folder = Path(made)
        _make(folder, options)
        rows = []
        for name in options.kinds.split(","):
            for previous in ("vectors.db", "index"):
                shutil.rmtree(folder / previous, ignore_errors=True)
            rows.append({"kind": name, **_child("build", folder, name), **_child("search", folder, name)})
            if not options.json:
                print(_line(rows[-1], first=len(rows) == 1), flush=True)
        if not options.json:
            print("\n".join(_ratios(rows)))
        truth = _truth_told(folder)
    report = {"machine": _machine(), "vectors": options.vectors, "dimensions": options.dimensions,
              "of": str(options.real or f"{options.clusters:,} clusters"), "noise": options.noise,
              "queries": options.queries, **truth, "kinds": rows}
    print(json.dumps(report, indent=2) if options.json else _about(report))


def _options(count: int, kinds: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, usual in (("vectors", count), ("dimensions", 384), ("clusters", 10_000), ("queries", 1_000),
                        ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--real", type=Path, metavar="FILE.npy", help="unit vectors to use instead of random ones")
    parser.add_argument("--noise", type=float, default=1.5, help="expected length of the noise on a centre of length 1")
    parser.add_argument("--kinds", default=kinds, help=f"of {', '.join(KINDS)}")
    parser.add_argument("--folder", type=Path, help="folder for temporary vectors and indexes")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", nargs=3, metavar=("WHAT", "FOLDER", "KIND"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        what, folder, kind = options.child
        print(json.dumps(_build(Path(folder), KINDS[kind]) if what == "build" else _search(Path(folder))))
        sys.exit()
    if unknown := set(options.kinds.split(",")) - KINDS.keys():
        parser.error(f"--kinds {', '.join(sorted(unknown))}: choose from {', '.join(KINDS)}")
    return options


def _make(folder: Path, options: argparse.Namespace) -> None:
    """Vectors, queries, and the queries' nearest among the vectors, as files."""
    import numpy as np

    rng = np.random.default_rng(options.seed)
    if options.real:
        real: Matrix = np.load(options.real, mmap_mode="r", allow_pickle=False)
        centres, queries = real[:-options.queries], np.ascontiguousarray(real[-options.queries:])
        options.dimensions = real.shape[1]
    else:
        centres = _unit(rng.standard_normal((options.clusters, options.dimensions), np.float32))
        queries = _noisy(centres, options.queries, options.noise, rng)
    given = len(centres) if options.real else 0
    vectors = np.lib.format.open_memmap(folder / "vectors.npy", "w+", np.float32, (options.vectors, options.dimensions))
    best = np.full((options.queries, K), -np.inf, np.float32)
    rows = np.zeros((options.queries, K), np.int64)
    for start in range(0, options.vectors, BLOCK):
        size = min(BLOCK, options.vectors - start)
        known = centres[start:min(start + size, given)]
        block = np.vstack([known, _noisy(centres, size - len(known), options.noise, rng)])
        vectors[start:start + len(block)] = block
        scores = np.hstack([best, queries @ block.T])
        numbers = np.hstack([rows, np.broadcast_to(np.arange(start, start + len(block)), (len(queries), len(block)))])
        places = np.argpartition(-scores, K - 1, axis=1)[:, :K]
        best, rows = np.take_along_axis(scores, places, 1), np.take_along_axis(numbers, places, 1)
    vectors.flush()
    np.save(folder / "queries.npy", queries)
    np.save(folder / "rows.npy", rows)
    np.save(folder / "scores.npy", np.sort(best, axis=1)[:, ::-1])


def _noisy(centres: Matrix, count: int, noise: float, rng: np.random.Generator) -> Matrix:
    import numpy as np

    drawn = rng.standard_normal((count, centres.shape[1]), np.float32) * np.float32(noise / centres.shape[1] ** 0.5)
    return _unit(drawn + centres[rng.integers(0, len(centres), count)])


def _unit(vectors: Matrix) -> Matrix:
    import numpy as np

    unit: Matrix = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def _child(what: str, folder: Path, kind: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, __file__, "--child", what, folder, kind], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{kind} failed to {what}:\n{done.stderr}")
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _build(folder: Path, settings: VectorKind) -> dict[str, Any]:
    import numpy as np

    vectors = np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False)
    index = folder / "index"
    index.mkdir(exist_ok=True)

    def build(rows: Matrix, file: str) -> BuiltVectors:
        kind = settings.model_copy(update={"uri": str(folder / file)}) if isinstance(settings, Milvus) else settings
        return kind.build(VectorTask(rows, "", folder, "made", None, lambda more: None))

    build(vectors[:1_000], "warm.db")  # loads libraries
    made: list[BuiltVectors] = []
    clock, processor = _timed(lambda: made.append(build(vectors, "vectors.db")))
    written, writing = _timed(lambda: made[0].write(index))
    (folder / "settings.json").write_text(IndexSettings(vectors=made[0].settings).model_dump_json())
    files = [*index.iterdir(), *(folder / "vectors.db").rglob("*")]
    return {"build, s": clock + written, "processor, s": processor + writing, "building, GB": _peak(),
            "file, MB": sum(one.stat().st_size for one in files if one.is_file()) / 1e6}


def _search(folder: Path) -> dict[str, Any]:
    import numpy as np

    queries, truth = np.load(folder / "queries.npy"), np.load(folder / "rows.npy")
    shape = np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False).shape
    kind = IndexSettings.model_validate_json((folder / "settings.json").read_text()).vectors
    index = kind.open(folder / "index", shape[1])
    found = index.search(queries, K)[1]  # and what is needed of the file is in memory
    clock, processor = _timed(lambda: index.search(queries, K))
    singles: list[float] = []
    while sum(singles) < SINGLE_SECONDS and len(singles) < len(queries):
        place = len(singles)
        singles.append(_timed(lambda place=place: index.search(queries[place:place + 1], K))[1])  # type: ignore[misc]
    pairs = zip(truth.tolist(), found.tolist(), strict=True)
    shared = np.mean([len(set(one) & set(other)) / K for one, other in pairs])
    return {"searching, GB": _peak(), "recall@10": float(shared), "queries/s": len(queries) / clock,
            "per processor second": len(queries) / processor, "single, ms": 1_000 * float(np.median(singles))}


def _timed(action: Callable[[], object]) -> tuple[float, float]:
    clock, processor = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - clock, max(time.process_time() - processor, 1e-9)


def _peak() -> float:
    status = Path("/proc/self/status")
    if status.exists():  # there ru_maxrss begins at what the parent process held
        [most] = [line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        return int(most) * 1024 / 1e9
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e9


def _truth_told(folder: Path) -> dict[str, float]:
    import numpy as np

    scores = np.load(folder / "scores.npy")
    return {"input, GB": (folder / "vectors.npy").stat().st_size / 1e9,
            "cosine of the first": float(scores[:, 0].mean()), "cosine of the tenth": float(scores[:, -1].mean())}


def _machine() -> dict[str, Any]:
    import faiss

    return {"cores": os.cpu_count(), "faiss": faiss.__version__, "compiled for": faiss.get_compile_options().strip(),
            "load": os.getloadavg()[0]}


def _line(row: dict[str, Any], first: bool) -> str:
    line = f"{row['kind']:<14}" + "".join(f"{value:>{len(name) + 2}.{3 if 'recall' in name else 1}f}"
                                          for name, value in row.items() if name != "kind")
    return line if not first else f"{'kind':<14}" + "".join(f"  {name}" for name in row if name != "kind") + f"\n{line}"


def _ratios(rows: list[dict[str, Any]]) -> list[str]:
    """The lines of a table of each kind's figures, divided by those of the first kind."""
    names = ("processor, s", "building, GB", "file, MB", "searching, GB", "recall@10", "single, ms")
    return ["", f"{'ratio to ' + rows[0]['kind']:<14}" + "".join(f"  {name}" for name in names)] + [
        f"{row['kind']:<14}" + "".join(f"{row[name] / rows[0][name]:>{len(name) + 2}.3f}" for name in names)
        for row in rows[1:]]


def _about(report: dict[str, Any]) -> str:
    machine = report["machine"]
    return (f"\n{report['vectors']:,} vectors of {report['dimensions']} dimensions ({report['input, GB']:.2f} GB) in "
            f"{report['of']}, noise {report['noise']}; {report['queries']:,} queries, the first at a "
            f"cosine of {report['cosine of the first']:.3f}, the tenth at {report['cosine of the tenth']:.3f}\n"
            f"{machine['cores']} cores, load {machine['load']:.1f}; faiss {machine['faiss']} "
            f"({machine['compiled for']})")


if __name__ == "__main__":
    main()
