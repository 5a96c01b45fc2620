"""BM25: find chunks that contain the query's words. Rare words count most."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from threading import Lock
from typing import Any, Literal

from pydantic import Field

from ragbed.documents.types import digest
from ragbed.retrieval.lexical.korean import KoreanTokenizer
from ragbed.retrieval.lexical.postings import Bm25Method, Postings, cached_postings
from ragbed.retrieval.lexical.tokens import (
    HANGUL,
    KOREAN,
    RULES,
    UNSPACED,
    Tokenizer,
    WordTokenizer,
    is_korean,
    normalise,
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
"""Languages for which PyStemmer has a Snowball stemmer."""

Cut = Literal["words", "bigrams", "kiwi"]


@lru_cache(maxsize=32)
def make_tokenizer(cut: Cut, language: Stemmed, stemming: bool, stopwords: bool | frozenset[str]) -> Tokenizer:
    """Return a tokenizer; the same object for the same arguments, so that its cache is shared.

    Args:
        cut: `words`, `bigrams` (Hangul as pairs of characters, too) or `kiwi` (Korean morphemes).
        language: language of all text except Hangul.
        stopwords: True for the usual stop words of the language and of Korean.

    Raises:
        MissingExtra: `kiwi` needs kiwipiepy, which is not installed.
    """
    left_out = stopwords if isinstance(stopwords, frozenset) else stopwords_of(language) if stopwords else frozenset()
    if cut == "kiwi":
        korean = KOREAN if stopwords is True else left_out
        return KoreanTokenizer(WordTokenizer(language, stemming, left_out, UNSPACED, HANGUL), korean)
    return WordTokenizer(language, stemming, left_out, UNSPACED + (HANGUL if cut == "bigrams" else ""))


_SAMPLE = 64  # chunks to detect the language from


class Bm25(RetrieverKind):
    """Ranks chunks by the words they share with the query (BM25).

    In Lucene's variant, the score of a chunk d is the sum over the query's tokens t, with repetitions, of

        ln(1 + (N - df + 0.5) / (df + 0.5)) * tf / (tf + k1 * (1 - b + b * length / mean length))

    for N chunks, of which df contain t, tf occurrences of t in d, and lengths in tokens. N, df and the mean are those
    of the whole collection, even under a filter. A chunk without any of the tokens is never found. Source: Kamphuis,
    de Vries, Boytsov, Lin: Which BM25 do you mean?, ECIR 2020, table 1, which also has the other variants.

    Attributes:
        language: language of the stemmer and stop words. `auto` is Korean if 5 % of the chunks' characters are Hangul,
            and otherwise English. With `korean`, words in Latin letters are treated as English.
        stemming: whether to stem words (Snowball).
        stopwords: whether to leave out words such as `the`, or the list of words to leave out.
        tokenizer: `words` are runs of letters and digits; `kiwi` finds Korean morphemes, and `words` elsewhere;
            `bigrams` cuts Hangul into pairs of characters and needs no package; `auto` is `kiwi` for Korean and
            otherwise `words`. All cut Chinese, Japanese, Thai, Lao, Burmese and Khmer into pairs of characters.
        method: the variant. `robertson` gives 0 for a token that half of the chunks contain.
        k1: the higher, the more repetitions of a word count. The defaults are Lucene's.
        b: from 0 (length does not count) to 1 (length counts in full).
        delta: used only by BM25L and BM25+.
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
        """Return the parameters of bm25s."""
        return self.model_dump(include={"method", "k1", "b", "delta"})

    def tokenizer_for(self, collection: Collection) -> Tokenizer:
        """Choose the tokenizer for a collection. Raises MissingExtra if the collection is Korean and kiwipiepy is not
        installed."""
        chunks = collection.chunks
        taken = min(len(chunks), _SAMPLE)
        sample = (chunks[place * len(chunks) // taken].content for place in range(taken))
        korean = self.language == "korean" or (
            self.language == "auto" and self.tokenizer == "auto" and is_korean(sample))
        cut = self.tokenizer if self.tokenizer != "auto" else "kiwi" if korean else "words"
        stopwords = self.stopwords if isinstance(self.stopwords, bool) else frozenset(map(normalise, self.stopwords))
        return make_tokenizer(cut, "english" if self.language in ("auto", "korean") else self.language, self.stemming,
                            stopwords)


@dataclass(frozen=True)
class Bm25Retriever:
    """BM25 over a collection. Ties are ordered by position. Searching is thread-safe."""

    collection: Collection
    tokenizer: Tokenizer
    settings: Bm25
    _lock: Lock = field(default_factory=Lock)

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Search. A query whose words are in no chunk has no hits. Raises SettingsError if the cache folder, which
        keeps the postings of a large collection, cannot be written."""
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
        return cached_postings(key, lambda folder: Postings.write(folder, self.collection.texts(), self.tokenizer,
                                                                  weights))
