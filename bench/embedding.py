"""Compare the time that each backend and LangChain take to build an index with MiniLM over the same chunks.

    python bench/embedding.py --data FOLDER [--chunks 2000] [--whole] [--rounds 3] [--only NAME...] [--json]

SciFact's abstracts are cut into chunks of at most 800 characters, all of which fit the model's window. With `--whole`
they are not cut: seven of ten are longer than the window. Then ragbed embeds all of a text, LangChain only its
beginning, and `truncated` is ragbed with the beginning only, so compare this with LangChain. In every round
each contestant, in a fresh process, embeds all of them and adds them to a FAISS index. LangChain uses
`FAISS.from_texts` with `HuggingFaceEmbeddings`; ragbed does what `ragbed index` does, and stores its vectors durably in
an empty cache. Imports, loading the model, its first export and a warm-up are timed separately, as start-up. The ratio
is LangChain's time divided by the contestant's in the same round, so that a machine that is slow for a while slows both
sides. The overlap is the mean share of a chunk's ten nearest other chunks that are also the ten nearest in ragbed's
float32.

LangChain takes part if `langchain_community` and `langchain_huggingface` are installed.
"""
from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from ragbed.retrieval import find_model
from ragbed.retrieval.model_files import MINILM

LONGEST = 800
PEER, BASE = "langchain", "float32"
NEEDS = {"onnx": (), "truncated": (), PEER: ("langchain_community", "langchain_huggingface"), BASE: ()}
PACKAGES = ("ragbed", "torch", "sentence-transformers", "onnxruntime", "faiss-cpu", "langchain-community",
            "langchain-huggingface")
FLAGS = ("sse4_2", "avx", "avx2", "fma", "avx512f", "avx512bw", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_bf16",
         "asimd", "bf16", "sve")


