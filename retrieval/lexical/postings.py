"""Postings: the amount that each token adds to a chunk's score, by the formulas of bm25s.

They are built and searched in blocks of chunks, whose size limits memory. Large postings are kept on disk and mapped.
"""
from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Literal
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from ragbed.documents.paths import cache_dir
from ragbed.retrieval.lexical.tokens import Tokenizer
from ragbed.retrieval.storage.folder import exclusive, is_whole, keep

Numbers = NDArray[np.int32]
Scores = NDArray[np.float32]
Bm25Method = Literal["lucene", "robertson", "atire", "bm25l", "bm25+"]

_BLOCK_TOKENS = 1 << 23  # counting them takes about 200 MB
_BLOCKS, _ABOUT = "blocks.int32", "about.json"


@dataclass(frozen=True, slots=True)
class Block:
    """The postings of consecutive chunks. The token `tokens[i]` is in the chunks `rows[starts[i]:starts[i + 1]]`,
    counted from the block's first chunk, and has the `scores` at the same positions. They are counts until `_weigh`
    turns them into scores."""

    chunks: int
    tokens: Numbers
    starts: Numbers
    rows: Numbers
    scores: Scores

    @classmethod
    def count(cls, ids: Numbers, lengths: Sequence[int], vocabulary: int) -> Block:
        """Count tokens, given by their numbers below `vocabulary`, in chunks of these lengths."""
        from scipy.sparse import csr_array

        starts = np.cumsum([0, *lengths], dtype=np.int32)
        counts = csr_array((np.ones(len(ids), np.float32), ids, starts), (len(lengths), vocabulary)).tocsc()
        counts.sum_duplicates()
        held = np.flatnonzero(np.diff(counts.indptr)).astype(np.int32)
        return cls(len(lengths), held, counts.indptr[np.append(held, -1)], counts.indices, counts.data)

    def sums(self, tokens: Numbers) -> Scores:
        """Return the sum of the scores of these tokens in each chunk."""
        sums = np.zeros(self.chunks, np.float32)
        firsts, ends = (self.starts[np.searchsorted(self.tokens, tokens, side)] for side in ("left", "right"))
        for first, end in zip(firsts.tolist(), ends.tolist(), strict=True):
            sums[self.rows[first:end]] += self.scores[first:end]  # a token lists each row only once
        return sums


