"""HTML pages to their two renderings."""
import re
from html.parser import HTMLParser

import pytest
from each_case import each
from hypothesis import given
from hypothesis import strategies as st

from ragbed.documents.parsers.html import parse_page


def plain(page: str) -> str:
    return parse_page(page).plain.strip()


def html(page: str) -> str:
    return parse_page(page).html.strip()


def test_scripts_styles_comments_controls_and_handlers_are_gone() -> None:
    page = """<body onload="x()"><!-- note --><script>alert(1)</script><style>p{}</style>
      <iframe src="a">frame</iframe><form action="/"><input type="hidden" value="v"><select><option>o</select>
      <p onclick="y()" style="color:red" class="c" id="i">Kept <a href="javascript:z()">link</a></p></form>"""
    assert html(page) == "<p>Kept link</p>"
    assert plain(page) == "Kept link"


@pytest.mark.parametrize(("page", "text"), [
    ("<p>&lt;script&gt;alert(1)&lt;/script&gt; &amp;amp; a &lt; b</p>",) * 2,
    ('<img alt="&quot;&gt;&lt;script&gt;">', '<p><img alt="&quot;&gt;&lt;script&gt;"></p>'),
    ("<pre>a   b\n  c</pre>",) * 2], ids=["markup in text", "markup in an attribute", "preformatted"])
def test_what_is_written_as_html(page: str, text: str) -> None:
    assert html(page) == text


@pytest.mark.parametrize(("page", "text"), [
    ("<pre>a   b\n\tc</pre>", "```\na   b\n    c\n```"),
    ("""<table><caption>Sales</caption><thead><tr><th>Year</th><th>Total</th></tr></thead>
      <tr><td>2021</td><td>1|2</td></tr><tr><td>2022</td><td><p>3</p><p>4</p></td></tr></table>""",
     "Sales\n\n| Year | Total |\n| --- | --- |\n| 2021 | 1\\|2 |\n| 2022 | 3 4 |"),
    ("<table><tr><td>Net<td>$<td>5<td><td>(3<td>)<td>7<td>bps</table>",
     "|  |  |  |  |\n| --- | --- | --- | --- |\n| Net | $5 | (3) | 7 bps |"),
    ("<table><tr><td>Cash</td><td>5</td></tr><tr><td>Debt</td><td>7</td></tr></table>",
     "|  |  |\n| --- | --- |\n| Cash | 5 |\n| Debt | 7 |"),
    ("<table><tr><td></td><td>2022</td></tr><tr><td>Debt</td><td>7</td></tr></table>",
     "|  | 2022 |\n| --- | --- |\n| Debt | 7 |"),
    ("<nav><a>Home</a><a>News</a><button>Go</button></nav>", "Home News Go"), ("<p>un<a>link</a>ed</p>", "unlinked"),
    ("<p>\u1112\u1161\u11ab\u200b글\u00ad\ufeff x²\u2028y</p>", "한글 x² y"),
], ids=["preformatted", "header rule", "signs of a number in cells of their own", "no header", "years as a header",
        "neighbouring links", "a link in a word", "hangul composed and nothing invisible"])
def test_what_is_written_as_plain_text(page: str, text: str) -> None:
    assert plain(page) == text


def test_headings_lists_and_emphasis() -> None:
    page = """<h1>One <i>two</i></h1><p>A <b>bold</b>&nbsp;word<br>next line</p>
      <ul><li>a</li><li>b<ol start=3><li>c<li>d</ol></li></ul><dl><dt>Term<dd>Meaning</dl>
      <blockquote><p>Said</p><p>so</p></blockquote>"""
    assert plain(page) == ("# One two\n\nA bold word\nnext line\n\n- a\n- b\n  3. c\n  4. d\n\n"
                           "Term\n    Meaning\n\n> Said\n>\n> so")
    assert html(page).startswith("<h1>One <em>two</em></h1>\n<p>A <strong>bold</strong> word<br>next line</p>\n<ul>")


