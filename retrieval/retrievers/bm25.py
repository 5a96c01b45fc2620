"""BM25: the chunks that hold the query's words, rare words counting most."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from threading import Lock
from typing import Any, Literal

from pydantic import Field

from ragbed.documents.types import digest
from ragbed.retrieval.lexical.korean import KoreanTokenizer
from ragbed.retrieval.lexical.postings import Bm25Method, Postings, kept
from ragbed.retrieval.lexical.tokens import (
    HANGUL,
    KOREAN,
    RULES,
    UNSPACED,
    Tokenizer,
    WordTokenizer,
    is_korean,
    normal,
    stopwords_of,
    version_of,
)
from ragbed.retrieval.rerankers.reranker import RerankerDeps
from ragbed.retrieval.types import Collection, Hit, RetrieverKind

Stemmed = Literal[
    "arabic", "armenian", "basque", "catalan", "czech", "danish", "dutch", "dutch_porter", "english", "esperanto",
    "estonian", "finnish", "french", "german", "greek", "hindi", "hungarian", "indonesian", "irish", "italian",
    "lithuanian", "nepali", "norwegian", "persian", "polish", "porter", "portuguese", "romanian", "russian", "serbian",
    "sesotho", "spanish", "swedish", "tamil", "turkish", "yiddish"]
"""The stemmers of Snowball that PyStemmer has."""

Cut = Literal["words", "bigrams", "kiwi"]


@lru_cache(maxsize=32)
def tokenizer_of(cut: Cut, language: Stemmed, stemming: bool, stopwords: bool | frozenset[str]) -> Tokenizer:
    """Return the tokeniser; the same one for the same arguments, so that what it remembers serves all who use it. It
    cuts `words`; `bigrams`, Hangul too into pairs of characters; or by `kiwi`. The language is of what is not Hangul,
    and stop words are the usual ones of it, and of Korean, or these. Raises MissingExtra for `kiwi` where kiwipiepy is
    not installed."""
    left_out = stopwords if isinstance(stopwords, frozenset) else stopwords_of(language) if stopwords else frozenset()
    if cut == "kiwi":
        korean = KOREAN if stopwords is True else left_out
        return KoreanTokenizer(WordTokenizer(language, stemming, left_out, UNSPACED, HANGUL), korean)
    return WordTokenizer(language, stemming, left_out, UNSPACED + (HANGUL if cut == "bigrams" else ""))


_SAMPLE = 64  # chunks by whose characters the language is found


class Bm25(RetrieverKind):
    """Words in common, by BM25.

    The score of a chunk d is, over the query's tokens t as often as they stand in it, in Lucene's variant (Kamphuis,
    de Vries, Boytsov, Lin: Which BM25 do you mean?, ECIR 2020, table 1, which has the other variants too),

        sum of  ln(1 + (N - df + 0.5) / (df + 0.5)) * tf / (tf + k1 * (1 - b + b * length / mean length))

    with N chunks, of which df hold t, tf times t in d, and lengths in tokens. N, df and the mean are of the whole
    collection, whichever chunks may be found. A chunk that holds none of the tokens is never found.

    Attributes:
        language: whose stemmer and stop words; `auto` is Korean where Hangul makes up a twentieth of the chunks, else
            English. With `korean`, words in Latin letters are taken as English ones.
        stemming: whether words are cut down to their stems (Snowball's).
        stopwords: whether words such as `the` are left out, or which ones are.
        tokenizer: `words` are runs of letters and digits; `kiwi` finds the morphemes of Korean, and has `words` for
            all else; `bigrams` cuts Hangul into pairs of characters, and needs no package; `auto` is `kiwi` for Korean
            and else `words`. All of them cut Chinese, Japanese, Thai, Lao, Burmese and Khmer into pairs of characters.
        method: `robertson` gives nothing for a token that half of the chunks hold.
        k1: the higher, the more a word counts that is said again. The defaults are Lucene's.
        b: from 0, length does not count, to 1, it counts in full.
        delta: of BM25L and BM25+ alone.
    """

    kind: Literal["bm25"] = "bm25"
    language: Literal["auto", "korean"] | Stemmed = "auto"
    stemming: bool = True
    stopwords: bool | tuple[str, ...] = True
    tokenizer: Literal["auto"] | Cut = "auto"
    method: Bm25Method = "lucene"
    k1: float = Field(1.2, ge=0, allow_inf_nan=False)
    b: float = Field(0.75, ge=0, le=1)
    delta: float = Field(0.5, ge=0, allow_inf_nan=False)

    @property
    def embeds(self) -> bool:
        return False

    def open(self, collection: Collection, deps: RerankerDeps) -> Bm25Retriever:
        return Bm25Retriever(collection, self.tokenizer_for(collection), self)

    def identity(self) -> str:
        analyser = () if self.tokenizer in ("words", "bigrams") else ("kiwipiepy", "kiwipiepy_model")
        versions = version_of("bm25s", "PyStemmer", *analyser)
        settings = self.model_dump_json(include=set(Bm25.model_fields))
        return f"bm25 {digest(settings, str(RULES), versions)}"

    def weights(self) -> dict[str, Any]:
        """Return the parameters by which bm25s weighs a token."""
        return self.model_dump(include={"method", "k1", "b", "delta"})

    def tokenizer_for(self, collection: Collection) -> Tokenizer:
        """Choose what cuts that collection's chunks, and queries; MissingExtra if it is Korean, without kiwipiepy."""
        chunks = collection.chunks
        taken = min(len(chunks), _SAMPLE)
        sample = (chunks[place * len(chunks) // taken].content for place in range(taken))
        korean = self.language == "korean" or (
            self.language == "auto" and self.tokenizer == "auto" and is_korean(sample))
        cut = self.tokenizer if self.tokenizer != "auto" else "kiwi" if korean else "words"
        stopwords = self.stopwords if isinstance(self.stopwords, bool) else frozenset(map(normal, self.stopwords))
        return tokenizer_of(cut, "english" if self.language in ("auto", "korean") else self.language, self.stemming,
                            stopwords)


@dataclass(frozen=True)
class Bm25Retriever:
    """BM25 over a collection. Ties go to the earlier chunk. Searching is thread-safe."""

    collection: Collection
    tokenizer: Tokenizer
    settings: Bm25
    _lock: Lock = field(default_factory=Lock)

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Find nothing for a query whose words no chunk holds. Raises SettingsError where the postings of a large
        collection cannot be kept, for the cache folder cannot be written."""
        with self._lock:
            postings = self._postings
        among = self.collection.among
        found = [postings.best(tokens, k, among) for tokens in self.tokenizer.tokens(queries)]
        chunks = self.collection.chunks
        return [[Hit(chunks[row], score, rank, "bm25") for rank, (row, score) in enumerate(best, 1)] for best in found]

    @cached_property
    def _postings(self) -> Postings:
        weights = self.settings.weights()
        if len(self.collection.chunks) < self.tokenizer.many:
            return Postings.build(self.collection.texts(), self.tokenizer, weights)
        key = digest("blocks", self.collection.text_hash, self.tokenizer.identity, repr(weights), version_of("bm25s"))
        return kept(key, lambda folder: Postings.write(folder, self.collection.texts(), self.tokenizer, weights))
