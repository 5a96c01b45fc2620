"""Tell whether a reply refuses, in whatever words. `forms.toml` lists the forms of ten languages.

A reply is split into clauses. It is a refusal if a clause says that the documents lack the answer, or that the model
cannot give it, and no other clause answers: `I cannot say. However, [2] suggests a short circuit` is an answer, as is
`No, the documents show that it was granted`.
"""
from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from itertools import pairwise

from ragbed.retrieval.lexical.languages import detect_language
from ragbed.strategies.reading import (
    REFUSAL,
    SENTENCES,
    Reading,
    begins_with_refusal,
    find_citations,
    fold,
    remove_invisible,
)

Forms = Mapping[str, re.Pattern[str]]  # by what they find

_FILE = resources.files("ragbed.experiments.guests.refusals").joinpath("forms.toml")
_FORMS = tomllib.loads(_FILE.read_text(encoding="utf-8"))  # by language
_MAX_LENGTH = 2_000  # a longer reply refuses only with the sentence that prompts give
_CITED = "§"
_EDGES = " \t.,;:!?*_`()[]，、。\"'“”"
_LATIN = ("en", "de", "fr", "es", "it", "pt")
_SCRIPTS = re.compile("(?P<ko>[\uac00-\ud7a3])|(?P<ja>[\u3040-\u30ff])|(?P<zh>[\u3400-\u9fff])|(?P<ru>[\u0400-\u04ff])"
                      "|(?P<en>[a-zà-öø-ž])|(?P<other>[^\\W\\d_])")
_END = re.compile(r"(?<=[.!?])(?<!\b[a-z]\.)\s+|[。！？；;\n]+|(?<=\w)[:：]\s|\s[–—-]\s")


def read_refusal(text: str) -> Reading:
    """Return `refusal`, `answer` or `open` for a final answer. It is `open` if the rules cannot decide: it has a
    negation or another word of refusals, but matches no form of a refusal, or its script has no rules."""
    shared, cue = _forms("all"), text[:_MAX_LENGTH].replace("’", "'").lower()
    hinted = shared["cue"].search(cue) is not None
    begins = hinted and begins_with_refusal(text)
    if not begins and (not hinted or len(text) > _MAX_LENGTH):
        return "answer" if _main_script(cue) != "other" else "open"
    plain = _plain(text)
    script = _main_script(plain)
    forms = [_forms(name) for name in (_LATIN if script == "en" else () if script == "other" else (script,))]
    if shared["negative"].match(plain):
        return "answer"
    if _any(forms, "bare", plain.replace(_CITED, "").strip(_EDGES), whole=True):
        return "refusal"
    lacks = answers = False
    for clause, turned in _clauses(plain, forms):
        # A cited clause about anything but the documents tells what they say: `The survey had too few data [2]`.
        said = _CITED in clause[1:] and not _any(forms, "names", clause)
        if not said and not shared["condition"].match(clause) and _any(forms, "lacks", clause):
            lacks = True
        elif not _any(forms, "aside", clause):
            about = _any(forms, "about", clause) and not _any(forms, "claims", clause) and not (turned and lacks)
            answers = answers or not (about or (begins and not turned))  # what is missing may follow the sentence
    return "refusal" if (begins or lacks) and not answers else "open"


def _any(forms: list[Forms], name: str, text: str, whole: bool = False) -> bool:
    return any((one[name].fullmatch(text) if whole else one[name].search(text)) is not None for one in forms)


@cache
def _forms(language: str) -> Forms:
    found = {name: "|".join(said) if isinstance(said, list) else said for name, said in _FORMS[language].items()}
    if language != "all":
        spaced, documents = language not in ("ko", "zh", "ja"), found["documents"]
        found = {name: said.replace("{D}", documents + r"\b" * spaced) for name, said in found.items()}
        found["about"] = rf"^(?:{_CITED}|.{{0,{25 if spaced else 6}}}{documents})"
        found["names"] = rf"{documents}|\b(?:i|we|ich|je|yo|io|eu|я)\b"
        found["turn"] = rf"{found['turns']}[ ,]*" + r"\b" * spaced
        found["turns"] = (rf"(?:^|[,;]\s+|\s(?=(?:but|pero|mais|mas)\s))(?={found['turns']}\b)" if spaced else
                          rf"(?={found['turns']})")
        found.setdefault("breaks", "(?!)")
    return {name: re.compile(said) for name, said in found.items()}


def _plain(text: str) -> str:
    """Return a text in lower case without label and quotations, each citation as one sign."""
    for start, end, _ in reversed(find_citations(text)):
        text = f"{text[:start]}{_CITED}{text[end:]}"
    text = remove_invisible(text).replace("’", "'").replace("**", "").lower().strip()
    label = _forms("all")["label"].match(text)
    text = text[label.end():] if label else text
    return _forms("all")["quoted"].sub(" ", text).strip() or text.strip(_EDGES)


def _clauses(text: str, forms: list[Forms]) -> Iterator[tuple[str, bool]]:
    """Yield each clause, and whether it begins with a contrast or a conclusion."""
    for sentence in filter(None, map(str.strip, _END.split(text))):
        turns = {found.end() for one in forms for found in one["turns"].finditer(sentence)}
        breaks = {found.end() for one in [*forms, {"breaks": _forms("all")["concession"]}]
                  for found in one["breaks"].finditer(sentence)}
        for start, end in pairwise(sorted({0, *turns, *breaks, len(sentence)})):
            clause = sentence[start:end].strip(_EDGES)
            if start in turns:
                clause = next((clause[found.end():] for one in forms if (found := one["turn"].match(clause))), clause)
            if any(map(str.isalpha, clause)):
                yield clause, start in turns or start in breaks


def refusal_for(question: str) -> str:
    """Return the sentence that refuses, in the question's language; in English if that is unknown."""
    by_script = {"ko": "korean", "ja": "japanese", "zh": "chinese", "ru": "russian"}
    language = by_script.get(_main_script(question.lower())) or detect_language(fold(question).split(), query=True)
    return SENTENCES.get(language, REFUSAL)


def _main_script(text: str) -> str:
    """Return the language of the script that a text is mainly in, `en` for Latin letters, or `other`."""
    counts = Counter(str(found.lastgroup) for found in _SCRIPTS.finditer("" if text.isascii() else text))
    if "ja" in counts:
        counts["ja"] += counts.pop("zh", 0)
    return max(counts, key=lambda name: counts[name] * (1 if name == "en" else 3), default="en")
