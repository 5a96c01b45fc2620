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
from ragbed.guests import entries, load
from ragbed.strategies.normalizing import keep_number_marks, normalize_answer, normalize_values
from ragbed.strategies.reading import fold, strip_citations

_HANGUL = re.compile(r"[\uac00-\ud7a3]")
# Thai, Lao, Burmese, Khmer, Japanese and Chinese
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_SHORT_KOREAN = 3
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_ASCII = str.maketrans("", "", string.punctuation)
_KORQUAD = str.maketrans(dict.fromkeys(string.punctuation) | dict.fromkeys("'\"《》〈〉‘’", " "))


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
    """Normalise as SQuAD and HotpotQA do: lower case, without ASCII punctuation, articles and extra whitespace."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_ASCII)).split())


def tokens(text: str) -> list[str]:
    """Return the words of the normalised text."""
    return normalize_answer(text).split()


def exact_match(text: str, answers: Sequence[str], published: bool = False, question: str | None = None) -> float:
    """Return 1.0 if the normalised text equals a normalised answer, otherwise 0.0. In corrected scoring, signs and
    decimal points count, and a text that is empty after normalisation is compared unnormalised."""
    for answer in answers:
        korean = published and _has(_HANGUL, text, answer, question)
        if _normalised(text, published, korean) == _normalised(answer, published, korean):
            return 1.0
    return 0.0


def _normalised(text: str, published: bool, korean: bool) -> str:
    """Normalise a text: if `published`, as SQuAD or, for Korean, as KorQuAD; otherwise as corrected scoring does."""
    if korean and published:
        return " ".join(text.lower().translate(_KORQUAD).split())
    if published:
        return normalised_as_published(text)
    return normalize_answer(keep_number_marks(text)) or normalize("NFKC", text).strip()


def _has(script: re.Pattern[str], text: str, answer: str, question: str | None) -> bool:
    """Return whether the answer, or the question if given, or else the text has a character of this script."""
    return any(script.search(normalize("NFKC", one)) for one in (answer, text if question is None else question))


class Overlap(NamedTuple):
    """Precision and recall: common tokens (with repeats) over the text's tokens, and over the answer's."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """Compute the harmonic mean 2PR/(P+R); 0 if both are 0."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def overlap(text: str, answer: str, published: bool = False, question: str | None = None) -> Overlap:
    """Compare tokens as `shared_tokens` does, with HotpotQA's exception: if one side is `yes`, `no` or `noanswer`, only
    equality counts."""
    ours, gold = map(normalised_as_published if published else normalize_answer, (text, answer))
    if ours != gold and {ours, gold} & {"yes", "no", "noanswer"} and not is_korean(answer):
        return Overlap(0.0, 0.0)
    return shared_tokens(text, answer, published, question)


def shared_tokens(text: str, answer: str, published: bool = False, question: str | None = None) -> Overlap:
    """Compute precision and recall over words. Korean is compared by characters without spaces, as in KorQuAD 1.0's
    evaluation script (Lim, Kim, Lee, 2019), and with its list of punctuation marks if published. Corrected scoring
    does the same for scripts that write no spaces between words. The question's language counts too, since an answer
    may be a number or a foreign name.
    """
    korean = _has(_HANGUL, text, answer, question)
    ours, gold = (_normalised(one, published, korean).split() for one in (text, answer))
    if korean or (not published and _has(_UNSPACED, text, answer, question)):
        return _shared("".join(ours), "".join(gold))
    return _shared(ours, gold)


def _shared(found: Sequence[str], gold: Sequence[str]) -> Overlap:
    shared = (Counter(found) & Counter(gold)).total()
    return Overlap(shared / len(found), shared / len(gold)) if shared else Overlap(0.0, 0.0)


def best_overlap(text: str, answers: Sequence[str], published: bool = False, question: str | None = None) -> Overlap:
    """Return the overlap with the accepted answer that gives the highest F1; zeros if there is no answer."""
    found = (overlap(text, answer, published, question) for answer in answers)
    return max(found, key=lambda one: one.f1, default=Overlap(0.0, 0.0))


def compare_answer(outcome: Outcome, text: str, answers: Sequence[str], published: bool,
                   question: str | None = None) -> tuple[float, Overlap]:
    """Return exact match and best overlap of a text without its citations; 0 for a refusal or failure."""
    if outcome != "answered":
        return 0.0, Overlap(0.0, 0.0)
    bare = strip_citations(text, published)
    return exact_match(bare, answers, published, question), best_overlap(bare, answers, published, question)


def gives_answer(text: str, answers: Sequence[str]) -> bool:
    """Return whether the lexical judge grades a reply as Correct, or its number rounds to the decimals of an answer."""
    said, grade = strip_citations(text), load(entries("grade")["lexical"])
    return any(grade(said, answer) == "Correct" or _rounds_to(said, answer) for answer in answers)


def same_answer(one: tuple[Outcome, str], other: tuple[Outcome, str]) -> bool:
    """Return whether two replies, each an outcome and a text, agree: both refuse, or one gives the other's answer."""
    outcomes, texts = {one[0], other[0]}, [strip_citations(one[1]), strip_citations(other[1])]
    return outcomes == {"refused"} or (outcomes == {"answered"} and (
        gives_answer(texts[0], texts[1:]) or gives_answer(texts[1], texts[:1])))


def _rounds_to(text: str, answer: str) -> bool:
    """Return whether the text's only number rounds to an answer that is just a decimal number."""
    ours, gold = find_values(text), find_values(answer)
    if len(ours) != 1 or len(gold) != 1 or ours[0].number is None or gold[0].token != normalize_values(answer):
        return False
    number = gold[0].number
    return number is not None and "." in answer and ours[0].number.quantize(number) == number


def contains_words(text: str, words: str) -> bool:
    """Return whether the case-folded text contains the words as whole words. A suffix, such as a Korean particle, may
    follow the last word in languages without spaces."""
    wanted = fold(words)
    end = " " if wanted[-1:].isascii() else ""
    return f" {wanted}{end}" in f" {fold(text)} "
