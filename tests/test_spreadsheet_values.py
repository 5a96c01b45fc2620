"""Excel and CSV: values as the sheet shows them, merged cells, and cells that are far apart."""

import pytest
from each_case import each
from openpyxl import Workbook
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.chart import BarChart, Reference
from openpyxl.utils.datetime import CALENDAR_MAC_1904

from ragbed.documents import DocumentError, parse_document
from ragbed.experiments.guests.formats.document_tables import find_tables
from ragbed.experiments.guests.office.number_formats import format_number, format_text
from ragbed.retrieval.filters.metadata import read_metadata
from tests.test_office import saved, with_part

EURO = '_-* #,##0.00\\ "€"_-;\\-* #,##0.00\\ "€"_-;_-* "-"??\\ "€"_-;_-@_-'


@each(("value", "code", "shown"), [
    (2494, "00000", "02494"), (42, "General", "42"), (42, "@", "42"), (0.1 + 0.2, "General", "0.3"),
    (0.125, "0.0%", "12.5%"), (0.12, "0 %", "12 %"), (1234567.891, "#,##0.00", "1,234,567.89"),
    (1.005, "0.00", "1.01"), (2.5, "0", "3"), (-0.4, "0", "0"), (5, "0.##", "5."), (0.5, "#.00", ".50"),
    (12, "0000.000", "0012.000"), (1234567, '0.0,,"M"', "1.2M"), (1234567, "#,##0,", "1,235"),
    (1234.5, '[$€-407] #,##0.00', "€ 1,234.50"), (1234.5, "[$$-409]#,##0.00", "$1,234.50"),
    (1234.5, EURO, "1,234.50 €"), (-1234.5, EURO, "-1,234.50 €"), (0, EURO, "- €"),
    (-1234.5, "#,##0.00_);[Red](#,##0.00)", "(1,234.50)"), (-7, "[Red]0", "-7"), (12, "+0;-0;0", "+12"),
    (0, '0;-0;"none"', "none"), (7, ";;;", ""), (12, '0.0"kg"', "12.0kg"), (12, "0.0\\ \\k\\g", "12.0 kg"),
    (150, '[>=100]"high" 0;"low" 0', "high 150"), (50, '[>=100]"high" 0;"low" 0', "low 50"),
    (123456789, "000-00-0000", "123-45-6789"), (5551234567, "(###) ###-####", "(555) 123-4567"),
    (12345.678, "0.00E+00", "1.23E+04"), (0.00012, "0.0E+0", "1.2E-4"), (9.999, "0.00E+00", "1.00E+01"),
    (12345, "##0.0E+0", "12.3E+3"), (1.5, "# ?/?", "1 1/2"), (0.25, "?/?", "1/4"), (2.375, "# ?/8", "2 3/8"),
    (3, "# ?/?", "3"), (45365, "yyyy-mm-dd", "2024-03-14"), (45365, "dd.mm.yyyy", "14.03.2024"),
    (45365, "mm-dd-yy", "2024-03-14"), (45365, "dddd, mmmm d, yyyy", "Thursday, March 14, 2024"),
    (45365, "[$-409]d-mmm-yy", "14-Mar-24"), (45365.75, "h:mm AM/PM", "6:00 PM"), (1.5, "[h]:mm", "36:00"),
    (45365 + 9.5 / 24, "d/m/yyyy h:mm", "14/3/2024 9:30"), (0.1234567, "mm:ss.0", "57:46.7"),
    (60, "d/m/yyyy", "29/2/1900"), (1, "d/m/yyyy", "1/1/1900"), (-1, "yyyy", "-1"), (0.5, "hh:mm:ss", "12:00:00")])
def test_number_formats(value, code, shown):
    assert format_number(value, code) == shown


def test_days_may_be_counted_from_1904_and_texts_have_formats_too():
    assert format_number(1462, "yyyy-mm-dd", year_1904=True) == "1908-01-02"
    assert (format_text("Arlen", '@" mill"'), format_text("Arlen", "0.00")) == ("Arlen mill", "Arlen")


def parsed(book):
    return parse_document(saved(book), "a.xlsx")


def test_a_cell_is_what_the_sheet_shows():
    book = Workbook()
    sheet = book.active
    book.epoch = CALENDAR_MAC_1904
    raised = TextBlock(InlineFont(vertAlign="superscript"), "3")
    for cell, value, code in (
            ("A1", 2494, "00000"), ("B1", CellRichText("10", raised, " N"), "General"), ("C1", True, "0"),
            ("D1", 1462, "d mmm yyyy"), ("E1", "_x000D_a", "General"), ("F1", "#N/A", "General")):
        sheet[cell], sheet[cell].number_format = value, code
    assert parsed(book).plain == (
        "## Sheet\n\n|  |  |  |  |  |  |\n| --- | --- | --- | --- | --- | --- |\n"
        "| 02494 | 10^3 N | TRUE | 2 Jan 1908 | a | #N/A |\n\n")


