"""Variations of a question's text. Gold, options, judging and scoring use the original question.

`typos` makes Damerau's four kinds of errors ("A technique for computer detection and correction of spelling errors",
CACM 7, 1964): a neighbouring key, or a letter that is omitted, doubled or transposed. In Hangul a typo is a
neighbouring key of the two-set keyboard or an omitted final consonant. First letters, short words and words with digits
are unchanged. `keywords` drops function words; for Korean it keeps nouns, numbers and foreign words. For `paraphrase`,
a model rewrites the question.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Literal, get_args

from ragbed.agents.journal import Exchange, ExchangeResult, Model, complete_with_repair
from ragbed.documents.errors import SettingsError, did_you_mean
from ragbed.documents.numbers import find_values
from ragbed.retrieval.lexical.languages import function_words
from ragbed.retrieval.lexical.tokenizers import nouns_of
from ragbed.retrieval.lexical.tokens import is_korean
from ragbed.strategies.parts.conversation import ask_without_documents
from ragbed.strategies.parts.reading import read_list
from ragbed.strategies.prompting import fill
from ragbed.strategies.reading import fold, is_refusal, strip_thinking
from ragbed.strategies.types import Failure, Generate, Message

Kind = Literal["as_asked", "typos", "keywords", "paraphrase", "lower_case"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_NAME = re.compile(r"([a-z_]+?)(?:@([1-9]\d?|100))?")


@dataclass(frozen=True, slots=True)
class QueryVariation:
    """A variation. `str` gives its name in settings and tables.

    Attributes:
        percent: share of words with a typo; every question has at least one.
    """

    kind: Kind = "as_asked"
    percent: int = 0

    @classmethod
    def parse(cls, name: str) -> QueryVariation:
        """Parse a name such as `keywords` or `typos@20`; `typos` means `typos@10`. Raises SettingsError if unknown."""
        word, percent = match.groups() if (match := _NAME.fullmatch(name)) else ("", None)
        kind = next((one for one in KINDS if one == word), None)
        if kind is None or (percent and kind != "typos"):
            raise SettingsError(f"unknown variation {name!r}; "
                                f"{did_you_mean(name, KINDS)}choose from: {', '.join(KINDS)}, or typos@N for typos "
                                "in N of 100 words")
        return cls(kind, int(percent or 10) if kind == "typos" else 0)

    def __str__(self) -> str:
        return f"{self.kind}@{self.percent}" if self.percent else self.kind

    def apply(self, text: str, seed: str = "") -> str:
        """Return the varied text. Use `vary_question` for paraphrases. A higher rate of typos includes the typos of a
        lower rate. Raises MissingExtra if Korean keywords need kiwipiepy."""
        if self.kind == "typos":
            return _add_typos(text, self.percent, Random(f"{seed}:typos"))
        if self.kind == "keywords":
            return (nouns_of(text) if is_korean([text]) else _drop_function_words(text)) or text
        return text.lower() if self.kind == "lower_case" else text


_WORD = re.compile(r"(?<![^\W_])(?:[가-힣]{2,}|[A-Za-z]{4,})(?![^\W_])")
_ENGLISH = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_TWO_SET = ("ㅂㅈㄷㄱㅅㅛㅕㅑㅐㅔ", "ㅁㄴㅇㄹㅎㅗㅓㅏㅣ", "ㅋㅌㅊㅍㅠㅜㅡ")
# First consonants, vowels and last consonants in the order in which Unicode composes syllables.
_LETTERS = ("ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ", "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ",
            " ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ")


def _add_typos(text: str, percent: int, draw: Random) -> str:
    words = list(_WORD.finditer(text))
    order = draw.sample(words, len(words))[:max(1, round(percent * len(words) / 100))]
    wrong = {word.start(): (_mistype if word[0].isascii() else _mistype_hangul)(word[0], draw) for word in order}
    return _WORD.sub(lambda word: wrong.get(word.start(), word[0]), text)


def _mistype(word: str, draw: Random) -> str:
    at = draw.randrange(1, len(word))
    before, letter, after = word[:at], word[at], word[at + 1:]
    key = draw.choice(_neighbour_keys(_ENGLISH)[letter.lower()])
    made = [f"{before}{key.upper() if letter.isupper() else key}{after}", before + after, before + 2 * letter + after]
    swapped = [f"{before}{after[0]}{letter}{after[1:]}"] if after and after[0] != letter else []
    return draw.choice(made + swapped)


def _mistype_hangul(word: str, draw: Random) -> str:
    at = draw.randrange(1, len(word))
    code = ord(word[at]) - ord("가")
    parts = [code // 588, code % 588 // 28, code % 28]
    near = [(place, letters.index(key)) for place, letters in enumerate(_LETTERS)
            for key in _neighbour_keys(_TWO_SET).get(letters[parts[place]], "") if key in letters]
    place, letter = draw.choice(near + [(2, 0)] * (parts[2] > 0))
    parts[place] = letter
    return word[:at] + chr(ord("가") + parts[0] * 588 + parts[1] * 28 + parts[2]) + word[at + 1:]


@cache
def _neighbour_keys(rows: tuple[str, ...]) -> dict[str, str]:
    """Return the neighbours of each key. Each row is half a key to the right of the row above."""
    at = {key: (2 * place + row, row) for row, keys in enumerate(rows) for place, key in enumerate(keys)}
    return {key: "".join(other for other in at if other != key and abs(at[other][0] - at[key][0]) <= 2
                         and abs(at[other][1] - at[key][1]) <= 1) for key in at}


# Words that bm25s lists as function words, but that change the meaning of a question.
_MEANINGFUL = {"no", "nor", "not", "more", "most", "few", "same", "before", "after", "between", "both", "only", "under",
            "over", "above", "below", "until", "during", "against"}


def _is_function_word(word: str) -> bool:
    return word in function_words() and word not in _MEANINGFUL and not word.endswith("n't")


def _drop_function_words(text: str) -> str:
    words = (word.strip("\"'“”‘’`,;:?!()[]") for word in text.replace("’", "'").split())
    return " ".join(word for word in words if word and not _is_function_word(word.lower())).removesuffix(".")


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """The text of the question in a variation. `note` explains a missing paraphrase, `failure` a failed call."""

    text: str
    note: str = ""
    failure: Failure | None = None


async def vary_question(variation: QueryVariation, text: str, seed: str, model: Model | None,
                   deadline: Callable[[], float]) -> ExchangeResult[AskedQuestion]:
    """Return the question in a variation. `model` writes the paraphrases."""
    if variation.kind == "paraphrase":
        return await complete_with_repair(model, ask_paraphrase(text), deadline)
    return ExchangeResult(AskedQuestion(variation.apply(text, seed)))


_NEGATION = re.compile(r"\b(?:no|not|never|none|nobody|nothing|nowhere|neither|nor|cannot|without|except)\b|n['’]t\b"
                       "|않|없|아닌|아니|못")
_QUOTED = re.compile(r"[\"“'‘《「](\w[^\"“”‘’'《》「」]{0,80}\w)[\"”'’》」](?!\w)")
NOT_PARAPHRASED = "not_paraphrased"  # prefix of the note; the problem with the last reply follows


def ask_paraphrase(text: str) -> Exchange[AskedQuestion]:
    """Ask for a paraphrase, up to twice. If neither is usable, return the original question.

    A usable paraphrase is not a refusal, differs in more than case and punctuation, is less than three times as long,
    and keeps every number, capitalised word, quotation and negation.
    """
    call, flaw = ask_without_documents("paraphrase", "paraphrase", query=text), ""
    for _ in range(2):
        reply = yield Generate(call.messages, call.purpose, max_tokens=512, temperature=0.0, see_failure=True)
        if isinstance(reply, Failure):
            return AskedQuestion(text, failure=reply)
        lines = read_list(re.sub(r"</?\w+>", "\n", strip_thinking(reply.text)).strip(), "", 1)
        found = lines[0].strip("\"“”` ") if lines and reply.finish_reason != "length" else ""
        flaw = _find_flaw(found, text)
        if not flaw:
            return AskedQuestion(found)
        call = Generate((*call.messages, Message("assistant", (reply.text or "(empty)",)),
                         Message("user", (fill("paraphrase_repair", flaw=flaw),))), "paraphrase_repair")
    return AskedQuestion(text, f"{NOT_PARAPHRASED}:{flaw}")


def _find_flaw(paraphrase: str, text: str) -> str:
    if not paraphrase or (is_refusal(paraphrase) and not is_refusal(text)):
        return "it is not a question"
    if fold(paraphrase) == fold(text):
        return "it is the original question"
    if len(paraphrase) > 3 * max(len(text), 100):
        return "it is too long"
    names = [word for word in re.findall(r"\w+", text) if word != word.lower() and not _is_function_word(word.lower())]
    there, numbers = f" {fold(paraphrase)} ", {one.token for one in find_values(paraphrase)}
    lost = [one.token for one in find_values(text) if one.token not in numbers]
    lost += [name for name in (*names, *_QUOTED.findall(text))  # Korean joins particles to a name
             if (f" {fold(name)} " if name.isascii() else fold(name)) not in there]
    denies, denied = (bool(_NEGATION.search(one.lower())) for one in (paraphrase, text))
    if denies and not denied:
        return "it has a negation, which the question does not have"
    lost += ["not"] if denied and not denies else []
    return f"it lacks {', '.join(dict.fromkeys(lost))}" if lost else ""
