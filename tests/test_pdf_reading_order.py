"""PDF pages are read as people read them, whatever the order and way in which the page draws its text."""
from itertools import chain

import pymupdf
import pytest

from ragbed.documents import Document, parse_document

Text = tuple[float, float, str, float]
LEFT = ["The ferry crosses the sound in winter", "and keeps a record of its delays, of",
        "which there are many, since ice closes", "the port for weeks in every year that", "is cold enough."]
RIGHT = ["Bridges were built by engineers who", "wanted to carry trains over the river",
         "without any fear of the floods that",
         "come in spring, and of the storms that", "come in autumn."]


def lines(y: float, *texts: str, x: float = 60, size: float = 11) -> list[Text]:
    return [(x, y + 14 * index, text, size) for index, text in enumerate(texts)]


def pdf(*pages: list[Text]) -> pymupdf.Document:
    file = pymupdf.open()
    for texts in pages:
        page = file.new_page()
        for x, y, text, size in texts:
            page.insert_text((x, y), text, fontsize=size)
    return file


def read(*pages: list[Text]) -> Document:
    return parse_document(pdf(*pages).tobytes(), "a.pdf")


def table(y: float, *rows: tuple[str, ...], x: float = 60) -> list[Text]:
    return [(x + (0, 120, 190)[column], y + 14 * index, cell, 11)
            for index, row in enumerate(rows) for column, cell in enumerate(row)]


COLUMNS = [*lines(120, *LEFT), *lines(120, *RIGHT, x=320)]
IN_ORDER = f"# Ferries and bridges\n\n{' '.join(LEFT)}\n\n{' '.join(RIGHT)}\n\n"


@pytest.mark.parametrize("drawn", [
    COLUMNS, COLUMNS[::-1], [*COLUMNS[5:], *COLUMNS[:5]], list(chain(*zip(COLUMNS[:5], COLUMNS[5:], strict=True)))],
    ids=["by columns", "from the bottom up", "right column first", "by rows"])
def test_columns_are_read_by_place_and_a_title_drawn_last_comes_first(drawn: list[Text]) -> None:
    document = read([*drawn, (150, 80, "Ferries and bridges", 18)])
    assert (document.title, document.plain) == ("Ferries and bridges", IN_ORDER)


@pytest.mark.parametrize("shifts", [[(0, 0), (.3, 0), (.6, 0)], [(0, 0), (1.5, 1.5)], [(0, 0), (0, .4), (.4, .4)]])
def test_text_that_is_drawn_several_times_is_read_once(shifts: list[tuple[float, float]]) -> None:
    title = [(150 + x, 80 + y, "Ferries and bridges", 18) for x, y in shifts]
    assert read([*title, *COLUMNS]).plain == IN_ORDER


@pytest.mark.parametrize("angle", [30, 45, 90, 180, 315])
@pytest.mark.parametrize("grey", [0.0, 0.8])
def test_a_rotated_watermark_is_neither_title_nor_heading_and_interrupts_nothing(angle: int, grey: float) -> None:
    file = pdf(COLUMNS)
    file[0].insert_text((250, 400), "DRAFT", fontsize=60, color=(grey,) * 3,
                        morph=(pymupdf.Point(250, 400), pymupdf.Matrix(angle)))
    document = parse_document(file.tobytes(), "a.pdf")
    assert document.title == "a.pdf"
    assert document.plain == f"{' '.join(LEFT)}\n\n{' '.join(RIGHT)}\n\nDRAFT\n\n"


def test_large_type_under_the_text_is_no_heading() -> None:
    document = read([(60, 160, "DRAFT", 90), *COLUMNS])
    assert (document.title, document.plain[-7:]) == ("a.pdf", "DRAFT\n\n")


