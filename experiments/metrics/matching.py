"""Compare answer texts: exact match, token F1, and whether one contains the other."""
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
    """Return whether the text contains a Hangul syllable."""
    return _HANGUL.search(normalize("NFKC", text)) is not None


def contains_answer(text: str, answer: str) -> bool:
    """Return whether the normalised text contains the normalised answer as whole words, or anywhere in scripts without
    spaces. Korean joins particles to the preceding word, so a Korean answer may match inside a word. If it has at most
    three characters, it matches only at the beginning of a word."""
    if not answer:
        return False
    if is_korean(answer):
        return f" {answer}" in f" {text}" if len(answer) <= _SHORT_KOREAN else answer in text
    return answer in text if _UNSPACED.search(answer) else f" {answer} " in f" {text} "


def normalised_as_published(text: str) -> str:
    """Normalise as SQuAD's and HotpotQA's code does: lower case, without ASCII punctuation, articles and extra
    whitespace."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_ASCII)).split())


def tokens(text: str, bigrams: bool = False) -> list[str]:
    """Return the words of the normalised text, or its character bigrams in scripts without spaces."""
    words = normalize_answer(text).split()
    if not bigrams:
        return words
    joined = "".join(words)
    return [joined[at:at + 2] for at in range(max(len(joined) - 1, 1))] if joined else []


def exact_match(text: str, answers: Sequence[str], published: bool = False) -> float:
    """Return 1.0 if the normalised text equals a normalised answer, otherwise 0.0. In corrected scoring, a text that is
    empty after normalisation is compared unnormalised."""
    own, *others = (normalised_as_published(one) if published else
                    normalize_answer(one) or normalize("NFKC", one).strip() for one in (text, *answers))
    return float(own in others)


class Overlap(NamedTuple):
    """Precision and recall: the number of common tokens, counted with repeats, over the text's tokens and over the
    answer's."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """Compute the harmonic mean 2PR/(P+R); 0 if both are 0."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def overlap(text: str, answer: str, published: bool = False) -> Overlap:
    """Compare tokens as `shared_tokens` does, with HotpotQA's exception: if one side is `yes`, `no` or `noanswer`, only
    equality counts."""
    ours, gold = map(normalised_as_published if published else normalize_answer, (text, answer))
    if ours != gold and {ours, gold} & {"yes", "no", "noanswer"} and not is_korean(answer):
        return Overlap(0.0, 0.0)
    return shared_tokens(text, answer, published)


def shared_tokens(text: str, answer: str, published: bool = False) -> Overlap:
    """Compute precision and recall over words. A Korean answer is compared by characters without spaces, as in KorQuAD
    1.0's evaluation script (Lim, Kim, Lee, 2019). As published, only that script's list of punctuation marks is
    removed.
    """
    if is_korean(answer):
        return _shared(*("".join((one.lower().translate(_KORQUAD) if published else normalize_answer(one)).split())
                         for one in (text, answer)))
    normal = normalised_as_published if published else normalize_answer
    return _shared(normal(text).split(), normal(answer).split())


def _shared(found: Sequence[str], gold: Sequence[str]) -> Overlap:
    shared = (Counter(found) & Counter(gold)).total()
    return Overlap(shared / len(found), shared / len(gold)) if shared else Overlap(0.0, 0.0)


def token_f1(text: str, answer: str) -> float:
    """Compute the F1 of shared words as `overlap` does. A Korean answer uses character bigrams, which distinguish
    sentences better than single characters."""
    return _shared(tokens(text, True), tokens(answer, True)).f1 if is_korean(answer) else overlap(text, answer).f1


def best_overlap(text: str, answers: Sequence[str], published: bool = False) -> Overlap:
    """Return the overlap with the accepted answer that gives the highest F1; zeros if there is no answer."""
    found = (overlap(text, answer, published) for answer in answers)
    return max(found, key=lambda one: one.f1, default=Overlap(0.0, 0.0))


def compare_answer(outcome: Outcome, text: str, answers: Sequence[str], published: bool) -> tuple[float, Overlap]:
    """Return exact match and best overlap of a text without its citations; 0 for a refusal or failure."""
    if outcome != "answered":
        return 0.0, Overlap(0.0, 0.0)
    bare = strip_citations(text)
    return exact_match(bare, answers, published), best_overlap(bare, answers, published)


def gives_answer(text: str, answers: Sequence[str]) -> bool:
    """Return whether a reply gives an accepted answer: it equals the answer or is short and contains it. Numbers and
    dates are compared by value. A bare number equals that number with a unit. The reply's number is rounded to the
    decimals of the answer."""
    said = strip_citations(text)
    own = with_values(said)
    short = len(own.split()) <= _FEW_WORDS
    return any(own == gold or (short and (contains_answer(own, gold) or _joined(own, gold) or _rounds(said, answer)))
               for answer in answers if (gold := with_values(answer)))


def same_answer(one: tuple[Outcome, str], other: tuple[Outcome, str]) -> bool:
    """Return whether two replies, each an outcome and a text, agree: both refuse, or one gives the other's answer."""
    outcomes, texts = {one[0], other[0]}, [strip_citations(one[1]), strip_citations(other[1])]
    return outcomes == {"refused"} or (outcomes == {"answered"} and (
        gives_answer(texts[0], texts[1:]) or gives_answer(texts[1], texts[:1])))


def _joined(text: str, answer: str) -> bool:
    """Return whether a text contains a Korean answer if spaces are ignored, as in `1,250억 원`."""
    return is_korean(answer) and re.search(rf"(?<!\d){re.escape(''.join(answer.split()))}", "".join(
        text.split())) is not None


def _rounds(text: str, answer: str) -> bool:
    """Return whether the text's only number rounds to an answer that is just a decimal number."""
    ours, gold = find_values(text), find_values(answer)
    if len(ours) != 1 or len(gold) != 1 or ours[0].number is None or gold[0].token != with_values(answer):
        return False
    number = gold[0].number
    return number is not None and "." in answer and ours[0].number.quantize(number) == number


def contains_words(text: str, words: str) -> bool:
    """Return whether the case-folded text contains the words as whole words. A suffix, such as a Korean particle, may
    follow the last word in languages without spaces."""
    wanted = fold(words)
    end = " " if wanted[-1:].isascii() else ""
    return f" {wanted}{end}" in f" {fold(text)} "
