"""Comparing answer texts: exact match, token F1, and whether one stands in another."""
from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ragbed.agents.types import Outcome
from ragbed.documents.numbers import find_values
from ragbed.documents.types import normalize
from ragbed.strategies.normalizing import normalize_answer, with_values
from ragbed.strategies.reading import fold, strip_citations

_HANGUL = re.compile(r"[\uac00-\ud7a3]")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")  # Thai, Lao, Japanese, Chinese
_SHORT_KOREAN = 3
_FEW_WORDS = 15
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_ASCII = str.maketrans("", "", string.punctuation)
_KORQUAD = str.maketrans("", "", string.punctuation + "《》〈〉‘’")


def is_korean(text: str) -> bool:
    """Tell whether the text holds a Hangul syllable."""
    return _HANGUL.search(normalize("NFKC", text)) is not None


def contains_answer(text: str, answer: str) -> bool:
    """Tell whether the answer stands in the text, both normalised: as whole words; anywhere where its script has no
    spaces. Korean particles join the word before them, so there too anywhere, but up to three characters where a word
    begins."""
    if not answer:
        return False
    if is_korean(answer):
        return f" {answer}" in f" {text}" if len(answer) <= _SHORT_KOREAN else answer in text
    return answer in text if _UNSPACED.search(answer) else f" {answer} " in f" {text} "


def normalised_as_published(text: str) -> str:
    """Return the text as SQuAD's and HotpotQA's code has it: lower case, no ASCII punctuation, articles, wide gaps."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_ASCII)).split())


def tokens(text: str, bigrams: bool = False) -> list[str]:
    """Return the words of the normalised text, or its character bigrams without spaces (a lone character is itself)."""
    words = normalize_answer(text).split()
    if not bigrams:
        return words
    joined = "".join(words)
    return [joined[at:at + 2] for at in range(max(len(joined) - 1, 1))] if joined else []


def exact_match(text: str, answers: Sequence[str], published: bool = False) -> float:
    """Return 1.0 where the normalised text equals a normalised answer, else 0.0; text that normalises to nothing counts
    as it stands, but as published."""
    own, *others = (normalised_as_published(one) if published else
                    normalize_answer(one) or normalize("NFKC", one).strip() for one in (text, *answers))
    return float(own in others)


class Overlap(NamedTuple):
    """The shares of a text's tokens and of an answer's that the two have in common, counted with repeats."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """Compute their harmonic mean 2PR/(P+R), 0 where both are 0."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def overlap(text: str, answer: str, published: bool = False) -> Overlap:
    """Compare the tokens as `shared_tokens` does, but as in HotpotQA: where one side is `yes`, `no` or `noanswer`, only
    equality counts."""
    ours, gold = map(normalised_as_published if published else normalize_answer, (text, answer))
    if ours != gold and {ours, gold} & {"yes", "no", "noanswer"} and not is_korean(answer):
        return Overlap(0.0, 0.0)
    return shared_tokens(text, answer, published)


def shared_tokens(text: str, answer: str, published: bool = False) -> Overlap:
    """Compute precision and recall of the words; of characters without spaces where the answer is Korean, as KorQuAD
    1.0's evaluation script (Lim, Kim, Lee, 2019) has them, which as published takes no more than its marks away."""
    if is_korean(answer):
        return _shared(*("".join((one.lower().translate(_KORQUAD) if published else normalize_answer(one)).split())
                         for one in (text, answer)))
    normal = normalised_as_published if published else normalize_answer
    return _shared(normal(text).split(), normal(answer).split())


def _shared(found: Sequence[str], gold: Sequence[str]) -> Overlap:
    shared = (Counter(found) & Counter(gold)).total()
    return Overlap(shared / len(found), shared / len(gold)) if shared else Overlap(0.0, 0.0)


def token_f1(text: str, answer: str) -> float:
    """Compute the harmonic mean of precision and recall of the shared words, as `overlap`; where the answer is Korean
    of character bigrams, which tell two sentences better apart than characters do."""
    return _shared(tokens(text, True), tokens(answer, True)).f1 if is_korean(answer) else overlap(text, answer).f1


def best_overlap(text: str, answers: Sequence[str], published: bool = False) -> Overlap:
    """Return the overlap with the accepted answer of the highest F1, the first of several; 0 without any."""
    found = (overlap(text, answer, published) for answer in answers)
    return max(found, key=lambda one: one.f1, default=Overlap(0.0, 0.0))


def compare_answer(outcome: Outcome, text: str, answers: Sequence[str], published: bool) -> tuple[float, Overlap]:
    """Return exact match and best overlap of a text without its citations; 0 for a refusal or failure."""
    if outcome != "answered":
        return 0.0, Overlap(0.0, 0.0)
    bare = strip_citations(text)
    return exact_match(bare, answers, published), best_overlap(bare, answers, published)


def gives_answer(text: str, answers: Sequence[str]) -> bool:
    """Tell whether a reply gives an accepted answer: it equals it, or holds it in few words, numbers and dates by their
    value. A bare number equals that of an answer with a unit; a longer number rounds to a shorter one's places."""
    said = strip_citations(text)
    own = with_values(said)
    short = len(own.split()) <= _FEW_WORDS
    return any(own == gold or (short and (contains_answer(own, gold) or _joined(own, gold) or _rounds(said, answer)))
               for answer in answers if (gold := with_values(answer)))


def same_answer(one: tuple[Outcome, str], other: tuple[Outcome, str]) -> bool:
    """Tell whether two replies, each an outcome and a text, are one: both refuse, or one gives the other's answer."""
    outcomes, texts = {one[0], other[0]}, [strip_citations(one[1]), strip_citations(other[1])]
    return outcomes == {"refused"} or (outcomes == {"answered"} and (
        gives_answer(texts[0], texts[1:]) or gives_answer(texts[1], texts[:1])))


def _joined(text: str, answer: str) -> bool:
    """Whether a Korean answer stands in a text that sets spaces otherwise, as `1,250억 원` does."""
    return is_korean(answer) and re.search(rf"(?<!\d){re.escape(''.join(answer.split()))}", "".join(
        text.split())) is not None


def _rounds(text: str, answer: str) -> bool:
    """Whether the text's one number rounds to an answer that is nothing but a number with decimals."""
    ours, gold = find_values(text), find_values(answer)
    if len(ours) != 1 or len(gold) != 1 or ours[0].number is None or gold[0].token != with_values(answer):
        return False
    number = gold[0].number
    return number is not None and "." in answer and ours[0].number.quantize(number) == number


def contains_words(text: str, words: str) -> bool:
    """Tell whether the words stand in the text, folded: whole ones, except that what a language without spaces joins to
    the last, such as a Korean particle, may follow it."""
    wanted = fold(words)
    end = " " if wanted[-1:].isascii() else ""
    return f" {wanted}{end}" in f" {fold(text)} "
