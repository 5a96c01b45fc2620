"""Parent sections: what small chunks are widened to, and what never happens to them."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragbed.documents import Chunk, Document, Fixed, Page, Sections, parse_document
from ragbed.experiments.guests.more_retrievers import Expanded
from ragbed.experiments.guests.more_retrievers.expanded import ExpandedRetriever, nested_sections
from ragbed.retrieval import Hit

GUIDE = ("# Reefs\n\nCrabs live here.\n\n## North\n\nIt is cold. Few swim.\n\n## South\n\nIt is warm.\n\n"
         "# Bells\n\nThey ring.\n")
TABLE = "| Year | Ships |\n| --- | --- |\n" + "".join(f"| {year} | {year % 97} |\n" for year in range(1900, 1960))


def document(plain, name="guide", pages=()):
    return Document(name, f"{name}.txt", name, "", plain, tuple(Page(number, 0, at) for number, at in pages))


def at(held, words, prefix=""):
    """The chunk of these words."""
    start = held.plain.index(words)
    return Chunk.of(held, "plain", start, start + len(words), prefix)


class Documents:
    """A collection of documents, of which some chunks may be excluded."""

    content, embedder = "documents", None

    def __init__(self, *held, chunks=(), excluded=()):
        self.held = {one.id: one for one in held}
        self.chunks = [*chunks, *excluded] or [None] * 1000
        self.among = np.array([True] * len(chunks) + [False] * len(excluded)) if excluded else None

    def document(self, id):
        return self.held[id]


class Preset:
    def __init__(self, *chunks):
        self.asked = []
        self.hits = [Hit(chunk, 1 / rank, rank, "dense") for rank, chunk in enumerate(chunks, 1)]

    def search(self, queries, k):
        self.asked.append((len(queries), k))
        return [self.hits[:k] for _ in queries]


def expanded(collection, *chunks, k=10, largest=3_000):
    hits, = ExpandedRetriever(Preset(*chunks), collection, Expanded(largest=largest)).search(["?"], k)
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    return hits


def shown(held, *words, **options):
    return [hit.chunk.content for hit in expanded(Documents(held), *(at(held, each) for each in words), **options)]


def test_sections_are_nested_by_the_level_of_their_headings():
    html = GUIDE.replace("## North", "<h2>North</h2>").replace("# Reefs", "<h1>Reefs</h1>")
    for text, format in ((GUIDE, "plain"), ("Before.\n\n" + GUIDE, "plain"), (html, "html")):
        spans = nested_sections(text, format)
        assert spans[0] == (0, len(text))
        assert len(spans) == len(set(spans))
    assert [GUIDE[start:end].strip().splitlines()[0] for start, end in nested_sections(GUIDE, "plain")[1:]] == [
        "## North", "## South", "# Reefs", "# Bells"]
    assert nested_sections("Before.\n\n# A\n\nb", "plain") == [(0, 15), (0, 9), (9, 15)]
    assert nested_sections("", "plain") == []


@pytest.mark.parametrize(("largest", "first", "last"), [
    (40, "## North", "swim."), (100, "# Reefs", "warm."), (3_000, "# Reefs", "They ring.")])
def test_the_largest_section_that_fits_is_shown(largest, first, last):
    text, = shown(document(GUIDE), "It is cold.", largest=largest)
    assert (text.startswith(first), text.strip().endswith(last)) == (True, True), text


def test_chunks_of_one_section_are_one_hit_with_the_rank_and_score_of_the_best():
    held, other = document(GUIDE), document("# Lamps\n\nLit in 1871.", "lamps")
    hits = expanded(Documents(held, other), at(held, "It is cold."), at(other, "Lit"), at(held, "Few swim."),
                    at(held, "They ring."), largest=40)
    assert [(hit.chunk.document, round(hit.score, 2), hit.found_by) for hit in hits] == [
        ("guide", 1.0, "expanded(dense 1, 3)"), ("lamps", 0.5, "expanded(dense 2)"),
        ("guide", 0.25, "expanded(dense 4)")]
    assert hits[2].chunk.content == "# Bells\n\nThey ring.\n"


def test_a_parent_is_a_chunk_of_its_document_with_its_offsets_and_pages():
    held = document(GUIDE, pages=[(1, 0), (2, GUIDE.index("## South")), (3, GUIDE.index("# Bells"))])
    hit, = expanded(Documents(held), at(held, "It is cold."), largest=100)
    assert hit.chunk == Chunk.of(held, "plain", 0, GUIDE.index("# Bells"))
    assert hit.chunk.pages == (1, 2)


def test_without_headings_a_window_of_whole_sentences_around_the_chunk_is_shown():
    held = document(" ".join(f"Sentence number {number} is here." for number in range(100)))
    text, = shown(held, "number 50 is", largest=130)
    assert text == "Sentence number 49 is here. Sentence number 50 is here. Sentence number 51 is here. "
    text, = shown(held, "number 0 is", largest=90)
    assert text == "Sentence number 0 is here. Sentence number 1 is here. Sentence number 2 is here. "


def test_a_section_that_is_too_long_is_shown_in_part_and_not_left():
    held = document("# A\n\nAlpha ends.\n\n# B\n\n" + "Beta goes on. " * 40 + "\n\n# C\n\nGamma.")
    text, = shown(held, "# B\n\nBeta", largest=100)
    assert text.startswith("# B\n\nBeta goes on. ")
    assert set(text.split()) <= {"#", "B", "Beta", "goes", "on."}
    assert len(text) > 80


def test_a_repeated_table_header_is_kept_or_is_there_in_the_table():
    header, held = TABLE[:TABLE.index("| 1900")], document("# Ships\n\n" + TABLE)
    row = at(held, "| 1950 | 10 |\n", header)
    whole, = expanded(Documents(held), row)
    assert (whole.chunk.prefix, whole.chunk.content) == ("", held.plain)
    part, = expanded(Documents(held), row, largest=200)
    assert part.chunk.prefix == header
    assert part.chunk.content.startswith(header + "| 19")
    assert len(row.content) < len(part.chunk.content) <= 200
    assert all(line.startswith("| ") and line.endswith(" |") for line in part.chunk.content.splitlines())
    least, = expanded(Documents(held), row, largest=10)
    assert least.chunk == row


def test_what_a_filter_excludes_is_not_shown_around_what_it_lets_through():
    held = document(GUIDE, pages=[(1, 0), (2, GUIDE.index("## South"))])
    one, other = at(held, "# Reefs\n\nCrabs live here."), at(held, "It is warm.")
    hit, = expanded(Documents(held, chunks=[other], excluded=[one]), other)
    assert hit.chunk.content == GUIDE[len(one.content):]


def test_the_search_goes_on_until_there_are_as_many_parents_as_wanted():
    guides = [document(GUIDE, f"guide{number}") for number in range(3)]
    crowd = [Chunk.of(guides[0], "plain", place, place + 1) for place in range(100)]
    preset = Preset(*crowd, at(guides[1], "Crabs"), at(guides[2], "Crabs"))
    retriever = ExpandedRetriever(preset, Documents(*guides), Expanded())
    hits = retriever.search(["?", "!"], 2)
    assert [[hit.chunk.document for hit in each] for each in hits] == [["guide0", "guide1"]] * 2
    assert preset.asked == [(2, 8), (2, 32), (2, 128)]
    assert retriever.search([], 2) == []
    assert retriever.search(["?"], 0) == [[]]


def test_html_is_not_cut_inside_a_tag():
    rows = "".join(f'<tr><td colspan="1">{year}</td><td>&amp;{year % 97}</td></tr>\n' for year in range(1900, 1999))
    page = f"<h1>Ships</h1><table><tr><th>Year</th><th>Ships</th></tr>{rows}</table>"
    held = parse_document(page.encode(), "ships.html")
    chunks = Sections(target=200, largest=300).chunk(held, "html")
    for hit in expanded(Documents(held), *chunks[1::3], largest=700):
        body = hit.chunk.content[len(hit.chunk.prefix):]
        assert body.startswith("<tr>")
        assert body.rstrip().endswith(("</tr>", "</table>"))
        assert hit.chunk.prefix == chunks[1].prefix != ""


WORDS = st.lists(st.sampled_from(["# A\n\n", "## B\n\n", "word ", "End. ", "\n\n", "| 3 | 4 |\n",
                                  "| a | b |\n| --- | --- |\n| 1 | 2 |\n", "한국어 ", "<p>", "&amp;"]),
                 min_size=1, max_size=30).map("".join)


@given(WORDS, st.integers(1, 120), st.integers(5, 40), st.randoms(use_true_random=False))
def test_whatever_the_text_a_parent_holds_its_chunk_and_is_no_longer_than_allowed(text, largest, size, random):
    held = document(text)
    chunks = list({chunk.id: chunk for chunker in (Fixed(size=size, overlap=size // 3),
                                                   Sections(target=size, largest=2 * size))
                   for chunk in chunker.chunk(held, "plain")}.values())
    random.shuffle(chunks)
    hits = expanded(Documents(held), *chunks, k=1000, largest=largest)
    for hit in hits:
        chunk = hit.chunk
        assert chunk.content == chunk.prefix + text[chunk.start:chunk.end]
        best = chunks[int(hit.found_by.removeprefix("expanded(dense ").split(",")[0].rstrip(")")) - 1]
        assert chunk.start <= best.start
        assert best.end <= chunk.end
        assert best.prefix in chunk.content
        assert len(chunk.content) <= max(largest, len(best.content))
    assert len({hit.chunk.id for hit in hits}) == len(hits)
    assert sum(hit.found_by.count(",") + 1 for hit in hits) == len(chunks)
