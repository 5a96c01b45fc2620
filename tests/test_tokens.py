"""What the words of a text are. Whoever changes one of these tokens raises `RULES` in retrieval/lexical/tokens.py."""
from each_case import each
from hypothesis import given
from hypothesis import strategies as st

from ragbed.retrieval.lexical.tokens import is_korean, normalise
from ragbed.retrieval.retrievers.bm25 import make_tokenizer

WORDS = make_tokenizer("words", "english", False, False)
def tokens(text, tokenizer=WORDS):
    (found,) = tokenizer.tokens([text])
    return found


@each(("text", "expected"), [
    ("Vitamin C in T-cells", ["vitamin", "c", "in", "t", "cells"]),
    ("foo_bar(x) COVID-19", ["foo", "bar", "x", "covid", "19"]),
    ("the reef's end, the reefs' end, don’t", ["the", "reef", "end", "the", "reefs", "end", "don", "t"]),
    ("$1,000 or 1,234,567.89; 3.5% of 7.", ["1000", "or", "1234567.89", "3.5", "of", "7"]),
    ("1,2,3 and 1,0001 and v1.2.3 on 2024.01.05", ["1", "2", "3", "and", "1", "0001", "and", "v1", "2", "3", "on",
                               "2024", "01", "05"]),
    ("5mg of 2.5mg", ["5mg", "of", "2.5", "mg"]),
    ("...... ____ — • \0", []),
    ("", [])])
def test_words_and_numbers(text, expected):
    assert tokens(text) == expected


@each(("text", "expected"), [
    ("ＦＵＬＬ　２０２５ ﬁnance", ["full", "2025", "finance"]),
    ("exam\u00adple zero\u200bwidth", ["example", "zerowidth"]),
    ("cafe\u0301 café CAFÉ", ["café", "café", "café"]),
    ("Straße STRASSE", ["strasse", "strasse"]),
    ("हिन्दी शब्द", ["हिन्दी", "शब्द"]),
    ("中文搜索 and 東", ["中文", "文搜", "搜索", "and", "東"]),
    ("東京タワーは333m", ["東京", "京タ", "タワ", "ワー", "ーは", "333m"]),
    ("서울은 2025년", ["서울은", "2025년"]),
    ("\u1109\u1165\u110b\u116e\u11af", ["서울"]),
    ("a\ud800b", ["a", "b"])])
def test_other_scripts_and_spellings(text, expected):
    assert tokens(text) == expected


def test_bigrams_cut_hangul_too():
    bigrams = make_tokenizer("bigrams", "english", True, True)
    assert tokens("서울에서 the reefs 강", bigrams) == ["서울", "울에", "에서", "reef", "강"]


def test_stemming_and_stop_words_are_the_languages():
    assert tokens("The running of the reefs", make_tokenizer("words", "english", True, True)) == ["run", "reef"]
    assert tokens("Die Häuser der Stadt", make_tokenizer("words", "german", True, True)) == ["haus", "stadt"]
    assert tokens("the reefs", make_tokenizer("words", "finnish", False, True)) == ["the", "reefs"]


@given(st.text(st.characters(codec="ascii"), max_size=200))
def test_plain_text_has_the_same_words_whatever_else_stands_beside_it(text):
    assert tokens(f"{text}\n é") == [*tokens(text), "é"]


@given(st.text(max_size=100))
def test_tokens_are_the_same_whatever_the_case_and_composition(text):
    assert tokens(normalise(text)) == tokens(text)


@each(("texts", "korean"), [
    ([], False), ([""], False), (["The reef"], False), (["서울은 대한민국의 수도이다"], True),
    (["\u1109\u1165\u110b\u116e\u11af"], True), (["A report on Seoul (서울). " + "It is in English. " * 20], False),
    (["CPU GPU 12,345 메모리 " * 3, "B2B e커머스"], True), (["東京タワー"], False)])
def test_korean_is_known_by_its_letters(texts, korean):
    assert is_korean(texts) is korean