def test_hidden_rows_columns_and_values_are_left_out_and_counted(monkeypatch):
    book = Workbook()
    sheet = book.active
    for row in (["Town", "Secret", "Area"], ["Arlen", "abc", 7], ["Brook", "def", 8], ["Cole", "ghi", 9]):
        sheet.append(row)
    sheet.column_dimensions["B"].hidden = True
    sheet.row_dimensions[3].hidden = True
    sheet["C4"].number_format = ";;;"
    document = parsed(book)
    assert document.plain == "## Sheet\n\n| Town | Area |\n| --- | --- |\n| Arlen | 7 |\n| Cole |  |\n\n"
    assert document.hidden == len("Secret" + "abc" + "Brook" + "def" + "8" + "ghi" + "9")
    monkeypatch.setenv("RAGBED_KEEP_HIDDEN", "1")
    assert "| Brook | def | 8 |\n| Cole | ghi | 9 |" in parsed(book).plain


def test_cells_that_are_far_apart_are_read():
    book = Workbook()
    sheet = book.active
    sheet["A1"], sheet["XFD5"], sheet["A1048576"] = "first", "far", "last"
    assert parsed(book).plain == "## Sheet\n\nfirst\n\nfar\n\nlast\n\n"


@pytest.mark.parametrize("row", ['<row r="{0}"/>', '<row r="{0}"></row>', '<row r="{0}"><c r="A{0}" s="0"/></row>'])
def test_rows_without_values_are_passed_over(row):
    rows = "".join(map(row.format, range(1, 100_000))) + '<row r="1000001"><c r="B1000001"><v>7</v></c></row>'
    content = ('<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>' + rows
               + "</sheetData></worksheet>")
    data = with_part(saved(Workbook()), "xl/worksheets/sheet1.xml", content.encode())
    assert parse_document(data, "a.xlsx").plain == "## Sheet\n\n7\n\n"


def test_a_merged_header_is_over_all_its_columns():
    book = Workbook()
    sheet = book.active
    for row in (["Town", 2023, None, 2024], [None, "Flour", "Bread", "Flour", "Bread"], ["Arlen", 1, 2, 3, 4],
                ["Brook", 5, 6, 7, 8], [None, 9, 10, 11, 12]):
        sheet.append(row)
    for span in ("A1:A2", "B1:C1", "D1:E1", "A4:A5"):
        sheet.merge_cells(span)
    sheet.merged_cells.add("G1:XFD1048576")
    document = parsed(book)
    (table,) = find_tables(document)
    assert table.header == ("Town", "2023 Flour", "2023 Bread", "2024 Flour", "2024 Bread")
    assert [[cell.text for cell in row.cells] for row in table.rows][1:] == [
        ["Brook", "5", "6", "7", "8"], ["Brook", "9", "10", "11", "12"]]
    assert '<th rowspan="2">Town</th>\n<th colspan="2">2023</th>' in document.html


def test_charts_of_a_sheet_are_tables():
    book = Workbook()
    sheet = book.active
    for row in (["Town", "Flour"], ["Arlen", 7], ["Brook", 8]):
        sheet.append(row)
    chart = BarChart()
    chart.title = "Flour by town"
    chart.add_data(Reference(sheet, min_col=2, min_row=1, max_row=3), titles_from_data=True)
    sheet.add_chart(chart)
    assert parsed(book).plain.endswith("| Brook | 8 |\n\nFlour by town\n\n")


def test_a_table_of_cells_too_far_apart_is_refused():
    rows = "".join(f'<row r="{at}"><c r="{letter}{at}"><v>{at}</v></c><c r="A{at}"><v>1</v></c></row>'
                   for at, letter in ((at, "".join(chr(65 + at // power % 26) for power in (676, 26, 1)))
                                      for at in range(700, 2_300)))
    content = ('<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>' + rows
               + "</sheetData></worksheet>")
    with pytest.raises(DocumentError, match="a table of 1,600 rows and 1,601 columns"):
        parse_document(with_part(saved(Workbook()), "xl/worksheets/sheet1.xml", content.encode()), "a.xlsx")


@pytest.mark.parametrize("data", [b"sep=;\nTown;Area\nArlen;3,5\n", b'"sep=;"\r\nTown;Area\r\nArlen;3,5\r\n',
                                  "SEP=\t\nTown\tArea\nArlen\t3,5\n".encode("utf-16")])
def test_a_first_line_that_names_the_delimiter_is_not_the_header(data):
    assert parse_document(data, "a.csv").plain == "| Town | Area |\n| --- | --- |\n| Arlen | 3,5 |\n\n"


SHEET = 'source;Straße;year\r\nä.txt;"Köln; West";2024\r\nb.txt;;02023\r\n;;\r\n'


@pytest.mark.parametrize(("name", "data"), [
    ("m.csv", SHEET.encode()), ("m.csv", SHEET.encode("utf-8-sig")), ("m.csv", SHEET.encode("cp1252")),
    ("m.csv", SHEET.encode("utf-16")), ("m.tsv", SHEET.replace(";", "\t").replace("Köln\t", "Köln;").encode("utf-16")),
    ("m.csv", f"sep=;\r\n{SHEET}".encode("cp1252")), ("m.csv", SHEET.replace("\r\n", ";;\r\n").encode())])
def test_metadata_is_read_as_spreadsheets_save_it(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    assert read_metadata(tmp_path / name) == {"ä.txt": {"Straße": "Köln; West", "year": "2024"},
                                              "b.txt": {"year": "02023"}}


def test_a_number_of_metadata_that_is_too_long_to_be_one_is_text(tmp_path):
    (tmp_path / "about.csv").write_text(f"source,code\na.txt,{'9' * 5_000}\n")
    assert read_metadata(tmp_path / "about.csv") == {"a.txt": {"code": "9" * 5_000}}
