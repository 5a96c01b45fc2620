"""Properties that hold for every chunker, format and file."""
import pytest
from growth import grows_linearly
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from ragbed.documents import (
    FORMATS,
    Chunk,
    Chunker,
    ChunkerSettings,
    CrestSizes,
    Document,
    Fixed,
    Format,
    Page,
    Sections,
    parse_document,
)
from ragbed.documents.chunkers import Recursive, Sentences

CHUNKERS: list[Chunker] = [
    CrestSizes(), CrestSizes(smallest=5, largest=40, seed=3), Fixed(), Fixed(size=50), Fixed(size=200, overlap=60),
    Fixed(size=7, overlap=6), Sections(), Sections(target=60, largest=150), Sections(target=10, largest=10),
    Recursive(), Recursive(size=60), Recursive(size=40, overlap=25), Sentences(size=80), Sentences(size=50, overlap=30),
    Recursive(size=7, overlap=6), Sentences(size=9)]


def document(html: str, plain: str, id: str = "d", pages: tuple[Page, ...] = ()) -> Document:
    return Document(id, "d.html", "d", html, plain, pages)


def checked(chunker: Chunker, source: Document, format: Format) -> list[Chunk]:
    """The chunks, after what must hold for all of them."""
    text = source.text(format)
    chunks = chunker.chunk(source, format)
    assert [chunk.content for chunk in chunks] == [chunk.prefix + text[chunk.start:chunk.end] for chunk in chunks]
    assert all(chunk.start < chunk.end for chunk in chunks)
    if text.strip():
        assert all(text[chunk.start:chunk.end].strip() for chunk in chunks)
    if getattr(chunker, "overlap", 0) == 0:
        assert "".join(text[chunk.start:chunk.end] for chunk in chunks) == text
    covered = 0
    for chunk in chunks:
        assert chunk.start <= covered < chunk.end
        covered = chunk.end
    assert covered == len(text)
    assert [chunk.start for chunk in chunks] == sorted({chunk.start for chunk in chunks})
    assert len({chunk.id for chunk in chunks}) == len(chunks)
    return chunks


PIECES = ["<p>", "</p>\n", "<table>\n", "<tr>\n", "<td>", "</td>", "</tr>\n", "</table>\n", "<h2>", "</h2>\n",
          "&amp;", "<br>", "\n\n", "\n", " ", "# Head\n\n", "| a | b |\n", "| --- | --- |\n", "한국어 문장이다. ",
          "word. ", "<", ">", "&", "x" * 90, "</div>", '<td colspan="2">', "   \n \n"]


@settings(max_examples=200)
@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join), st.sampled_from(CHUNKERS), st.sampled_from(FORMATS))
def test_any_text_is_covered_by_chunks_in_order(text: str, chunker: Chunker, format: Format) -> None:
    checked(chunker, document(text, text), format)


def test_crest_sizes_are_between_the_limits_and_depend_on_the_id_and_the_seed_only() -> None:
    source = document("", "가나다라 " * 40_000)
    chunks = checked(CrestSizes(), source, "plain")
    sizes = [len(chunk.content) for chunk in chunks]
    assert all(2_048 <= size <= 16_384 for size in sizes[:-1])
    assert len(set(sizes)) > 10
    assert CrestSizes().chunk(document("", "x" * 200_000), "plain")[0].end == chunks[0].end
    assert CrestSizes(seed=1).chunk(source, "plain")[0].end != chunks[0].end
    assert CrestSizes().chunk(document("", source.plain, "other"), "plain")[0].end != chunks[0].end
    assert [chunk.end for chunk in chunks[:3]] == [15513, 17854, 25547]


def test_fixed_chunks_overlap_by_what_was_asked() -> None:
    chunks = checked(Fixed(size=10, overlap=4), document("", "abcdefghijklmnopqrst"), "plain")
    assert [chunk.content for chunk in chunks] == ["abcdefghij", "ghijklmnop", "mnopqrst"]