def main() -> None:
    options = _options()
    if options.build:
        print(json.dumps(_build(options.build, json.loads(Path(options.texts).read_text()), Path(options.out))))
        return
    asked = {name: needs for name, needs in NEEDS.items() if name in {BASE, *(options.only or NEEDS)}}
    names = [name for name, needs in asked.items() if all(map(find_spec, needs))]
    taken: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        texts = Path(folder) / "texts.json"
        chunks = _chunks(options.data, options.chunks, options.whole)
        texts.write_text(json.dumps(chunks))
        for turn in range(options.rounds):
            for name in names:
                print(f"round {turn + 1} of {options.rounds}: {name}", file=sys.stderr, flush=True)
                taken[name].append(_child(name, texts, Path(folder)))
        nearest = {name: _nearest(np.load(Path(folder) / f"{name}.npy")) for name in names}
    report = {"machine": _machine(), "chunks": len(chunks), "rounds": options.rounds,
              "contestants": {name: _figures(name, taken, nearest) for name in names},
              "missing": {name: [one for one in needs if not find_spec(one)] for name, needs in asked.items()
                          if name not in names}}
    print(json.dumps(report, indent=2) if options.json else _table(report))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("RAGBED_DATA"))
    parser.add_argument("--chunks", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--whole", action="store_true", help="do not cut the abstracts")
    parser.add_argument("--only", nargs="+", choices=list(NEEDS), help="only these, and float32")
    parser.add_argument("--json", action="store_true")
    for name in ("--build", "--texts", "--out"):  # of a contestant's own process
        parser.add_argument(name, help=argparse.SUPPRESS)
    return parser.parse_args()


def _chunks(data: Path | None, count: int, whole: bool) -> list[str]:
    """The first abstracts of SciFact, or chunks within the window; the number of those that are not is told."""
    from tokenizers import Tokenizer

    if data is None:
        sys.exit("name the folder of public datasets with --data")
    rows = map(json.loads, (Path(data) / "scifact" / "corpus.jsonl").read_text(encoding="utf-8").splitlines())
    texts = [f"{row['title']} {row['text']}" for row in rows]
    if whole:
        return texts[:count]
    pieces = [piece for text in texts for piece in _cut(text)]
    tokenizer = Tokenizer.from_file(str(find_model(MINILM).path / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    lengths = [len(one) for one in tokenizer.encode_batch(pieces[:2 * count])]
    fitting = [piece for piece, length in zip(pieces, lengths, strict=False) if length <= 256][:count]
    kept = sorted(length for length in lengths if length <= 256)
    print(f"{len(fitting)} chunks, {statistics.mean(kept):.0f} tokens on average, {kept[-1]} at most; "
          f"{sum(length > 256 for length in lengths)} of {len(lengths)} cut pieces do not fit and are left out",
          file=sys.stderr)
    return fitting


def _cut(text: str) -> list[str]:
    """Pieces of at most `LONGEST` characters, cut at spaces."""
    pieces = []
    while text:
        end = len(text) if len(text) <= LONGEST else text.rfind(" ", 0, LONGEST) + 1 or LONGEST
        pieces.append(text[:end].strip())
        text = text[end:]
    return [piece for piece in pieces if piece]


def _child(name: str, texts: Path, folder: Path) -> dict[str, float]:
    """One contestant's seconds, from a process of its own."""
    command = [sys.executable, __file__, "--build", name, "--texts", texts, "--out", folder / f"{name}.npy"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{name}: {done.stderr.strip().splitlines()[-1]}")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def _build(name: str, texts: list[str], out: Path) -> dict[str, float]:
    begun = perf_counter()
    with tempfile.TemporaryDirectory() as cache:
        build = _langchain(texts) if name == PEER else _ragbed(name, Path(cache))
        started, processor = perf_counter(), process_time()
        vectors = build(texts)
        ended, used = perf_counter(), process_time() - processor
        np.save(out, vectors())
    return {"startup": started - begun, "clock": ended - started, "processor": used}


def _langchain(texts: Sequence[str]) -> Callable[[list[str]], Callable[[], Any]]:
    from langchain_community.vectorstores import FAISS
    from langchain_huggingface import HuggingFaceEmbeddings

    embeddings = HuggingFaceEmbeddings(model_name=str(find_model(MINILM).path), model_kwargs={"device": "cpu"},
                                       encode_kwargs={"normalize_embeddings": True})
    FAISS.from_texts(list(texts[:8]), embeddings)

    def build(texts: list[str]) -> Callable[[], Any]:
        store = FAISS.from_texts(texts, embeddings)
        return lambda: store.index.reconstruct_n(0, len(texts))

    return build


def _ragbed(name: str, cache: Path) -> Callable[[list[str]], Callable[[], Any]]:
    from ragbed.retrieval import Sentence, VectorIndex, open_embedder
    from ragbed.retrieval.storage.cache import CachedEmbedder

    settings = {"long": name} if name == "truncated" else {"backend": name}
    embedder = CachedEmbedder(open_embedder(Sentence.model_validate({"model": MINILM, **settings})), cache)
    embedder.inner.embed_passages([f"warm-up {number} " * 20 for number in range(8)])

    def build(texts: list[str]) -> Callable[[], Any]:
        vectors = embedder.embed_passages(texts)
        assert len(VectorIndex.build(vectors)) == len(texts)
        return lambda: vectors

    return build


def _nearest(vectors: Any) -> Any:
    """The ten nearest other rows of each, shape (rows, 10)."""
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -2)
    return np.argpartition(-cosines, 10, axis=1)[:, :10]


def _figures(name: str, taken: dict[str, list[dict[str, float]]], nearest: dict[str, Any]) -> dict[str, Any]:
    own, peer = taken[name], taken.get(PEER)
    same = [len({*ours} & {*theirs}) / 10 for ours, theirs in
            zip(nearest[name].tolist(), nearest[BASE].tolist(), strict=True)]
    figures: dict[str, Any] = {key: round(statistics.median(one[key] for one in own), 2) for key in own[0]}
    figures["overlap"] = round(statistics.mean(same), 4)
    for key in ("clock", "processor"):
        ratios = [theirs[key] / ours[key] for ours, theirs in zip(own, peer or [], strict=bool(peer))]
        figures[f"{key}_ratios"] = [round(ratio, 2) for ratio in ratios]
    return figures


def _machine() -> dict[str, Any]:
    cpu = Path("/proc/cpuinfo")
    told = dict(line.split(":", 1) for line in cpu.read_text().splitlines() if ":" in line) if cpu.exists() else {}
    told = {key.strip(): value for key, value in told.items()}
    flags = set((told.get("flags") or told.get("Features") or "").split())
    return {"system": f"{platform.system()} {platform.machine()}", "processor": told.get("model name", "").strip(),
            "flags": [flag for flag in FLAGS if flag in flags], "threads": len(os.sched_getaffinity(0)),
            "python": platform.python_version(), "packages": {name: _version(name) for name in PACKAGES}}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _table(report: dict[str, Any]) -> str:
    machine = report["machine"]
    packages = ", ".join(f"{name} {number}" for name, number in machine["packages"].items() if number)
    lines = [f"{machine['system']}, {machine['processor']}, {machine['threads']} threads; flags: "
             f"{' '.join(machine['flags'])}", f"Python {machine['python']}; {packages}",
             f"{report['chunks']} chunks, medians of {report['rounds']} rounds", "",
             f"{'backend':<19}{'build':>9}{'times LangChain (range)':>26}{'by processor time':>19}{'overlap@10':>12}"
             f"{'start-up':>10}"]
    for name, one in report["contestants"].items():
        clock, processor = one["clock_ratios"], one["processor_ratios"]
        shown = f"{statistics.median(clock):.2f} ({min(clock):.2f}-{max(clock):.2f})" if clock else "-"
        used = f"{statistics.median(processor):.2f}" if processor else "-"
        lines.append(f"{name:<19}{one['clock']:>7.1f} s{shown:>26}{used:>19}{one['overlap']:>12.4f}"
                     f"{one['startup']:>8.1f} s")
    lines += [f"{name} took no part: {', '.join(missing)} not installed" for name, missing in report["missing"].items()]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
