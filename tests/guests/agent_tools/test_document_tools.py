"""The tools that read documents: list, grep, open, search and calculate."""
import math
from collections import OrderedDict

import pytest
from each_case import each
from hypothesis import example, given
from hypothesis import strategies as st
from toy_corpus import ToyCorpus, ask, spans, text_document, texts, use

from ragbed.documents.errors import SettingsError
from ragbed.documents.types import Chunk
from ragbed.experiments.guests.agent_tools.arguments import ToolFailure
from ragbed.experiments.guests.agent_tools.grep import compile_pattern, find_lines, find_required_text
from ragbed.experiments.guests.agent_tools.toolbox import check_tools

MANUAL = text_document("manuals/x200.txt", "The X200.\nIts warranty lasts two years.\n\nCafé: três anos de garantia.\n")
LETTER = text_document("letter.txt", "No WARRANTY applies.\nSincerely", title="A letter")
BOOK = text_document("book.pdf", "one\ntwo\nthree\nfour\n", pages=(0, 8))
CORPUS = ToyCorpus(MANUAL, LETTER, BOOK)


def test_list_names_documents_with_title_pages_and_size():
    assert texts(ask("list", CORPUS)) == [
        "3 documents.\n- manuals/x200.txt: 70 characters\n- letter.txt (A letter): 30 characters\n"
        "- book.pdf: 2 pages, 19 characters"]
    assert texts(ask("list", CORPUS, path="manuals/")) == ["1 document.\n- manuals/x200.txt: 70 characters"]
    assert texts(ask("list", CORPUS, path="*.pdf")) == ["1 document.\n- book.pdf: 2 pages, 19 characters"]


def test_a_long_list_has_pages():
    corpus = ToyCorpus(*(text_document(f"{number:03}.txt", "x") for number in range(120)))
    (last,) = texts(ask("list", corpus, page=3))
    assert last.startswith("120 documents. Page 3 of 3; for more, give `page`.\n- 100.txt: 1 characters\n")
    assert ask("list", corpus, page=4).failure == "list: there is no page 4; the list has pages 1-3"


def test_grep_returns_each_matching_line_as_a_span_with_its_place():
    found = ask("grep", CORPUS, pattern="warranty")
    assert spans(found) == [("id-manuals/x200.txt", 10, 39), ("id-letter.txt", 0, 20)]
    assert [part if isinstance(part, str) else part.content for part in found.parts] == [
        "2 matching lines in manuals/x200.txt (1), letter.txt (1).",
        "manuals/x200.txt, line 2:", "Its warranty lasts two years.",
        "letter.txt, line 1:", "No WARRANTY applies."]


def test_a_capital_letter_in_a_pattern_makes_case_count_but_a_class_does_not():
    assert spans(ask("grep", CORPUS, pattern="WARRANTY")) == [("id-letter.txt", 0, 20)]
    assert len(spans(ask("grep", CORPUS, pattern=r"\Warranty|\Swarranty|\bwarranty"))) == 2


def test_grep_counts_code_points_after_letters_of_several_bytes():
    assert spans(ask("grep", CORPUS, pattern="garantia$")) == []
    assert spans(ask("grep", CORPUS, pattern=r"garantia\.$")) == [("id-manuals/x200.txt", 41, 69)]


def test_grep_searches_one_document_and_joins_the_context_of_neighbouring_lines():
    assert spans(ask("grep", CORPUS, pattern="t", document="book.pdf", context=1)) == [("id-book.pdf", 0, 18)]
    lines = ask("grep", CORPUS, pattern="two|four", document="book.pdf")
    assert texts(lines)[1:] == ["book.pdf, page 1, line 2:", "book.pdf, page 2, line 4:"]


def test_a_match_never_crosses_lines():
    assert texts(ask("grep", CORPUS, pattern=r"one\s+two|one[^x]two")) == ["No line matches."]


def test_of_a_long_line_the_words_around_the_match_are_shown():
    corpus = ToyCorpus(text_document("long.txt", "word " * 2_000 + "needle " + "word " * 2_000))
    ((_, start, end),) = spans(ask("grep", corpus, pattern="needle"))
    assert start <= 10_000 <= 10_006 <= end
    assert end - start <= 600


@pytest.mark.slow
@given(st.text("ab(|)*+?.[]^$\\ {2}", max_size=12), st.text("abkAB \n", max_size=60))
@example("abab|b", "b")
@example("(?:aba)?bb*", "b ab")
@example("a[bab]aba?", "aab\nabab")
def test_a_required_text_does_not_change_which_lines_match(pattern, text):
    try:
        compiled, required = compile_pattern(f"{pattern}aab")
    except ToolFailure:
        return
    data = text.encode()
    assert [*find_lines((compiled, required), data, 0, len(data), math.inf)] == [
        *find_lines((compiled, None), data, 0, len(data), math.inf)]


