"""Tables of documents: header, rows and cells, with their places in both renderings; CSV and Excel as documents."""
import io
import zipfile
from datetime import date, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl import Workbook

from ragbed.documents import Document, DocumentError, find_sources, parse_document
from ragbed.experiments.guests.formats.document_tables import find_tables


def page(body):
    return parse_document(f"<body><p>Text.</p>{body}<p>After.</p></body>".encode(), "page.html")


def texts(table):
    return [[cell.text for cell in row.cells] for row in table.rows]


def written(document, table):
    """What stands at each cell's place in the plain rendering; None where it stands nowhere."""
    return [[cell.plain and document.plain[slice(*cell.plain)] for cell in row.cells] for row in table.rows]


def test_a_table_has_its_caption_header_and_rows_and_each_cell_its_two_places():
    document = page("<h2>Sales</h2><table><thead><tr><th>Shop<th>Sold</thead>"
                    "<tr><td><b>R&amp;D</b> Oslo<td>3|4<tr><td>Bergen<td> 17 </table>")
    (table,) = find_tables(document)
    assert (table.document, table.caption, table.header, table.page) == (document.id, "Sales", ("Shop", "Sold"), None)
    assert texts(table) == [["R&D Oslo", "3|4"], ["Bergen", "17"]]
    assert written(document, table) == [["R&D Oslo", "3\\|4"], ["Bergen", "17"]]
    assert document.html[slice(*table.rows[0].cells[0].html)] == "<strong>R&amp;D</strong> Oslo"
    assert document.html[slice(*table.rows[1].cells[1].html)] == "17"
    assert document.plain[slice(*table.rows[1].plain)] == "| Bergen | 17 |"
    assert document.plain[slice(*table.plain)].startswith("| Shop | Sold |\n| --- |")
    assert document.html[slice(*table.html)].startswith("<table>\n<thead>")
    assert document.html[:table.html[1]].endswith("</table>")


def test_spanned_cells_stand_in_every_row_and_column_and_titles_above_each_other_are_joined():
    document = page("<table><caption>Results</caption><tr><th rowspan=2>Team<th colspan=2>2023</tr><tr><th>Won<th>Lost"
                    "</tr><tr><td rowspan=2>Ajax<td>3<td>1</tr><tr><td colspan=2>none</tr></table>")
    (table,) = find_tables(document)
    assert (table.caption, table.header) == ("Results", ("Team", "2023 Won", "2023 Lost"))
    assert texts(table) == [["Ajax", "3", "1"], ["Ajax", "none", "none"]]
    assert written(document, table) == [["Ajax", "3", "1"], ["Ajax", "none", None]]
    assert table.rows[0].cells[0].html == table.rows[1].cells[0].html
    assert table.rows[0].cells[0].plain != table.rows[1].cells[0].plain


def test_a_sign_in_a_cell_of_its_own_stands_with_its_number():
    document = page("<table><tr><td><td colspan=3>2022<tr><td>Cash<td>$<td>17<td>%<tr><td>Debt<td><td>2<td></table>")
    (table,) = find_tables(document)
    assert texts(table)[0] == ["Cash", "$17%"]
    assert written(document, table)[0] == ["Cash", "$17%"]
    assert document.html[slice(*table.rows[0].cells[1].html)] == "$</td>\n<td>17</td>\n<td>%"


@pytest.mark.parametrize("body", [
    "<table><tr><th>One</tr><tr><td>column</tr></table>", "<table><tr><th>one<th>row</tr></table>",
    "<table><tr><td>1<td>2</tr><tr><td>3<td>4</tr></table>",
    "<table><tr><th>a<th>b<tr><td><table><tr><td>1<td>2</table><td>c</table>"])
def test_tables_for_layout_are_left_out(body):
    assert find_tables(page(body)) == []


def test_equal_tables_have_each_their_own_place_and_an_indented_one_has_none_in_plain():
    table = "<table><tr><th>a<th>b<tr><td>1<td>2</table>"
    document = page(f"{table}<p>Between.</p>{table}<blockquote>{table}</blockquote>")
    first, second, third = find_tables(document)
    assert first.plain[1] < document.plain.index("Between.") < second.plain[0]
    assert (third.plain, third.rows[0].cells[1].plain) == (None, None)
    assert document.html[slice(*third.rows[0].cells[1].html)] == "2"


ODD = ["<td colspan=9999>", "<th rowspan=0>", "<td rowspan=7>", "<td colspan='x'>", "$", "17", "a|b", "a \\",
       "&lt;td&gt;", "\n", " ", "---", "<"]
TAGS = ["table", "tr", "td", "th", "p", "br", "b", "thead", "caption", "li", "ul", "h2", "div"]


