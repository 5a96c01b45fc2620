"""PDF pages: reading order, headings, tables, pages."""
import subprocess
import sys

import pymupdf

from ragbed.documents import parse_document

Text = tuple[float, float, str, float, str]
def pdf(*pages: list[Text]) -> bytes:
    """Pages of texts: x, y, text, size, font."""
    file = pymupdf.open()
    for texts in pages:
        page = file.new_page()
        for x, y, text, size, font in texts:
            page.insert_text((x, y), text, fontsize=size, fontname=font)
    data: bytes = file.tobytes()
    return data


def line(y: float, text: str, size: float = 11, font: str = "helv", x: float = 72) -> Text:
    return x, y, text, size, font


PROSE = [line(120 + 14 * index, f"Line {index} of a paragraph that is long enough to be prose") for index in range(8)]


def test_pages_begin_where_their_text_does() -> None:
    document = parse_document(pdf([line(200, "First page")], [line(200, "Second page")]), "a.pdf")
    assert [page.number for page in document.pages] == [1, 2]
    assert document.plain[document.pages[1].plain:] == "Second page\n\n"
    assert document.html[document.pages[1].html:].startswith('<p class="paragraph" data-page="2" data-size="11.0"')


def test_headings_are_told_by_size_and_weight() -> None:
    document = parse_document(pdf([line(80, "Big title", 20), line(100, "Part", 14, "hebo"), *PROSE,
                                   line(300, "Bold words", 11, "hebo"), line(316, "Text below.")]), "a.pdf")
    assert document.title == "Big title"
    assert document.plain.startswith("# Big title\n\n## Part\n\nLine 0 of")
    assert "### Bold words\n\nText below." in document.plain
    assert '<h1 class="heading1" data-page="1" data-size="20.0" data-box="72 ' in document.html


def test_lines_of_a_paragraph_are_joined_and_only_known_words_are_dehyphenated() -> None:
    texts = [line(120, "The government said that the govern-"), line(134, "ment would keep its long-"),
             line(148, "term plan.")]
    document = parse_document(pdf(texts), "a.pdf")
    assert document.plain == "The government said that the government would keep its long-term plan.\n\n"


def test_aligned_numbers_without_rules_are_a_table() -> None:
    rows = [("Revenue", "$ 1,234", "$ 987"), ("Cost of sales", "(1,000)", "(800)"), ("Net income", "$ 234", "$ 187")]
    texts = [*PROSE, line(300, "Years ended", x=330), line(314, "2022", x=310), line(314, "2021", x=410)]
    for index, (label, *values) in enumerate(rows):
        texts += [line(330 + 14 * index, label), *(line(330 + 14 * index, value, x=300 + 100 * column)
                                                   for column, value in enumerate(values))]
    document = parse_document(pdf(texts), "a.pdf")
    assert ("| Revenue | $ 1,234 | $ 987 |\n| Cost of sales | (1,000) | (800) |\n| Net income | $ 234 | $ 187 |"
            in document.plain)
    assert document.plain.index("|  | 2022 | 2021 |") < document.plain.index("| Revenue")


def table(y: float, *rows: tuple[str, ...]) -> list[Text]:
    """Rows of a label at the left and values that begin at 300, 400 and 500 points."""
    return [line(y + 14 * index, cell, x=(72, 300, 400, 500)[column])
            for index, row in enumerate(rows) for column, cell in enumerate(row) if cell]


def plain(texts: list[Text]) -> str:
    return parse_document(pdf(texts), "a.pdf").plain


def test_dates_over_a_table_are_in_its_header_in_both_renderings() -> None:
    texts = table(300, ("", "January 1,", "January 2,"), ("", "2023", "2022"), ("Assets",), ("Current assets:",),
                  ("Cash", "10", "20"), ("Debt", "30", "40"))
    document = parse_document(pdf(texts), "a.pdf")
    assert "<th>2023</th>\n<th>2022</th>\n</tr>\n<tr>\n<td>Assets</td>" in document.html
    assert document.plain == (
        "|  | January 1, | January 2, |\n|  | 2023 | 2022 |\n| --- | --- | --- |\n| Assets |  |  |\n"
        "| Current assets: |  |  |\n| Cash | 10 | 20 |\n| Debt | 30 | 40 |\n\n")


def test_a_title_stands_over_all_of_its_columns() -> None:
    text = plain([line(300, "52 Weeks Ended", x=380), *table(
        314, ("", "2023", "2022", "2021"), ("Sales", "10", "20", "30"), ("Cost", "40", "50", "60"))])
    assert text.startswith("|  | 52 Weeks Ended | 52 Weeks Ended | 52 Weeks Ended |\n|  | 2023 | 2022 | 2021 |\n| ---")


