"""Korean: particles and endings are cut off, compounds found by their parts, other scripts cut as elsewhere."""
import importlib.util
import sys
import unicodedata

import pytest
from test_bm25 import Few

from ragbed.documents import MissingExtra
from ragbed.retrieval import Bm25, RerankerDeps
from ragbed.retrieval.lexical.tokenizers import KoreanTokenizer
from ragbed.retrieval.lexical.tokens import WordTokenizer
from ragbed.retrieval.retrievers.bm25 import make_tokenizer

if importlib.util.find_spec("kiwipiepy") is None:
    pytest.skip("kiwipiepy is not installed; run: pip install 'ragbed[korean]'", allow_module_level=True)

KIWI = make_tokenizer("kiwi", "english", True, True)


def tokens(text):
    (found,) = KIWI.tokens([text])
    return found


def rows(texts, query, **settings):
    (hits,) = Bm25(**settings).open(Few(*texts), RerankerDeps()).search([query], 10)
    return [int(hit.chunk.document) for hit in hits]


@pytest.mark.slow
def test_particles_are_no_part_of_a_word():
    assert tokens("서울은") == tokens("서울에서") == tokens("서울의") == ["서울"]
    texts = ["서울에서 만난 사람들", "부산은 항구 도시이다"]
    assert rows(texts, "서울은") == [0]
    assert rows(texts, "부산에서") == [1]
    assert rows(texts, "서울은", tokenizer="words") == []


def test_verbs_stand_in_their_dictionary_form():
    assert tokens("물을 마셨습니다") == tokens("마시는 물")[::-1] == ["물", "마시다"]


def test_a_compound_is_found_by_its_parts_and_counts_more_as_a_whole():
    assert tokens("시중은행") == ["시중", "은행", "시중은행"]
    assert rows(["은행은 강가에 있다. 시중에 돈이 돈다", "시중은행은 셋이다", "학교"], "시중은행") == [1, 0]


def test_english_words_and_numbers_in_korean_are_found():
    text = "e커머스 B2B 거래는 2025년까지 1,000억원이 된다. Gartner는 COVID-19의 영향을 reports에서 다룬다"
    assert {"e", "커머스", "b2b", "2025", "1000", "gartner", "covid", "19", "report"} <= set(tokens(text))
    texts = [text, "Gartners annual report", "서울"]
    assert sorted(rows(texts, "Gartner report")) == [0, 1]
    assert rows(texts, "커머스 report") == [0, 1]
    assert rows(texts, "서울 Gartner", language="korean")[0] in (2, 1)


def test_spelling_of_the_letters_does_not_count():
    assert tokens(unicodedata.normalize("NFD", "한국은행의 금리")) == tokens("한국은행의 금리")
    assert tokens("ＡＩ 시장") == tokens("AI 시장") == ["ai", "시장"]
    assert "서울" in tokens("#서울은")


@pytest.mark.parametrize("text", ["", " ", "그리고 너는 있었다", "?!"])
def test_words_that_say_nothing_leave_nothing(text):
    assert tokens(text) == []


def test_hostile_text_is_read_around():
    assert "서울" in tokens("\0\ud800서울은\udfff" + "x" * 1_000_000)


def test_the_language_is_that_of_the_text_and_not_of_the_collection():
    english = [f"Report {number} says that the river is in the south of the city" for number in range(22)]
    korean = ["한강은 서울을 지나는 강이다. 한강에서 사람들이 산책한다", "부산은 항구 도시이다"]
    for query in ("한강", "한강에서", "지나가는 한강"):
        assert rows(english + korean, query) == [22]
        assert rows(english + korean, query, tokenizer="bigrams")[0] == 22
    assert rows(english + korean, "항구는") == [23]
    assert rows(english + korean, "reports 7")[0] == 7
    assert rows([*korean, "The reefs"], "reef") == [2]


@pytest.mark.parametrize("package", ["kiwipiepy", "kiwipiepy_model"])
def test_the_missing_package_is_named_with_its_extra(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"^{package} is not installed; run: pip install 'ragbed\[korean\]'"):
        KoreanTokenizer(WordTokenizer("english", True, frozenset()), frozenset())
