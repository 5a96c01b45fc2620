"""The documents that tools read: the text of chunks, put together, and spans that are chunks again."""
from ragbed.documents import Chunk
from ragbed.experiments.guests.agent_tools.corpora import ChunkCorpus


def chunk(id, start, text, prefix="", document="d", pages=None):
    return Chunk(id, document, "plain", start, start + len(text), prefix + text, prefix, pages)


def corpus(*chunks):
    return ChunkCorpus(chunks, lambda document: (f"{document}.txt", document.upper()))


def test_chunks_become_the_text_of_their_document_in_order_and_overlaps_are_there_once():
    found = corpus(chunk("b", 4, "efgh"), chunk("a", 0, "abcdef"), chunk("c", 20, "xyz", document="other"))
    document = found.document("d")
    assert (found.ids, document.plain, document.html) == (("d", "other"), "abcdefgh", "abcdefgh")
    assert (document.source, document.title) == ("d.txt", "D")


def test_a_gap_is_a_blank_line_and_a_repeated_header_is_left_out():
    found = corpus(chunk("a", 0, "abc"), chunk("b", 10, "def", prefix="| header |\n", pages=(3, 3)))
    assert found.document("d").plain == "abc\n\ndef"
    assert [(page.number, page.plain) for page in found.document("d").pages] == [(3, 5)]


def test_a_span_is_the_chunk_itself_if_it_covers_it_and_otherwise_a_part_with_its_place():
    whole, later = chunk("a", 100, "abcdef"), chunk("b", 110, "ghi", pages=(2, 2))
    found = corpus(whole, later)
    assert found.spans("d", 0, 6) == (whole,)
    (part,) = found.spans("d", 2, 4)
    assert (part.start, part.end, part.content, part.id != "a") == (102, 104, "cd", True)
    both = found.spans("d", 4, 10)
    assert [(one.start, one.end, one.content, one.pages) for one in both] == [
        (104, 106, "ef", None), (110, 112, "gh", (2, 2))]
    assert found.spans("d", 6, 8) == ()


def test_chunks_without_true_offsets_are_kept_apart():
    found = corpus(Chunk("a", "d", "plain", 0, 9, "one passage"), Chunk("b", "d", "plain", 0, 9, "another"))
    assert found.document("d").plain == "one passage\n\nanother"
    assert found.spans("d", 0, 11)[0].id == "a"
    assert [(one.start, one.end, one.content) for one in found.spans("d", 0, 3)] == [(0, 3, "one")]