def test_a_sentence_between_two_tables_divides_them() -> None:
    sentence = "Revenue by major offerings in our reportable segment for the fiscal years was as follows in millions:"
    text = plain([*table(300, ("", "2023", "2022"), ("Sales", "10", "20"), ("Cost", "40", "50")), line(342, sentence),
                  *table(356, ("", "2021", "2020"), ("Land", "11", "21"), ("Gold", "41", "51"))])
    label = "Adjustments to reconcile net income to net cash provided by operating activities:"
    assert f"| {label} |" in plain([*table(300, ("", "2023"), ("Sales", "10")), line(328, label, 5),
                                    *table(342, ("Land", "11"), ("Gold", "41"))])
    assert f"| Cost | 40 | 50 |\n\n{sentence}\n\n|  | 2021 | 2020 |\n| --- | --- | --- |\n| Land |" in text


def test_ranges_of_amounts_are_values_of_a_table() -> None:
    text = plain(table(300, ("Net sales", "$10.95 billion to $11.05 billion"), ("Comparable sales", "4% to 5%"),
                       ("Share repurchases", "approximately $900 million")))
    assert "| Net sales | $10.95 billion to $11.05 billion |\n| Comparable sales | 4% to 5% |\n" in text


def test_text_above_a_table_of_the_same_block_stays_above_it() -> None:
    texts = [line(300, "Exhibit 2 is unaudited"), *table(314, ("Cash", "10", "20"), ("Debt", "30", "40"))]
    blocks = pymupdf.open(stream=pdf(texts), filetype="pdf")[0].get_text("dict")["blocks"]
    assert len(blocks) == 1
    text = plain(texts)
    assert text.index("Exhibit 2") < text.index("| Cash |")


def test_a_partly_drawn_grid_does_not_crush_its_rows() -> None:
    file = pymupdf.open()
    page = file.new_page()
    for x, y, text, *_ in table(300, ("Item", "2023", "2022"), ("Cash", "10", "20"), ("Debt", "30", "40"),
                               ("Land", "50", "60"), ("Gold", "70", "80")):
        page.insert_text((x, y), text)
    for top, bottom in ((289, 303), (303, 331), (331, 359)):
        for left, right in ((60, 390), (390, 425), (425, 460)):
            page.draw_rect(pymupdf.Rect(left, top, right, bottom))
    assert "| Cash | 10 | 20 |\n| Debt | 30 | 40 |" in parse_document(file.tobytes(), "a.pdf").plain


def test_two_columns_of_prose_are_no_table() -> None:
    texts = [line(120 + 14 * index, f"words of the {side} column, number {index}, in prose", x=x)
             for index in range(10) for side, x in (("left", 50.0), ("right", 330.0))]
    assert "|" not in parse_document(pdf(texts), "a.pdf").plain


def test_running_headers_and_page_numbers_are_classed() -> None:
    pages = [[line(30, "Annual report"), *PROSE, line(820, str(number))] for number in (1, 2, 3)]
    document = parse_document(pdf(*pages), "a.pdf")
    assert document.html.count('<p class="header"') == 3
    assert document.html.count('<p class="footer"') == 3


def test_a_running_title_below_the_margin_is_no_heading_and_in_no_table() -> None:
    rows = table(104, ("", "2023", "2022"), ("Cash", "10", "20"), ("Debt", "30", "40"))
    pages = [[line(90, "Notes (Continued)", 11, "hebo", x=300), *rows, *PROSE[4:]] for _ in range(4)]
    document = parse_document(pdf(*pages), "a.pdf")
    assert document.html.count('<p class="header"') == 4
    assert document.plain.startswith("Notes (Continued)\n\n|  | 2023 | 2022 |\n| --- |")
    assert "class=\"heading3\"" in parse_document(pdf(pages[0][:1] + PROSE), "a.pdf").html


def test_a_worker_reads_tables_without_the_models_of_page_layout() -> None:
    rows = table(104, ("", "2023", "2022"), ("Cash", "10", "20"), ("Debt", "30", "40"))
    code = ("import sys; from ragbed.documents import parse_document, pdf_layout; pdf_layout.skip_layout_models(); "
            "shown = parse_document(sys.stdin.buffer.read(), 'a.pdf').plain; "
            "print('onnxruntime' in sys.modules, '| Cash | 10 | 20 |' in shown)")
    done = subprocess.run([sys.executable, "-c", code], input=pdf(rows), capture_output=True, check=True)
    assert done.stdout == b"False True\n"