@given(st.lists(st.sampled_from(["<p>", "</p>", '<td colspan="2">', "&amp;", "&lt;", "word ", "한글 "])).map("".join),
       st.integers(1, 30), st.integers(0, 29))
def test_fixed_and_section_chunks_never_cut_a_tag_or_an_entity(text: str, size: int, overlap: int) -> None:
    few = min(overlap, size - 1)
    for chunker in (Fixed(size=size, overlap=few), Sections(target=size, largest=size),
                    Recursive(size=size, overlap=few), Sentences(size=size, overlap=few)):
        for chunk in chunker.chunk(document(text, ""), "html"):
            bare = chunk.content
            assert bare.count("<") == bare.count(">")
            assert bare.rfind("<") <= bare.rfind(">")
            assert bare.count("&") == bare.count(";")


PAGE = ("<h1>A</h1><p>" + "Alpha beta. " * 8 + "</p><h2>B</h2><p>short</p><h2>C</h2><p>" + "Gamma delta. " * 8 + "</p>")


@pytest.mark.parametrize("format", FORMATS)
def test_sections_begin_at_headings_and_small_ones_are_merged(format: Format) -> None:
    source = parse_document(PAGE.encode(), "a.html")
    chunks = checked(Sections(target=150, largest=300), source, format)
    marks = {"html": ("<h1>A", "<h2>C"), "plain": ("# A", "## C")}[format]
    assert [chunk.content.startswith(mark) for chunk, mark in zip(chunks, marks, strict=True)] == [True, True]
    assert "short" in chunks[0].content


@pytest.mark.parametrize("format", FORMATS)
def test_a_large_table_is_split_by_rows_with_its_header_repeated(format: Format) -> None:
    page = ("<h2>Sales</h2><p>In millions</p><table><tr><th>Year</th><th>Total</th></tr>"
            + "".join(f"<tr><td>{year}</td><td>{year * 3}</td></tr>" for year in range(1950, 2020))
            + "</table><p>End.</p>")
    source = parse_document(page.encode(), "a.html")
    chunks = checked(Sections(target=200, largest=500), source, format)
    header = {"html": "<table>\n<tr>\n<th>Year</th>\n<th>Total</th>\n</tr>\n",
              "plain": "| Year | Total |\n| --- | --- |\n"}[format]
    assert len(chunks) > 2
    assert [chunk.prefix for chunk in chunks] == ["", *[header] * (len(chunks) - 1)]
    assert "End." in chunks[-1].content
    assert all(len(chunk.content) <= 500 for chunk in chunks)
    for year in range(1950, 2020):
        (holder,) = [chunk for chunk in chunks if str(year * 3) in chunk.content]
        assert str(year) in holder.content
        assert "Year" in holder.content


@pytest.mark.parametrize("format", FORMATS)
def test_no_row_of_data_is_repeated_as_a_header(format: Format) -> None:
    rows = "".join(f"<tr><td>Item {number}</td><td>{number * 7}</td></tr>" for number in range(100, 160))
    chunks = checked(Sections(target=200, largest=400), parse_document(f"<table>{rows}".encode(), "a.html"), format)
    header = {"html": "<table>\n", "plain": "|  |  |\n| --- | --- |\n"}[format]
    assert {chunk.prefix for chunk in chunks} == {"", header}
    assert sum("Item 100" in chunk.content for chunk in chunks) == 1


@pytest.mark.parametrize("format", FORMATS)
def test_a_table_that_fits_stays_whole_with_its_heading(format: Format) -> None:
    rows = "".join(f"<tr><td>item {number}</td><td>{number}</td></tr>" for number in range(20))
    page = "<p>" + "Before it. " * 30 + f"</p><h2>Costs</h2><table>{rows}</table><p>" + "After it. " * 30 + "</p>"
    source = parse_document(page.encode(), "a.html")
    chunks = checked(Sections(target=300, largest=1_200), source, format)
    holders = [chunk for chunk in chunks if "item" in chunk.content]
    assert len(holders) == 1
    assert "Costs" in holders[0].content


