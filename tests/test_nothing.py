"""What says that there is nothing is read so, in English, Korean and Chinese, wherever a strategy reads a reply."""
import pytest
from each_case import each
from growth import grows_linearly

from ragbed.experiments.guests.more_strategies.parts.critique import Critique, read_critique
from ragbed.experiments.guests.more_strategies.parts.evidence_checks import read_sufficiency
from ragbed.experiments.guests.more_strategies.parts.quotes import read_quotes
from ragbed.experiments.guests.more_strategies.reasoning.self_ask import follow_up
from ragbed.strategies import says_nothing
from ragbed.strategies.parts.reading import begins_with_nothing, read_list

NOTHING = ["none", "No.", "N/A", "Nothing.", "**NO FAULTS**", "There are no errors.", "Nothing left to work out.",
           "nothing is missing", "not needed", "없음", "없습니다.", "해당 없음", "해당 사항 없음", "결함 없음",
           "결함이 없습니다", "부족한 것 없음", "추가 질문 없음", "无", "無", "没有", "没有错误", "沒有問題。",
           "无遗漏"]
SOMETHING = ["no citation", "출처 없음", "没有引用", "No documents are cited", "Nothing is cited.", "无论如何", "无锡",
             "nothing to support the claim", "No, it was Lucas.", "None of the three cities is named.", "없어진 도시"]


@each("text", NOTHING)
def test_nothing_is_nothing_to_every_reader(text):
    assert says_nothing(text)
    assert read_critique(f"Fault: {text}", "Q?") == Critique()
    assert read_sufficiency(f"Missing: {text}\nSufficiency: 9").missing == ""
    assert follow_up(f"Follow-up: {text}").query == ""
    assert read_list(f"1. {text}", "Q?") == []


@each("text", SOMETHING)
def test_what_lacks_something_says_so(text):
    assert not says_nothing(text)
    assert read_critique(f"Fault: {text}", "Q?").faults == (text,)
    assert read_list(text, "Q?") == [text]


@pytest.mark.parametrize("text", ["결함 없음", "결함이 없습니다. 초안이 맞습니다.", "没有错误，草稿正确。", "없음"])
def test_a_check_that_begins_so_accepts_the_draft_in_every_language(text):
    assert begins_with_nothing(text)
    assert read_critique(text, "Q?") == Critique()


@pytest.mark.parametrize("text", ["没有相关内容", "沒有", "없음", "없습니다."])
def test_a_reply_without_quotes_offers_none(text):
    assert read_quotes(text, 8) == []


@pytest.mark.parametrize("piece", ["no ", "there is ", "nothing to work out ", "더 이상 ", "没有"])
def test_a_monstrous_reply_takes_linear_time(piece):
    grows_linearly(lambda n: (says_nothing(piece * n), begins_with_nothing(piece * n)), 40_000)