@pytest.mark.parametrize("turn", [90, 180, 270])
def test_a_landscape_page_is_content(turn: int) -> None:
    rows = [("Item", "2023", "2022"), ("Cash", "1,100", "1,200"), ("Debt", "2,100", "2,200")]
    landscape = pymupdf.open()
    page = landscape.new_page(width=842, height=595)
    for x, y, text, size in [*table(120, *rows), *lines(200, "The figures are particu-", "larly good.")]:
        page.insert_text((x, y), text, fontsize=size)
    file = pymupdf.open()
    file.new_page().show_pdf_page(pymupdf.Rect(0, 0, 595, 842), landscape, rotate=turn)
    assert parse_document(file.tobytes(), "a.pdf").plain == (
        "| Item | 2023 | 2022 |\n| --- | --- | --- |\n| Cash | 1,100 | 1,200 |\n| Debt | 2,100 | 2,200 |\n\n"
        "The figures are particularly good.\n\n")


@pytest.mark.parametrize(("prose", "beside"), [(60, 330), (320, 60)])
def test_a_table_beside_prose_takes_none_of_it(prose: float, beside: float) -> None:
    rows = [("Item", "2023", "2022"), *((f"Item {index}", f"{index},100", f"{index},200") for index in range(1, 5))]
    text = read([*lines(120, *LEFT, x=prose), *table(120, *rows, x=beside)]).plain
    assert " ".join(LEFT) in text
    assert "| Item | 2023 | 2022 |\n| --- | --- | --- |\n| Item 1 | 1,100 | 1,200 |\n" in text


def test_tables_side_by_side_over_two_columns_are_two_tables() -> None:
    left = table(120, ("Town", "2023", "2022"), ("Oslo", "1,100", "1,200"), ("Bergen", "2,100", "2,200"))
    right = table(120, ("Fruit", "2021", "2020"), ("Apple", "3,100", "3,200"), ("Plum", "4,100", "4,200"), x=320)
    drawn = [*chain(*zip(left, right, strict=True)), *lines(180, *LEFT), *lines(180, *RIGHT, x=320)]
    assert read(drawn).plain == (
        "| Town | 2023 | 2022 |\n| --- | --- | --- |\n| Oslo | 1,100 | 1,200 |\n| Bergen | 2,100 | 2,200 |\n\n"
        f"{' '.join(LEFT)}\n\n"
        "| Fruit | 2021 | 2020 |\n| --- | --- | --- |\n| Apple | 3,100 | 3,200 |\n| Plum | 4,100 | 4,200 |\n\n"
        f"{' '.join(RIGHT)}\n\n")


@pytest.mark.parametrize("drawn", ["in order", "marks last", "marks first"])
def test_raised_and_lowered_text_reads_as_in_html(drawn: str) -> None:
    texts: list[Text] = []
    for y, parts in ((100, (("The force is 10", 0), ("3", 4), (" N; see the note", 0), ("4", 4), (" now.", 0))),
                     (130, (("About 10", 0), ("-3", 4), (" m of H", 0), ("2", -2), ("O on the 1", 0), ("st", 4),
                        (" of May", 0)))):
        x = 60.0
        for text, rise in parts:
            size = 7 if rise else 11
            texts.append((x, y - rise, text, size))
            x += pymupdf.get_text_length(text, fontsize=size)
    order = {"in order": 0, "marks last": -1, "marks first": 1}[drawn]
    document = read(sorted(texts, key=lambda text: order * text[3]))
    assert document.plain == "The force is 10^3 N; see the note^4 now.\n\nAbout 10^-3 m of H2O on the 1st of May\n\n"
    assert "10<sup>3</sup> N; see the note<sup>4</sup> now." in document.html
    assert "10<sup>-3</sup> m of H<sub>2</sub>O on the 1st" in document.html


def test_the_mark_of_a_footnote_leaves_a_number_a_number() -> None:
    rows = table(120, ("Item", "2023", "2022"), ("Cash", "1,100", "1,200"), ("Debt", "2,100", "2,200"))
    assert "| Cash | 1,100^(1) | 1,200 |" in read([*rows, (180 + 27.6, 130, "(1)", 6)]).plain


