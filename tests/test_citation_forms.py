"""Citations are read in the forms that models write, and other brackets and raised digits are left alone."""
import pytest
from each_case import each
from growth import grows_linearly

from ragbed.experiments.guests.answer_grading.lexical import grade
from ragbed.strategies import read_answer, read_citations
from ragbed.strategies.reading import find_citations, renumber_citations, strip_citations

MARKS = [
    ("【1†source】", (1,)), ("【4:0†source】", (4,)), ("【1†L3-L15】", (1,)), ("【2】", (2,)), ("【1, 2】", (1, 2)),
    ("［1］", (1,)), ("［１，２］", (1, 2)), ("〔3〕", (3,)), ("[^1]", (1,)), ("[^1][^2]", (1, 2)), ("[[1]]", (1,)),
    ("[Document 1]", (1,)), ("[document 1, document 3]", (1, 3)), ("[Doc. 2]", (2,)), ("[Doc 1; Doc 2]", (1, 2)),
    ("[Documents 1 and 3]", (1, 3)), ("[doc_2]", (2,)), ("[Source: 3]", (3,)), ("[Sources: 1-3]", (1, 2, 3)),
    ("[Passage #4]", (4,)), ("[Ref 2]", (2,)), ("[citation:1]", (1,)), ("[cite: 1, 2]", (1, 2)), ("[#2]", (2,)),
    ("[Document 1: Annual report 2019]", (1,)), ("[문서 1]", (1,)), ("[文档1]", (1,)), ("[来源：2]", (2,)),
    ("[Quelle 1]", (1,)), ("[Источник 2]", (2,)), (r"\[1\]", (1,)), (r"\[1, 2\]", (1, 2)),
    ("[1—3]", (1, 2, 3)), ("[1‑3]", (1, 2, 3)), ("[1−3]", (1, 2, 3)), ("[1～3]", (1, 2, 3)), ("[1 to 3]", (1, 2, 3)),
    ("[1，2]", (1, 2)), ("[1、2]", (1, 2)), ("[1；2]", (1, 2)), ("[1 and 2]", (1, 2)), ("[1, 2, and 3]", (1, 2, 3)),
    ("[1 & 2]", (1, 2)), ("[1 및 2]", (1, 2)), ("[1和2]", (1, 2)), ("[1 und 2]", (1, 2)), ("[1, p. 3]", (1,)),
    ("[2, pages 10-12]", (2,)), ("[1](https://example.org/a)", (1,)), ("[2](#doc2)", (2,)), ("(source 1)", (1,)),
    ("(Document 2)", (2,)), ("(Doc. 1, 3)", (1, 3)), ("(see Document 2)", (2,)), ("(sources 1 and 2)", (1, 2)),
    ("(Document 1, Document 2)", (1, 2)), ("(문서 3)", (3,)), ("（来源2）", (2,)), ("¹", (1,)), ("¹²", (12,)),
    ("¹,³", (1, 3)), ("²", (2,)), ("<sup>1</sup>", (1,)), ("<sup>[2]</sup>", (2,)), ("[1][2]", (1, 2)),
    ("[1; 2]", (1, 2)),
    ("[1–3]", (1, 2, 3))]


@each(("mark", "numbers"), MARKS)
def test_a_mark_in_each_form_is_read_and_taken_off_before_grading(mark, numbers):
    for text in (f"24 months{mark}", f"24 months {mark}.", f"It lasts 24 months{mark}, they say."):
        assert read_citations(text) == numbers
        assert strip_citations(text) == text.replace(f" {mark}", "").replace(mark, "")
    assert grade(strip_citations(f"24 months{mark}"), "24 months") == "Correct"


@each("text", [
    "in [1999] it was", "[2019–2021]", "a[1] = 3", "x[2]", "my_list[0]", "{1}", "(1)", "(3.5)", "(Table 1)", "(page 3)",
    "[Table 2]", "[Figure 1]", "[sic]", "[1.5]", "[12345]", "[]", "[ ]", "[a]", "5 m²", "12 km²", "30 cm³", "10⁶",
    "3.2 × 10⁻⁹", "2³ = 8", "E = mc²", "x² + y²", "(a+b)²", "Ca²⁺", "¹⁴C", "²³⁵U", "s⁻¹", "R²", "½", "H₂O", "1³⁄₄",
    "(resource 1)", "Document 1 says so", "[1 of 2]", "[+1]", "[-1]", "[$100]", "[3 million]", "[source code 2]"])
def test_other_brackets_and_raised_digits_are_no_citations(text):
    assert read_citations(text) == ()
    assert strip_citations(text) == text


def test_marks_of_every_form_are_linked_and_renumbered_at_their_place():
    text = "Oak【2†source】 burns¹."
    assert find_citations(text) == ((3, 13, (2,)), (19, 20, (1,)))
    assert renumber_citations(text, {1: 4, 2: 5}, 5) == "Oak[5] burns[4]."


def test_a_raised_number_after_a_year_or_a_count_is_a_citation():
    assert [read_citations(text) for text in ("in 1999²", "1,577³ parcels", "24¹")] == [(2,), (3,), (1,)]


def test_marks_after_the_answer_tag_belong_to_the_answer_and_are_written_plainly():
    assert read_answer("<Answer>Paris</Answer>【1†source】") == ("Paris [1]", True)
    assert read_answer("<Answer>Paris</Answer> [1, 2]") == ("Paris [1, 2]", True)


def test_as_published_only_plain_numbers_in_brackets_are_taken_off():
    assert strip_citations("Paris【1】 [2, 3]", published=True) == "Paris【1】"


@pytest.mark.slow
@pytest.mark.parametrize("piece", [
    "[", "[1", "[1, ", "[Document ", "[Document 1: a", "【1†", "(source ", "(source 1, ", "¹", "¹,", "<sup>1",
    "[1](http://", "[1 ", "\\[", "[[1", "a[1]", "a_", "[1]", "Doc 1; "])
def test_100_kb_of_anything_take_linear_time(piece):
    grows_linearly(lambda n: strip_citations(piece * (n // len(piece))), 25_000)