@each(("pattern", "text"), [
    (r"\bwarranty", "warranty"), (r"\d+ years? of", " year"), ("[a-z]+ing soon", "ing soon"), ("warranty", ""),
    ("(?:two|three) years", " years"), ("two|three", ""), (r"\x41bcd", ""), (r"\pLabcd", ""), (".(?i)abcd", "")])
def test_a_text_that_every_match_contains_is_found(pattern, text):
    assert find_required_text(pattern) == text


def test_grep_shows_some_lines_of_each_document_and_counts_the_rest():
    corpus = ToyCorpus(text_document("a.txt", "hit\n" * 40), text_document("b.txt", "hit\n" * 3))
    found = ask("grep", corpus, pattern="hit")
    assert texts(found)[0] == "43 matching lines in a.txt (40), b.txt (3). Shown: 8, at most 5 of each document."
    assert len(spans(found)) == 8
    assert len(spans(ask("grep", corpus, pattern="hit", document="a.txt"))) == 30


def test_counting_ends_at_a_thousand_lines():
    found = ask("grep", ToyCorpus(text_document("a.txt", "hit\n" * 1_500)), pattern="hit")
    assert texts(found)[0] == ("1,000 matching lines in a.txt (1000). Shown: 5, at most 5 of each document. There are "
                               "more; use a longer pattern.")


def test_a_large_text_is_kept_in_the_cache_and_found_again(own_cache, tmp_path, monkeypatch):
    corpus = ToyCorpus(*(text_document(f"{number}.txt", "é" * 1_000_000 + f"\nneedle {number}\n")
                         for number in range(5)))
    first = ask("grep", corpus, pattern=r"needle|\[\[")
    (kept,) = (tmp_path / "cache" / "texts").iterdir()
    monkeypatch.setattr("ragbed.experiments.guests.agent_tools.corpus_text._texts", OrderedDict())
    assert ask("grep", corpus, pattern=r"needle|\[\[") == first
    assert spans(first)[4] == ("id-4.txt", 1_000_001, 1_000_009)
    kept.write_bytes(b"damaged")
    monkeypatch.setattr("ragbed.experiments.guests.agent_tools.corpus_text._texts", OrderedDict())
    assert ask("grep", corpus, pattern=r"needle|\[\[") == first


def test_open_shows_the_beginning_a_page_or_lines_and_says_what_is_around_them():
    assert spans(ask("open", CORPUS, document="letter.txt")) == [("id-letter.txt", 0, 30)]
    page = ask("open", CORPUS, document="book.pdf", page=2)
    assert spans(page) == [("id-book.pdf", 8, 19)]
    assert texts(page) == ["book.pdf, page 2 of 2, lines 3-4 of 4:", "Before it: lines 1-2. This is its end."]
    lines = ask("open", CORPUS, document="book.pdf", lines="2-3")
    assert spans(lines) == [("id-book.pdf", 4, 14)]
    assert texts(lines)[-1] == "Before it: line 1. After it: line 4; open them with lines 4-4."
    assert spans(ask("open", CORPUS, document="book.pdf", lines=2)) == [("id-book.pdf", 4, 8)]


def test_a_window_ends_with_a_line_and_its_rest_can_be_opened():
    corpus = ToyCorpus(text_document("long.txt", ("x" * 99 + "\n") * 100))
    first = ask("open", corpus, document="long.txt")
    assert spans(first) == [("id-long.txt", 0, 6_000)]
    assert texts(first)[-1] == "After it: lines 61-100; open them with lines 61-100."
    assert spans(ask("open", corpus, document="long.txt", lines="61-100")) == [("id-long.txt", 6_000, 10_000)]


@pytest.mark.parametrize("name", ["id-letter.txt", "letter.txt", "LETTER.TXT", "a letter", " `letter.txt` "])
def test_a_document_is_found_by_id_source_file_name_or_title(name):
    assert spans(ask("open", CORPUS, document=name)) == [("id-letter.txt", 0, 30)]


def test_a_document_without_pages_is_opened_at_page_1_because_models_give_every_argument():
    whole, second = ask("open", CORPUS, document="letter.txt"), ask("open", CORPUS, document="letter.txt", lines=1)
    assert ask("open", CORPUS, document="letter.txt", page=1) == whole
    assert ask("open", CORPUS, document="letter.txt", page=1, lines=1) == second


def test_grep_shows_at_most_five_lines_around_a_match():
    assert ask("grep", CORPUS, pattern="t", context=10) == ask("grep", CORPUS, pattern="t", context=5)