@pytest.mark.parametrize(("broken", "whole"), [
    (["a particu-", "larly odd well-", "known thing"], "a particularly odd well-known thing"),
    (["from 2019-", "2020, on pages 12-", "14, for a 24-", "month term of 1990-", "and 2000-models"],
     "from 2019-2020, on pages 12-14, for a 24-month term of 1990- and 2000-models"),
    (["we coop-", "erate; co-op and cooperate"], "we cooperate; co-op and cooperate"),
    (["no e-", "mail; the on-", "going work is on-going"], "no e-mail; the on-going work is on-going"),
    (["state-of-the-", "art GPT-", "4 and pre-", "and post-war"], "state-of-the-art GPT-4 and pre- and post-war"),
])
def test_words_that_a_line_divides_are_joined_and_compounds_keep_their_hyphen(broken: list[str], whole: str) -> None:
    assert read(lines(120, *broken)).plain == f"{whole}\n\n"


def test_words_are_joined_across_columns_and_pages() -> None:
    left = [*LEFT[:3], "the port for weeks, which is particu-"]
    right = ["larly cold in January, and it opens as", "soon as the ice melts in the spring of",
             "the year, by a decree of the govern-"]
    text = read([*lines(120, *left), *lines(120, *right, x=320), (60, 700, "A footnote.", 11)],
                lines(120, "ment of the town.")).plain
    assert "weeks, which is particularly\n" in text
    assert "decree of the government\n" in text


HEADER = "| Part | Price | Stock |\n| --- | --- | --- |\n"
PARTS = [(f"Part {index}", f"{index},100", f"{index},200") for index in range(6)]


@pytest.mark.parametrize("repeated", [True, False])
def test_a_table_that_goes_on_over_pages_has_its_header_on_each(repeated: bool) -> None:
    head = ("Part", "Price", "Stock")
    again = [head] if repeated else []
    text = read([*lines(100, *LEFT), *table(600, head, *PARTS[:2])], table(80, *again, *PARTS[2:4]),
                [*table(80, *again, *PARTS[4:]), *lines(200, *RIGHT)]).plain
    rows = [f"| Part {index} | {index},100 | {index},200 |\n" for index in range(6)]
    for first in (0, 2, 4):
        assert HEADER + rows[first] + rows[first + 1] + "\n" in text
    other = read(table(600, head, *PARTS[:2]), table(80, ("Name", "2021", "2020"), *PARTS[2:4])).plain
    assert "| Name | 2021 | 2020 |\n| --- |" in other


def test_a_drawn_table_that_goes_on_over_the_page_has_its_header_again() -> None:
    file = pdf([], [])
    rows = [("Colour", "Fruit"), ("red", "apple"), ("yellow", "lemon"), ("green", "lime"), ("blue", "plum")]
    for page, top, part in ((file[0], 700, rows[:3]), (file[1], 60, rows[3:])):
        for index, row in enumerate(part):
            for column, cell in enumerate(row):
                x, y = 60 + 140 * column, top + 20 * index
                page.draw_rect(pymupdf.Rect(x, y, x + 140, y + 20))
                page.insert_text((x + 4, y + 14), cell)
    assert parse_document(file.tobytes(), "a.pdf").plain == (
        "| Colour | Fruit |\n| --- | --- |\n| red | apple |\n| yellow | lemon |\n\n"
        "| Colour | Fruit |\n| --- | --- |\n| green | lime |\n| blue | plum |\n\n")


def test_scanned_pages_are_named_and_empty_ones_are_not() -> None:
    footers = [[(300, 825, f"Page {number}", 9)] for number in range(1, 6)]
    file = pdf([*lines(100, *LEFT), *footers[0]], footers[1], [*lines(100, *RIGHT), *footers[2]], *footers[3:])
    picture = pymupdf.Pixmap(pymupdf.csRGB, pymupdf.IRect(0, 0, 8, 8), False)
    for index in (1, 4):
        file[index].insert_image(file[index].rect, pixmap=picture)
    assert parse_document(file.tobytes(), "a.pdf").unread_pages == (2, 5)