def test_long_prose_is_split_at_sentences() -> None:
    source = document("", "Eins zwei drei. " * 50 + "\n\n" + "한국어 문장이 여기에 있다. " * 50)
    chunks = checked(Sections(target=100, largest=200), source, "plain")
    assert all(chunk.content.rstrip().endswith(".") for chunk in chunks)


def test_pages_reach_the_chunks() -> None:
    pages = (Page(1, 0, 0), Page(2, 10, 10), Page(3, 10, 10), Page(4, 25, 25))
    source = document("x" * 40, "x" * 40, pages=pages)
    chunks = Fixed(size=20).chunk(source, "plain")
    assert [chunk.pages for chunk in chunks] == [(1, 3), (3, 4)]


@pytest.mark.slow
@pytest.mark.parametrize("chunker", [CrestSizes(), Fixed(), Sections(), Recursive(), Sentences()])
def test_the_time_grows_with_the_number_of_characters(chunker) -> None:
    row = "<tr>\n<td>abc</td>\n<td>12,345</td>\n</tr>\n"

    def cut(n: int) -> None:
        chunker.chunk(document("<h2>T</h2>\n<table>\n" + row * n + "</table>\n" + "<p>prose" * 4 * n, ""), "html")
        assert len(chunker.chunk(document(" " * 100 * n, ""), "html")) == 1

    grows_linearly(cut, 5_000)


def test_a_typo_in_the_settings_lists_the_valid_kinds() -> None:
    adapter: TypeAdapter[CrestSizes | Fixed | Sections] = TypeAdapter(ChunkerSettings)
    assert adapter.validate_python({"kind": "fixed", "size": 10}) == Fixed(size=10)
    with pytest.raises(ValidationError, match="'crest', 'fixed', 'recursive', 'sections', 'sentences'"):
        adapter.validate_python({"kind": "section"})
    for bad in ({"kind": "fixed", "size": 10, "overlap": 10}, {"kind": "crest", "smallest": 9, "largest": 8},
                {"kind": "sections", "target": 9, "largest": 8}, {"kind": "fixed", "sise": 1}):
        with pytest.raises(ValidationError):
            adapter.validate_python(bad)


def contents(chunker: Chunker, text: str) -> list[str]:
    return [chunk.content for chunk in checked(chunker, document("", text), "plain")]


def test_recursive_chunks_break_at_the_largest_separator_that_leaves_them_small_enough() -> None:
    text = "One two.\n\nThree four five six.\nSeven.\n\nEight."
    assert contents(Recursive(size=45), text) == [text]
    assert contents(Recursive(size=30), text) == ["One two.\n\n", "Three four five six.\nSeven.\n\n", "Eight."]
    assert contents(Recursive(size=21), text) == ["One two.\n\n", "Three four five six.\n", "Seven.\n\n", "Eight."]
    assert contents(Recursive(size=10), "abcdefghijklmno") == ["abcdefghij", "klmno"]


def test_recursive_chunks_overlap_by_whole_pieces() -> None:
    assert contents(Recursive(size=11, overlap=6, separators=(" ",)), "aa bbb cc dddd ee f") == [
        "aa bbb cc ", "cc dddd ee ", "ee f"]


def test_sentences_stay_whole_and_are_packed() -> None:
    text = "It is 3.5 m, e.g. here. Is it? Yes! \"So.\" The end. 그렇다. 아니다。끝"
    assert contents(Sentences(size=24), text) == [
        "It is 3.5 m, e.g. here. ", "Is it? Yes! \"So.\" ", "The end. 그렇다. 아니다。끝"]
    assert contents(Sentences(size=16, overlap=8), "A b. C d e. F g. H i j.") == [
        "A b. C d e. ", "C d e. F g. ", "F g. H i j."]
    assert contents(Sentences(size=12), "One very long sentence. Short.") == [
        "One very ", "long ", "sentence. ", "Short."]
