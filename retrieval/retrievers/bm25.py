"""BM25: find chunks that contain the query's words. Rare words count more.

`Postings` hold the amount that each token adds to a chunk's score, equal to that of bm25s. They are built and searched
in blocks of chunks, to limit memory. Large postings are kept on disk and mapped. bm25s is not imported, because it
imports scipy.sparse, which would delay each search from the command line.
"""
from __future__ import annotations

import json
import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, Literal
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from ragbed.documents.paths import cache_dir
from ragbed.documents.types import digest
from ragbed.retrieval.lexical.languages import COMPOUNDING, only_function_words
from ragbed.retrieval.lexical.tokenizers import (
    Cut,
    KoreanTokenizer,
    Language,
    korean_analyser_installed,
    make_tokenizer,
)
from ragbed.retrieval.lexical.tokens import RULES, Lexicon, Tokenizer, is_korean, normalise, version_of
from ragbed.retrieval.storage.folder import exclusive, is_whole, keep
from ragbed.retrieval.types import Collection, Hit, RerankerDeps, RetrieverKind, check_queries

Texts = Callable[[], Iterable[str]]
Bm25Method = Literal["lucene", "robertson", "atire", "bm25l", "bm25+"]


_SAMPLE = 64  # chunks that tell whether a collection is Korean
_MANY, _MANY_KOREAN = 1_000, 200  # chunks from which postings are kept on disk, because building them takes long