def test_items_keep_the_numbers_that_the_page_gives_them() -> None:
    page = "<ol start=0><li>a<li>b<li value=7>c<li>d</ol><ul><li value=4>e</ul>"
    assert plain(page) == "0. a\n1. b\n7. c\n8. d\n\n- e"
    assert '<ol start="0">\n<li>a</li>\n<li>b</li>\n<li value="7">c</li>' in html(page)


def test_spans_keep_the_columns_aligned() -> None:
    page = """<table><tr><th></th><th colspan=2>2022</th></tr><tr><th>Item</th><th>Q1</th><th>Q2</th></tr>
      <tr><td rowspan=2>Sales</td><td>1</td><td>2</td></tr><tr><td>3</td><td>4</td></tr>
      <tr><td colspan=3>Unaudited</td></tr></table>"""
    assert plain(page) == ("|  | 2022 | 2022 |\n| Item | Q1 | Q2 |\n| --- | --- | --- |\n| Sales | 1 | 2 |\n"
                           "| Sales | 3 | 4 |\n| Unaudited |  |  |")
    assert '<th colspan="2">2022</th>' in html(page)
    assert '<td rowspan="2">Sales</td>' in html(page)


def test_a_layout_table_is_written_as_its_contents() -> None:
    page = "<table><tr><td><p>Menu</p></td><td><table><tr><th>1</th><th>2</th></tr></table></td></tr></table>"
    assert plain(page) == "Menu\n\n| 1 | 2 |\n| --- | --- |"
    assert plain("<table><tr><td>Only</td></tr><tr><td>column</td></tr></table>") == "Only\n\ncolumn"
    items = "".join(f"<li>Entry number {number}</li>" for number in range(30))
    assert plain(f"<table><tr><td><ul>{items}</ul></td><td><h1>Head</h1></td></tr></table>").endswith("29\n\n# Head")


def test_a_list_in_a_cell_does_not_break_its_table() -> None:
    items = "".join(f"<li>Entry number {number}</li>" for number in range(30))
    page = f"<table><tr><th>Plan<th>Holds<tr><td>A<td><ul>{items}</ul><tr><td>B<td><ol><li>x<li>y</ol></table>"
    shown = "; ".join(f"Entry number {number}" for number in range(30))
    assert plain(page) == f"| Plan | Holds |\n| --- | --- |\n| A | {shown} |\n| B | 1. x; 2. y |"


def test_the_title_is_the_pages_own_else_its_first_heading() -> None:
    assert parse_page("<title> A \n page</title><h1>Head</h1>").title == "A page"
    assert parse_page("<h2>Head</h2>").title == "Head"
    assert parse_page("<p>text</p>").title == ""
    assert parse_page("<svg><title>Icon</title></svg><h1>Head</h1>").title == "Head"


@pytest.mark.parametrize("page", [
    "<tr>" + "<td colspan=99999 rowspan=99999>x" * 20 + "<tr><td>y",
    "<tr>" + "<td rowspan=999>some words in it" * 600 + "<tr><td>y" * 999,
    "<tr>" + "<td>" * 600 + "<td rowspan=9999>last" + "<tr><td>y" * 6_000,
    "<tr>" + "<td>1" * 600 + "<tr><td>y" * 6_000,
    "<thead>" + ("<tr>" + "<th colspan=999>title" * 9) * 99], ids=["both", "down", "far", "ragged", "across"])
def test_what_spans_and_ragged_rows_claim_does_not_swell_the_text(page: str) -> None:
    assert len(plain(f"<table>{page}</table>")) < 4 * len(page) + 1_000


@pytest.mark.slow
def test_ten_thousand_nested_tags_lose_nothing() -> None:
    for tag in ("div", "b", "ul><li", "table><tr><td", "blockquote", "p"):
        words = [f"w{index}" for index in range(10_000)]
        page = "".join(f"<{tag}>{word} " for word in words)
        parsed = parse_page(page)
        assert re.findall(r"w\d+", parsed.plain) == words
        assert re.findall(r"w\d+", parsed.html) == words