@dataclass(frozen=True)
class Postings:
    """The score of every token in every chunk that contains it. Searching is thread-safe."""

    vocabulary: Mapping[str, int]  # number of each token
    absent: Scores  # score of a chunk without the token, by token number; empty unless the method is BM25L or BM25+
    blocks: Sequence[Block]

    @classmethod
    def build(cls, texts: Iterable[str], tokenizer: Tokenizer, weights: Mapping[str, Any]) -> Postings:
        """Build postings in memory. `weights` are the parameters of bm25s; see `retrieval.retrievers.bm25`."""
        vocabulary: dict[str, int] = {}
        blocks = list(_count_blocks(texts, tokenizer, vocabulary))
        return cls(vocabulary, _weigh(blocks, len(vocabulary), weights), blocks)

    @staticmethod
    def write(folder: Path, texts: Iterable[str], tokenizer: Tokenizer, weights: Mapping[str, Any]) -> None:
        """Build postings in a folder. Only one block and the vocabulary are in memory."""
        vocabulary: dict[str, int] = {}
        sizes = []
        with (folder / _BLOCKS).open("wb") as file:
            for block in _count_blocks(texts, tokenizer, vocabulary):
                sizes.append((block.chunks, len(block.tokens), len(block.rows)))
                for part in (block.tokens, block.starts, block.rows, block.scores):
                    part.tofile(file)
        absent = _weigh(_map_blocks(folder, sizes, "r+"), len(vocabulary), weights)
        (folder / _ABOUT).write_text(json.dumps([list(vocabulary), absent.tolist(), sizes]), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Postings:
        """Open the postings in a folder."""
        vocabulary, absent, sizes = json.loads((folder / _ABOUT).read_bytes())
        return cls(dict(zip(vocabulary, range(len(vocabulary)), strict=True)), np.array(absent, np.float32),
                   _map_blocks(folder, sizes, "r"))

    def best(self, tokens: Sequence[str], k: int, among: NDArray[np.bool_] | None = None) -> list[tuple[int, float]]:
        """Return at most `k` rows that contain any of the tokens, with their scores, best first, ties by row. A
        repeated token counts repeatedly. The mask `among`, of shape (chunks,), restricts the search."""
        numbers = np.array([self.vocabulary[token] for token in tokens if token in self.vocabulary], np.int32)
        if not len(numbers) or k < 1:
            return []
        least = self.absent[numbers].sum() if len(self.absent) else np.float32(0)
        found: list[tuple[int, float]] = []
        first = 0
        for block in self.blocks:
            scores = block.sums(numbers) + least
            holds = scores > least
            rows = np.flatnonzero(holds if among is None else holds & among[first:first + block.chunks])
            if len(rows) > k:
                own = scores[rows]
                rows = rows[own >= np.partition(own, len(own) - k)[len(own) - k]]
            found += zip((rows + first).tolist(), scores[rows].tolist(), strict=True)
            first += block.chunks
        return sorted(found, key=lambda one: -one[1])[:k]


def _count_blocks(texts: Iterable[str], tokenizer: Tokenizer, vocabulary: dict[str, int]) -> Iterator[Block]:
    """Number the tokens, extending the vocabulary, and yield a block whenever there are enough tokens."""
    ids, lengths = array("i"), array("i")
    for tokens in tokenizer.tokens(texts):
        ids.extend([vocabulary.setdefault(token, len(vocabulary)) for token in tokens])
        lengths.append(len(tokens))
        if len(ids) >= _BLOCK_TOKENS:
            yield Block.count(np.frombuffer(ids, np.int32), lengths, len(vocabulary))
            ids, lengths = array("i"), array("i")
    if lengths:
        yield Block.count(np.frombuffer(ids, np.int32), lengths, len(vocabulary))


def _weigh(blocks: Sequence[Block], vocabulary: int, weights: Mapping[str, Any]) -> Scores:
    """Replace counts by scores and return `Postings.absent`. Numbers of chunks and lengths are summed over all blocks,
    so scores equal those of bm25s to the last bit."""
    from bm25s import scoring

    if not vocabulary:
        return np.zeros(0, np.float32)
    holding = np.zeros(vocabulary, np.int64)  # number of chunks with each token
    for block in blocks:
        holding[block.tokens] += np.diff(block.starts)
    chunks = sum(block.chunks for block in blocks)
    mean = np.float64(sum(block.scores.sum(dtype=np.float64) for block in blocks) / chunks)
    weigh = partial(scoring._select_tfc_scorer(weights["method"]), l_avg=mean,
                    **{name: weights[name] for name in ("k1", "b", "delta")})
    rarity = partial(scoring._select_idf_scorer(weights["method"]), N=chunks)
    numbers, places = np.unique(holding, return_inverse=True)
    exact = np.array(list(map(rarity, numbers.tolist())))[places]
    idf, absent = exact.astype(np.float32), np.zeros(0, np.float32)
    if weights["method"] in ("bm25l", "bm25+"):
        absent = (exact * weigh(tf_array=0, l_d=mean)).astype(np.float32)
    for block in blocks:
        lengths = np.bincount(block.rows, block.scores, block.chunks)[block.rows]
        held = np.repeat(block.tokens, np.diff(block.starts))
        scores = idf[held] * weigh(tf_array=block.scores, l_d=lengths)
        block.scores[:] = scores - absent[held] if len(absent) else scores
    return absent


def _map_blocks(folder: Path, sizes: Iterable[Sequence[int]], mode: Literal["r", "r+"]) -> list[Block]:
    # As plain arrays: slicing a memmap costs more than summing the slice.
    rest = np.asarray(np.memmap(folder / _BLOCKS, np.int32, mode))
    blocks = []
    for chunks, tokens, postings in sizes:
        held, starts, rows, scores, rest = np.split(rest, np.cumsum([tokens, tokens + 1, postings, postings]))
        blocks.append(Block(chunks, held, starts, rows, scores.view(np.float32)))
    return blocks


_OPEN: WeakValueDictionary[Path, Postings] = WeakValueDictionary()
_LOCK = Lock()


def cached_postings(key: str, write: Callable[[Path], None]) -> Postings:
    """Return postings from memory or the cache folder. If there are none, build them with `write`.

    Damaged postings are built again. If another process is building them, it is waited for. Raises SettingsError if the
    cache folder cannot be written.

    Args:
        key: hash of everything that the postings depend on.
    """
    folder = cache_dir() / "bm25" / key
    with _LOCK:
        found = _OPEN.get(folder)
        if found is None:
            if not is_whole(folder):
                with exclusive(folder, wait=True):
                    if not is_whole(folder):
                        keep(folder, write)
            found = _OPEN[folder] = Postings.read(folder)
        return found
