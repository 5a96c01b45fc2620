"""Postings: what each token adds to a chunk's score, by the formulas of bm25s. They are built and searched in blocks of
chunks, whose size bounds the memory; large ones are kept on disk and mapped."""
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
from ragbed.retrieval.storage.folder import alone, is_whole, keep

Numbers = NDArray[np.int32]
Scores = NDArray[np.float32]
Bm25Method = Literal["lucene", "robertson", "atire", "bm25l", "bm25+"]

_TOKENS = 1 << 23  # of a block, at which it ends: counting them takes some 200 MB
_BLOCKS, _ABOUT = "blocks.int32", "about.json"


@dataclass(frozen=True, slots=True)
class Block:
    """The postings of consecutive chunks. The token with the number `tokens[i]` stands in the chunks
    `rows[starts[i]:starts[i + 1]]`, of which the block's first is 0; `scores`, which are counts until they are weighed,
    are of the same places."""

    chunks: int
    tokens: Numbers
    starts: Numbers
    rows: Numbers
    scores: Scores

    @classmethod
    def counted(cls, ids: Numbers, lengths: Sequence[int], vocabulary: int) -> Block:
        """Count the tokens in chunks of these lengths, by their numbers below `vocabulary`."""
        from scipy.sparse import csr_array

        starts = np.cumsum([0, *lengths], dtype=np.int32)
        counts = csr_array((np.ones(len(ids), np.float32), ids, starts), (len(lengths), vocabulary)).tocsc()
        counts.sum_duplicates()
        held = np.flatnonzero(np.diff(counts.indptr)).astype(np.int32)
        return cls(len(lengths), held, counts.indptr[np.append(held, -1)], counts.indices, counts.data)

    def sums(self, tokens: Numbers) -> Scores:
        """Return what these tokens add up to in each chunk, in their order."""
        sums = np.zeros(self.chunks, np.float32)
        firsts, ends = (self.starts[np.searchsorted(self.tokens, tokens, side)] for side in ("left", "right"))
        for first, end in zip(firsts.tolist(), ends.tolist(), strict=True):
            sums[self.rows[first:end]] += self.scores[first:end]  # a token has each row once
        return sums


@dataclass(frozen=True)
class Postings:
    """The scores of every token in every chunk that holds it, computed once. Searching is thread-safe.

    Attributes:
        vocabulary: the number of each token.
        absent: by number, what a chunk without the token has; empty where that is nothing: BM25L and BM25+ give some.
    """

    vocabulary: Mapping[str, int]
    absent: Scores
    blocks: Sequence[Block]

    @classmethod
    def build(cls, texts: Iterable[str], tokenizer: Tokenizer, weights: Mapping[str, Any]) -> Postings:
        """Build the postings of texts in memory. `weights`: bm25s's parameters; see `retrieval.retrievers.bm25`."""
        vocabulary: dict[str, int] = {}
        blocks = list(_counted(texts, tokenizer, vocabulary))
        return cls(vocabulary, _weigh(blocks, len(vocabulary), weights), blocks)

    @staticmethod
    def write(folder: Path, texts: Iterable[str], tokenizer: Tokenizer, weights: Mapping[str, Any]) -> None:
        """Build the postings of texts in a folder: one block and the vocabulary are in memory."""
        vocabulary: dict[str, int] = {}
        sizes = []
        with (folder / _BLOCKS).open("wb") as file:
            for block in _counted(texts, tokenizer, vocabulary):
                sizes.append((block.chunks, len(block.tokens), len(block.rows)))
                for part in (block.tokens, block.starts, block.rows, block.scores):
                    part.tofile(file)
        absent = _weigh(_mapped(folder, sizes, "r+"), len(vocabulary), weights)
        (folder / _ABOUT).write_text(json.dumps([list(vocabulary), absent.tolist(), sizes]), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Postings:
        """Return the postings that were written into a folder."""
        vocabulary, absent, sizes = json.loads((folder / _ABOUT).read_bytes())
        return cls(dict(zip(vocabulary, range(len(vocabulary)), strict=True)), np.array(absent, np.float32),
                   _mapped(folder, sizes, "r"))

    def best(self, tokens: Sequence[str], k: int, among: NDArray[np.bool_] | None = None) -> list[tuple[int, float]]:
        """Return at most `k` rows that hold any of the tokens, with their score, best first, then by row. A token that
        stands twice counts twice. `among`, shape (chunks,), says which rows may be found; None for all."""
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


def _counted(texts: Iterable[str], tokenizer: Tokenizer, vocabulary: dict[str, int]) -> Iterator[Block]:
    """Number the tokens, new ones in the vocabulary, and count those of so many texts together that a block is full."""
    ids, lengths = array("i"), array("i")
    for tokens in tokenizer.tokens(texts):
        ids.extend([vocabulary.setdefault(token, len(vocabulary)) for token in tokens])
        lengths.append(len(tokens))
        if len(ids) >= _TOKENS:
            yield Block.counted(np.frombuffer(ids, np.int32), lengths, len(vocabulary))
            ids, lengths = array("i"), array("i")
    if lengths:
        yield Block.counted(np.frombuffer(ids, np.int32), lengths, len(vocabulary))


def _weigh(blocks: Sequence[Block], vocabulary: int, weights: Mapping[str, Any]) -> Scores:
    """Make scores of the counts, in their place, and return `Postings.absent`. Numbers of chunks and lengths are summed
    over all blocks, so that the scores are those of one index of bm25s, to the last bit."""
    from bm25s import scoring

    if not vocabulary:
        return np.zeros(0, np.float32)
    holding = np.zeros(vocabulary, np.int64)  # by token, how many chunks hold it
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


def _mapped(folder: Path, sizes: Iterable[Sequence[int]], mode: Literal["r", "r+"]) -> list[Block]:
    # What is mapped is taken as plain arrays: slicing a memmap costs more than the sums over the slice.
    rest = np.asarray(np.memmap(folder / _BLOCKS, np.int32, mode))
    blocks = []
    for chunks, tokens, postings in sizes:
        held, starts, rows, scores, rest = np.split(rest, np.cumsum([tokens, tokens + 1, postings, postings]))
        blocks.append(Block(chunks, held, starts, rows, scores.view(np.float32)))
    return blocks


_OPEN: WeakValueDictionary[Path, Postings] = WeakValueDictionary()
_LOCK = Lock()


def kept(key: str, write: Callable[[Path], None]) -> Postings:
    """Return the postings of that key, a hash of all that they depend on: open already, else from the cache folder,
    else written there. A process that needs what another is building waits for it. What is damaged is built anew.
    Raises SettingsError where the cache folder cannot be written."""
    folder = cache_dir() / "bm25" / key
    with _LOCK:
        found = _OPEN.get(folder)
        if found is None:
            if not is_whole(folder):
                with alone(folder, wait=True):
                    if not is_whole(folder):
                        keep(folder, write)
            found = _OPEN[folder] = Postings.read(folder)
        return found