class Balanced(HTMLParser):
    """Checks that every tag is closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("br", "hr", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


TAGS = ["p", "div", "h2", "ul", "ol", "li", "dl", "dt", "dd", "table", "thead", "tr", "td", "th", "caption", "pre", "b",
        "i", "a", "span", "sup", "blockquote", "section", "br", "button", "form", "unknown"]


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(TAGS), st.booleans()), max_size=40))
def test_whatever_the_nesting_every_word_is_in_both_renderings_once(
        tags: list[tuple[bool, str, bool]]) -> None:
    page = "".join(f"<{'/' if closing else ''}{tag}>" + (f"w{index};" if word else "")
                   for index, (closing, tag, word) in enumerate(tags))
    words = [f"w{index};" for index, (_, _, word) in enumerate(tags) if word]
    parsed = parse_page(f"<body>{page}")
    checker = Balanced()
    checker.feed(parsed.html)
    checker.close()
    assert checker.open == []
    assert sorted(re.findall(r"w\d+;", parsed.html)) == sorted(words)
    assert sorted(re.findall(r"w\d+;", parsed.plain)) == sorted(words)


@each(("formula", "text"), [
    ("<msup><mn>10</mn><mn>3</mn></msup>", "10^3"), ("<mfrac><mn>1</mn><mn>2</mn></mfrac>", "1/2"),
    ("<mfrac><mi>a</mi><mrow><mn>2</mn><mi>c</mi></mrow></mfrac>", "a/(2c)"),
    ("<mn>3</mn><mfrac><mn>1</mn><mn>2</mn></mfrac>", "3 1/2"), ("<msqrt><mn>2</mn></msqrt>", "√2"),
    ("<mroot><mi>x</mi><mn>5</mn></mroot>", "root(5, x)"), ("<msub><mi>x</mi><mn>12</mn></msub>", "x_12"),
    ("<mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mi>c</mi></mfrac>", "(a+b)/c"),
    ("<msup><mn>10</mn><mrow><mo>-</mo><mn>3</mn></mrow></msup><mi>kg</mi>", "10^-3 kg"),
    ("<mi>y</mi><mmultiscripts><mi>C</mi><mprescripts/><none/><mn>14</mn></mmultiscripts>", "y ^14C"),
    ("<mmultiscripts><mi>He</mi><mn>7</mn><none/><mprescripts/><mn>2</mn><mn>4</mn></mmultiscripts>", "_2^4He_7"),
    ("<mrow><mi>E</mi><mo>=</mo><mi>m</mi><msup><mi>c</mi><mn>2</mn></msup></mrow>", "E=mc^2"),
    ("<munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi></munderover><mi>i</mi>",
     "∑_(i=1)^n i"),
    ("<mtable><mtr><mtd><mn>1</mn></mtd><mtd><mn>2</mn></mtd></mtr><mtr><mtd><mn>3</mn></mtd></mtr></mtable>",
     "[1, 2; 3]"),
    ("<semantics><mrow><mn>2</mn><mi>x</mi></mrow><annotation>2x</annotation></semantics>", "2x"),
    ("<mfenced><mi>a</mi><mi>b</mi></mfenced>", "(a, b)"), ("<mtext>if </mtext><mi>x</mi>", "if x"),
    ("<mrow>" * 500 + "<mn>7</mn>", "7")])
def test_a_formula_is_text_on_one_line(formula: str, text: str) -> None:
    assert html(f"<p>Is <math>{formula}</math> so.") == f"<p>Is {text} so.</p>"
    assert html(f'<p>Is</p><math display="block">{formula}</math><p>so.') == f"<p>Is</p>\n<p>{text}</p>\n<p>so.</p>"


def test_numbers_above_and_below_the_line_stay_apart_from_others() -> None:
    page = "<p>10<sup>3</sup>5 log<sub>10</sub>100 7<sub>2</sub> H<sub>2</sub>O x<sup>2</sup>y"
    assert plain(page) == "10^3 5 log10 100 7_2 H2O x^2y"


def test_boxes_of_a_form_and_texts_of_a_drawing_are_kept() -> None:
    form = "<p><input type=checkbox checked> Yes <input type=checkbox> No</p>"
    assert html(f"{form}<svg><text>Sales</text><desc>no</desc></svg>") == "<p>☒ Yes ☐ No</p>\n<p>Sales</p>"