class Bm25(RetrieverKind):
    """Ranks chunks by the words they share with the query (BM25).

    In Lucene's variant, the score of a chunk d is the sum over the query's tokens t, with repetitions, of

        ln(1 + (N - df + 0.5) / (df + 0.5)) * tf / (tf + k1 * (1 - b + b * length / mean length))

    for N chunks, of which df contain t, tf occurrences of t in d, and lengths in tokens. N, df and the mean are
    computed over the whole collection, even under a filter. A chunk without any of the tokens is never found. Source:
    Kamphuis, de Vries, Boytsov, Lin: Which BM25 do you mean?, ECIR 2020, table 1, which also has the other variants.

    Attributes:
        language: language of the stemmer and stop words. `auto` detects it for each chunk by its scripts and stop
            words, and is English if no other language is evident. With `korean`, Latin letters are English.
        stemming: whether to stem words (Snowball).
        stopwords: whether to leave out words such as `the`, or the list of words to leave out. A query of nothing else
            is searched with them.
        tokenizer: how Hangul is split. `words` splits at spaces. `kiwi` splits into morphemes. `bigrams` splits into
            pairs of characters, and needs no extra package. `auto` is `kiwi` if the extra `korean` is installed, and
            otherwise `bigrams`. All split Chinese, Japanese, Thai, Lao, Burmese and Khmer into pairs of characters.
        accents: whether words that differ only in accents match. `auto` follows Lucene's analyzers: `folded` for
            Catalan, Dutch, French, German, Greek, Italian, Portuguese and Spanish (except ñ), otherwise `kept`, because
            in languages such as Swedish an accent makes another letter.
        compounds: whether a compound word is also found by its parts, as `Krankenversicherung` by `Versicherung`. The
            parts are words of the collection. For Danish, Dutch, Estonian, Finnish, German, Hungarian, Norwegian and
            Swedish.
        method: the variant. `robertson` gives 0 for a token that half of the chunks contain.
        k1: weight of repetitions of a word. The defaults of `k1` and `b` are Lucene's.
        b: how much longer chunks are penalised, from 0 (not) to 1 (fully).
        delta: used only by BM25L and BM25+.
    """

    kind: Literal["bm25"] = "bm25"
    language: Language = "auto"
    stemming: bool = True
    stopwords: bool | tuple[str, ...] = True
    tokenizer: Literal["auto"] | Cut = "auto"
    accents: Literal["auto", "folded", "kept"] = "auto"
    compounds: bool = False
    method: Bm25Method = "lucene"
    k1: float = Field(1.2, ge=0, allow_inf_nan=False)
    b: float = Field(0.75, ge=0, le=1)
    delta: float = Field(0.5, ge=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _check_compounds(self) -> Bm25:
        if self.compounds and self.language not in ("auto", *COMPOUNDING):
            raise ValueError(f"compounds: {self.language} does not write compounds as one word; remove compounds")
        if self.method not in ("bm25l", "bm25+") and self.delta != Bm25.model_fields["delta"].default:
            raise ValueError(f"delta: the variant {self.method} does not use it; remove delta, or set method: bm25l or "
                             "bm25+")
        return self

    @property
    def embeds(self) -> bool:
        return False

    def open(self, collection: Collection, deps: RerankerDeps) -> Bm25Retriever:
        return Bm25Retriever(collection, self.make_tokenizer(), self)

    def identity(self) -> str:
        analyser = () if self.tokenizer in ("words", "bigrams") else ("kiwipiepy", "kiwipiepy_model")
        versions = version_of("bm25s", "PyStemmer", *analyser)
        settings = self.model_dump_json(include=set(Bm25.model_fields))
        return f"bm25 {digest(settings, str(RULES), versions)}"

    def weights(self) -> dict[str, Any]:
        return self.model_dump(include={"method", "k1", "b", "delta"})

    def make_tokenizer(self) -> Tokenizer:
        """Return the tokenizer. Raises MissingExtra if it needs kiwipiepy, which is not installed."""
        cut = self.tokenizer
        if cut == "auto":
            cut = "kiwi" if self.language == "korean" or korean_analyser_installed() else "bigrams"
        stopwords = self.stopwords if isinstance(self.stopwords, bool) else frozenset(map(normalise, self.stopwords))
        folding = None if self.accents == "auto" else self.accents == "folded"
        return make_tokenizer(cut, self.language, self.stemming, stopwords, folding, self.compounds)


@dataclass(frozen=True)
class Bm25Retriever:
    """BM25 over a collection. Ties are ordered by position. Searching is thread-safe."""

    collection: Collection
    tokenizer: Tokenizer
    settings: Bm25
    _lock: Lock = field(default_factory=Lock)

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return the hits of each query. A query whose words are in no chunk has none. Raises SettingsError if the
        cache folder, which keeps the postings of a large collection, cannot be written."""
        check_queries(queries)
        with self._lock:
            postings = self._postings
        asked = list(self.tokenizer.query_tokens(queries, postings.lexicon))
        among, chunks = self.collection.among, self.collection.chunks
        found = [[Hit(chunks[row], score, rank, "bm25") for rank, (row, score) in enumerate(
            postings.best(tokens, k, among), 1)] if tokens else [] for tokens in asked]
        return [hits or (self._search_stopwords(query, k) if not tokens or only_function_words(query) else [])
                for hits, query, tokens in zip(found, queries, asked, strict=True)]

    def _search_stopwords(self, query: str, k: int) -> list[Hit]:
        """Search for a query of stop words, in postings that hold them. These are built at the first such query."""
        if self.settings.stopwords is False or not any(map(str.isalnum, query)):
            return []
        with self._lock:
            complete = self._with_stopwords
        return complete.search([query], k)[0]

    @cached_property
    def _with_stopwords(self) -> Bm25Retriever:
        cut = "words" if self.settings.tokenizer == "words" else "bigrams"  # kiwi leaves out words by their tags
        settings = self.settings.model_copy(update={"stopwords": False, "tokenizer": cut})
        return Bm25Retriever(self.collection, settings.make_tokenizer(), settings)

    @cached_property
    def _postings(self) -> Postings:
        weights, texts = self.settings.weights(), self.collection.texts
        if len(self.collection.chunks) < self._many():
            return Postings.build(texts, self.tokenizer, weights)
        key = digest("blocks", self.collection.text_hash, self.tokenizer.identity, repr(weights), version_of("bm25s"))
        return cached_postings(key, lambda folder: Postings.write(folder, texts, self.tokenizer, weights))

    def _many(self) -> int:
        """Return the number of chunks from which postings are kept on disk. The analyser of Korean is slow."""
        chunks = self.collection.chunks
        if not isinstance(self.tokenizer, KoreanTokenizer) or not _MANY_KOREAN <= len(chunks) < _MANY:
            return _MANY
        sample = (chunks[place * len(chunks) // _SAMPLE].content for place in range(_SAMPLE))
        return _MANY_KOREAN if is_korean(sample) else _MANY


Numbers = NDArray[np.int32]
Scores = NDArray[np.float32]

_BLOCK_TOKENS = 1 << 23  # tokens in a block; counting them takes about 200 MB
_BLOCKS, _ABOUT = "blocks.int32", "about.json"


@dataclass(frozen=True, slots=True)
class Block:
    """The postings of consecutive chunks. Token `tokens[i]` occurs in the chunks `rows[starts[i]:starts[i + 1]]`,
    counted from the block's first chunk. Its `scores` are at the same positions; before `_weigh` they are counts."""

    chunks: int
    tokens: Numbers
    starts: Numbers
    rows: Numbers
    scores: Scores

    @classmethod
    def count(cls, ids: Numbers, lengths: Sequence[int]) -> Block:
        """Count tokens. `ids` has the token numbers of all chunks in order, and `lengths` the tokens per chunk."""
        chunks = len(lengths)
        places = ids.astype(np.int64) * chunks + np.repeat(np.arange(chunks), lengths)
        unique, counts = np.unique(places, return_counts=True)
        tokens, rows = np.divmod(unique, chunks)
        held, firsts = np.unique(tokens, return_index=True)
        return cls(chunks, held.astype(np.int32), np.append(firsts, len(tokens)).astype(np.int32),
                   rows.astype(np.int32), counts.astype(np.float32))

    def sums(self, tokens: Numbers) -> Scores:
        """Return the sum of these tokens' scores for each chunk."""
        sums = np.zeros(self.chunks, np.float32)
        firsts, ends = (self.starts[np.searchsorted(self.tokens, tokens, side)] for side in ("left", "right"))
        for first, end in zip(firsts.tolist(), ends.tolist(), strict=True):
            sums[self.rows[first:end]] += self.scores[first:end]  # safe, because a token lists each row only once
        return sums


@dataclass(frozen=True)
class Postings:
    """The score of every token in every chunk that contains it. Searching is thread-safe."""

    vocabulary: Mapping[str, int]  # number of each token
    absent: Scores  # score of a chunk without the token, by token number; empty unless the method is BM25L or BM25+
    blocks: Sequence[Block]
    lexicon: Lexicon

    @classmethod
    def build(cls, texts: Texts, tokenizer: Tokenizer, weights: Mapping[str, Any]) -> Postings:
        """Build postings in memory. `weights` are the parameters of `Bm25` from `method` to `delta`."""
        vocabulary: dict[str, int] = {}
        lexicon = _survey(texts, tokenizer)
        blocks = list(_count_blocks(tokenizer.tokens(texts(), lexicon), vocabulary))
        lexicon.words = vocabulary
        return cls(vocabulary, _weigh(blocks, len(vocabulary), weights), blocks, lexicon)

    @staticmethod
    def write(folder: Path, texts: Texts, tokenizer: Tokenizer, weights: Mapping[str, Any]) -> None:
        """Build postings in a folder. Only one block and the vocabulary are in memory."""
        vocabulary: dict[str, int] = {}
        sizes, lexicon = [], _survey(texts, tokenizer)
        with (folder / _BLOCKS).open("wb") as file:
            for block in _count_blocks(tokenizer.tokens(texts(), lexicon), vocabulary):
                sizes.append((block.chunks, len(block.tokens), len(block.rows)))
                for part in (block.tokens, block.starts, block.rows, block.scores):
                    part.tofile(file)
        absent = _weigh(_map_blocks(folder, sizes, "r+"), len(vocabulary), weights)
        known = [sorted(lexicon.languages), [[stem, *sorted(words)] for stem, words in lexicon.variants.items()]]
        (folder / _ABOUT).write_text(json.dumps([list(vocabulary), absent.tolist(), sizes, known]), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Postings:
        """Open the postings in a folder."""
        tokens, absent, sizes, (languages, variants) = json.loads((folder / _ABOUT).read_bytes())
        vocabulary = dict(zip(tokens, range(len(tokens)), strict=True))
        return cls(vocabulary, np.array(absent, np.float32), _map_blocks(folder, sizes, "r"),
                   Lexicon(set(languages), {stem: set(words) for stem, *words in variants}, vocabulary))

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


def _survey(texts: Texts, tokenizer: Tokenizer) -> Lexicon:
    """Return a lexicon with all tokens of the texts, if the tokenizer needs them to find the parts of compounds."""
    lexicon = Lexicon()
    if tokenizer.compounds:
        lexicon.words = {token for tokens in tokenizer.tokens(texts(), lexicon) for token in tokens}
    return lexicon


def _count_blocks(texts: Iterable[Sequence[str]], vocabulary: dict[str, int]) -> Iterator[Block]:
    """Number the tokens, extending the vocabulary, and yield a block whenever there are enough tokens."""
    ids, lengths = array("i"), array("i")
    for tokens in texts:
        ids.extend([vocabulary.setdefault(token, len(vocabulary)) for token in tokens])
        lengths.append(len(tokens))
        if len(ids) >= _BLOCK_TOKENS:
            yield Block.count(np.frombuffer(ids, np.int32), lengths)
            ids, lengths = array("i"), array("i")
    if lengths:
        yield Block.count(np.frombuffer(ids, np.int32), lengths)


def _weigh(blocks: Sequence[Block], vocabulary: int, weights: Mapping[str, Any]) -> Scores:
    """Replace counts by scores and return `Postings.absent`. Numbers of chunks and lengths are summed over all blocks,
    so scores equal those of bm25s to the last bit."""
    if not vocabulary:
        return np.zeros(0, np.float32)
    holding = np.zeros(vocabulary, np.int64)  # number of chunks with each token
    for block in blocks:
        holding[block.tokens] += np.diff(block.starts)
    chunks = sum(block.chunks for block in blocks)
    mean = np.float64(sum(block.scores.sum(dtype=np.float64) for block in blocks) / chunks)
    numbers, places = np.unique(holding, return_inverse=True)
    exact = np.array([_idf(number, chunks, weights["method"]) for number in numbers.tolist()])[places]
    idf, absent = exact.astype(np.float32), np.zeros(0, np.float32)
    if weights["method"] in ("bm25l", "bm25+"):
        absent = (exact * _term_frequency(0, mean, mean, **weights)).astype(np.float32)
    for block in blocks:
        lengths = np.bincount(block.rows, block.scores, block.chunks)[block.rows]
        held = np.repeat(block.tokens, np.diff(block.starts))
        scores = idf[held] * _term_frequency(block.scores, lengths, mean, **weights)
        block.scores[:] = scores - absent[held] if len(absent) else scores
    return absent


def _idf(holding: int, chunks: int, method: Bm25Method) -> float:
    """Return the inverse document frequency of a token that `holding` of the chunks contain. Source: see `Bm25`."""
    odds = (chunks - holding + 0.5) / (holding + 0.5)
    if method in ("lucene", "robertson"):
        return math.log(1 + odds if method == "lucene" else max(odds, 1))
    return math.log(chunks / holding if method == "atire" else
                    (chunks + 1) / (holding + 0.5 if method == "bm25l" else holding))


def _term_frequency(counts: Any, lengths: Any, mean: float, method: Bm25Method, k1: float, b: float,
                    delta: float) -> Any:
    """Return the term frequency component of tokens that occur `counts` times in chunks of these lengths in tokens.
    Both are numbers, or arrays of one shape. Source: see `Bm25`."""
    relative = 1 - b + b * lengths / mean
    if method == "bm25l":
        found = counts / relative
        return (k1 + 1) * (found + delta) / (k1 + found + delta)
    saturated = counts / (k1 * relative + counts) if method in ("lucene", "robertson") else (
        (k1 + 1) * counts / (k1 * relative + counts))
    return saturated + delta if method == "bm25+" else saturated


def _map_blocks(folder: Path, sizes: Iterable[Sequence[int]], mode: Literal["r", "r+"]) -> list[Block]:
    # Convert to plain arrays, because slicing a memmap costs more than summing the slice.
    rest = np.asarray(np.memmap(folder / _BLOCKS, np.int32, mode))
    blocks = []
    for chunks, tokens, postings in sizes:
        held, starts, rows, scores, rest = np.split(rest, np.cumsum([tokens, tokens + 1, postings, postings]))
        blocks.append(Block(chunks, held, starts, rows, scores.view(np.float32)))
    return blocks


_OPEN: WeakValueDictionary[Path, Postings] = WeakValueDictionary()
_LOCK = Lock()


def cached_postings(key: str, write: Callable[[Path], None]) -> Postings:
    """Return postings from memory or the cache folder. If they are in neither, build them with `write`.

    Damaged postings are built again. If another process is building them, wait for it. Raises SettingsError if the
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