@each(("arguments", "why"), [
    ({"document": "leter.txt"}, "there is no document 'leter.txt'; did you mean 'letter.txt'? the "),
    ({"document": "book.pdf", "page": 3}, "there is no page 3; the document has pages 1-2"),
    ({"document": "letter.txt", "page": 2}, "the document has no pages; give `lines`, such as 1-80"),
    ({"document": "book.pdf", "page": 1, "lines": "1-2"}, "give either `page` or `lines`"),
    ({"document": "book.pdf", "lines": "9-12"}, "argument lines: there are no lines 9-12; the document has 4 lines"),
    ({"document": "book.pdf", "lines": "end"}, "argument lines: 'end' is not a range; write it as 40-90"),
    ({"document": "book.pdf", "page": "first"}, "argument page: Input should be a valid integer"),
    ({"file": "book.pdf"}, "argument document: Field required; unknown argument 'file'; the arguments are document"),
    ({}, "argument document: Field required")])
def test_open_says_what_is_wrong_with_its_arguments(arguments, why):
    assert ask("open", CORPUS, **arguments).failure.startswith(f"open: {why}")


def test_a_name_of_several_documents_is_ambiguous():
    corpus = ToyCorpus(text_document("a/x.txt", "1"), text_document("b/x.txt", "2"))
    why = "'x.txt' names 2 documents, such as a/x.txt and b/x.txt"
    assert ask("open", corpus, document="x.txt").failure == f"open: {why}"
    assert spans(ask("open", corpus, document="b/x.txt")) == [("id-b/x.txt", 0, 1)]


def test_tools_read_the_rendering_that_the_questions_searches_show():
    assert spans(ask("grep", ToyCorpus(MANUAL, format="html"), pattern="two")) == [("id-manuals/x200.txt", 10, 39)]
    assert ask("grep", ToyCorpus(MANUAL, format="html"), pattern="two").parts[2].format == "html"


def test_search_uses_the_search_of_its_name_and_gives_places():
    async def words(search):
        return [Chunk.of(LETTER, "plain", 0, 20), Chunk.of(BOOK, "plain", 8, 14)][:search.k]

    found, other = use(["search", "search_words"], CORPUS, ("search_words", {"query": "warranty", "k": 2}),
                       ("search", {"query": "x"}), searches={"search_words": words})
    assert texts(found) == ["letter.txt, line 1:", "book.pdf, page 2, line 3:"]
    assert spans(found) == [("id-letter.txt", 0, 20), ("id-book.pdf", 8, 14)]
    assert other.failure == "search: this search is not open; choose from: search_words"


@pytest.mark.parametrize(("expression", "value"), [
    ("0.1 + 0.2", "0.3"), ("(1,250 - 980) / 1,000", "0.27"), ("12% of 50", "6"),
    ("1/3", "0.333333333333 (exactly 1/3)"),
    ("days(date(2024, 2, 28), 2024-03-01)", "2"), ("2**64 + 1", "18446744073709551617"), ("3 > 2", "true")])
def test_calculate_is_exact(expression, value):
    assert texts(ask("calculate", CORPUS, expression=expression)) == [value]


def test_null_counts_as_left_out_and_numbers_may_be_texts():
    assert spans(ask("open", CORPUS, document="book.pdf", page="2", lines=None)) == [("id-book.pdf", 8, 19)]


@each(("value", "why"), [
    ([["search"], ["grep", "open"]],
     "tools: ['search'] is a list; to compare tools, write one strategy for each list"),
    (["grpe"], "tools: unknown tool 'grpe'; did you mean 'grep'? choose from: calculate, grep, "),
    ([], "tools: "), ([3], "tools: "), ([{"mcp": {}}], "an MCP server needs either `command` or `url`"),
    ([{"mcp": {"command": ["x"], "url": "http://x"}}], "either `command` or `url`"),
    ([{"mcp": {"url": "http://x", "headers": {"Authorization": "Bearer abc"}}}], "environment variable"),
    ([{"mcp": {"url": "file:///etc/passwd"}}], "expected an address such as http://localhost:8080/mcp")])
def test_a_setting_that_cannot_take_effect_is_refused(value, why):
    with pytest.raises(SettingsError, match="tools") as refused:
        check_tools(value)
    assert why in str(refused.value)


def test_two_tools_of_one_name_are_refused(tmp_path):
    (tmp_path / "my.py").write_text('def grep(pattern: str) -> str:\n    """Mine."""\n    return pattern\n')
    with pytest.raises(SettingsError, match="two tools have the name 'grep'"):
        use(["grep", f"{tmp_path}/my.py:grep"], CORPUS)