@settings(max_examples=100)
@given(st.lists(st.sampled_from([*ODD, *(f"<{end}{tag}>" for tag in TAGS for end in ("", "/"))]), max_size=60))
def test_no_markup_makes_it_raise_and_every_place_holds_its_text(parts):
    soup = "<table><tr><th>x<th>y<tr>" + "".join(parts)
    find_tables(Document("id", "s", "t", soup, soup))
    document = page(soup)
    for table in find_tables(document):
        assert all(len(row.cells) == len(table.header) for row in table.rows)
        for cell in (cell for row in table.rows for cell in row.cells if cell.plain):
            assert document.plain[slice(*cell.plain)].replace("\\|", "|") == cell.text


@pytest.mark.parametrize("data", ["Fees of 2024\n\nTown;Fee\nEsk;1,5\nAyr;2,5\n", "# remark\nTown;Fee\nEsk;1,5\n"])
def test_a_title_above_the_values_does_not_decide_what_separates_them(data):
    assert "| Town | Fee |" in (plain := parse_document(data.encode(), "a.csv").plain)
    assert "| Esk | 1,5 |" in plain


@pytest.mark.parametrize(("name", "data"), [
    ("a.csv", "Städte;Höhe in m\nKöln;53\nAlpen, oben;1.200\n".encode("cp1252")),
    ("a.csv", '\ufeffStädte,Höhe in m\r\nKöln,53\r\n"Alpen, oben",1.200\r\n'.encode()),
    ("A.TSV", "Städte\tHöhe in m\nKöln\t53\n\nAlpen, oben\t1.200\n".encode("utf-16"))])
def test_separated_values_are_a_table_whatever_separates_them(name, data):
    document = parse_document(data, name)
    (table,) = find_tables(document)
    assert document.title == name
    assert table.header == ("Städte", "Höhe in m")
    assert texts(table) == written(document, table) == [["Köln", "53"], ["Alpen, oben", "1.200"]]


def workbook(change=lambda book: None):
    book = Workbook()
    sheet = book.active
    sheet.title = "Shops"
    for row in (["Our shops"], [], ["Town", "Opened", "Area", "Share"], ["Oslo", date(2019, 5, 1), 0.1 + 0.2, 0.125],
                ["Bergen", datetime(2020, 1, 1, 9, 30), 40.0, True], [None, None, "=C4+C5"]):
        sheet.append(row)
    sheet["D4"].number_format = "0.0%"
    change(book)
    book.save(data := io.BytesIO())
    return data.getvalue()


def hide(book):
    book.create_sheet("Secret").append(["hidden", "words"])
    book["Secret"].sheet_state = "hidden"


def test_a_workbook_is_its_sheets_with_their_values_as_they_are_seen():
    document = parse_document(workbook(hide), "shops.xlsx")
    (table,) = find_tables(document)
    assert document.plain.startswith("## Shops\n\nOur shops\n\n| Town |")
    assert (table.caption, table.header) == ("Shops", ("Town", "Opened", "Area", "Share"))
    assert texts(table) == [["Oslo", "2019-05-01", "0.3", "12.5%"], ["Bergen", "2020-01-01 9:30:00", "40", "TRUE"]]
    assert ("Secret" in document.plain, document.hidden) == (False, 11)


@pytest.mark.parametrize(("name", "data", "reason"), [
    ("a.xlsx", b"\xd0\xcf\x11\xe0", "an encrypted or old Office file: save it as .xlsx without a password"),
    ("a.xlsx", b"PK\x03\x04", "not an Office file, or a damaged one"),
    ("a.xlsx", lambda: workbook()[:-400], "not an Office file, or a damaged one"),
    pytest.param("a.csv", b"a,b\n" * 500_001, "more than the limit of 1,000,000 cells", marks=pytest.mark.slow),
    ("a.csv", b'a,"' + b"x" * 200_000, "cannot be read as a table: field larger than field limit (131072)"),
    ("a.csv", b"\x00\x01\x02" * 50, "binary data, not text")])
def test_files_that_are_no_table_are_refused_in_one_line(name, data, reason):
    with pytest.raises(DocumentError) as caught:
        parse_document(data() if callable(data) else data, name)
    assert caught.value.reason == reason


@pytest.mark.parametrize("part", ["xl/worksheets/sheet1.xml", "xl/workbook.xml", "xl/styles.xml"])
@pytest.mark.parametrize("content", [b"", b"<x", b"<x/>", b'<!DOCTYPE x [<!ENTITY a SYSTEM "/etc/passwd">]><x>&a;</x>'])
def test_a_workbook_with_a_damaged_part_is_named(part, content):
    with zipfile.ZipFile(io.BytesIO(workbook())) as old, zipfile.ZipFile(data := io.BytesIO(), "w") as new:
        for entry in old.namelist():
            new.writestr(entry, content if entry == part else old.read(entry))
    with pytest.raises(DocumentError) as caught:
        parse_document(data.getvalue(), "a.xlsx")
    assert "\n" not in str(caught.value)


def test_tables_are_found_in_a_folder(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    (tmp_path / "b.xlsx").write_bytes(workbook())
    assert [source.relative for source in find_sources([tmp_path])] == ["a.csv", "b.xlsx"]
