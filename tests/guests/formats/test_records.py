"""Each line of a JSON Lines file is a document of its own."""
import json

import pytest

from ragbed.documents import DocumentError, read_document
from ragbed.documents.sources import find_sources
from ragbed.retrieval import Index, add_to_index, build_index, remove_from_index
from ragbed.retrieval.index_settings import IndexSettings

WORDS = IndexSettings(embedder="none")
LINES = [{"_id": "4983", "title": "Reefs of Esk", "text": "The reef grew.", "metadata": {"url": "http://esk"},
          "year": 2020},
         {"_id": "a/b", "title": "", "text": "Fish came.", "metadata": {}, "year": 2021, "tags": ["x", "y"]}]


@pytest.fixture
def corpus(tmp_path):
    """A file of two records."""
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in LINES) + "\n{broken\n[1, 2]\n")
    return path


def test_a_corpus_becomes_one_document_per_line(corpus, ragbed):
    out = corpus.parent / "idx"
    made = ragbed.json("index", corpus, "--out", out, "--embedder", "none")
    assert made["documents"] == 3
    assert [one["document"] for one in made["skipped"]] == ["corpus.jsonl#line 4"]
    first, other, last = Index.open(out).documents()
    assert (first.id, first.source, first.title) == ("4983", "corpus.jsonl#4983", "Reefs of Esk")
    assert first.plain == "# Reefs of Esk\n\nThe reef grew.\n\n"
    assert first.fields == {"_id": "4983", "metadata.url": "http://esk", "year": 2020}
    assert (other.id, other.source, other.plain) == ("a/b", "corpus.jsonl#a%2Fb", "Fish came.\n\ntags: x, y\n\n")
    assert (last.source, last.plain) == ("corpus.jsonl#line 5", "1, 2\n\n")
    for where, found in (("year >= 2021", ["a/b"]), ("metadata.url ~ esk", ["4983"]), ("document = 4983", ["4983"])):
        hits = ragbed.json("search", "reef fish", "--index", out, "--retriever", "bm25", "--where", where)["hits"]
        assert [hit["document"].partition("#")[2].replace("%2F", "/") for hit in hits] == found


def test_only_a_changed_line_is_read_again(corpus):
    out = corpus.parent / "idx"
    build_index([corpus], out, WORDS)
    corpus.write_text(corpus.read_text().replace("Fish came", "Fish left"))
    again = build_index([corpus], out, WORDS)
    assert (again.documents, again.parsed, again.replaced) == (3, 1, 1)
    left = remove_from_index(["corpus.jsonl#4983"], out)
    assert (left.documents, left.removed) == (2, 1)


def test_an_id_that_another_file_also_uses_does_not_hide_a_document(corpus):
    out, other = corpus.parent / "idx", corpus.parent / "more.jsonl"
    other.write_text('{"_id": "4983", "text": "Another text."}\n{"_id": "4983", "text": "Once more."}\n')
    assert build_index([other], out, WORDS).documents == 2
    assert add_to_index([corpus], out).documents == 5
    assert len({document.id for document in Index.open(out).documents()}) == 5
    assert build_index([corpus, other], out, WORDS).documents == 5
    assert remove_from_index(["more.jsonl"], out).documents == 3


def test_a_file_of_records_has_no_single_document(corpus):
    with pytest.raises(DocumentError, match="holds several documents"):
        read_document(corpus)
    empty = corpus.with_name("empty.jsonl")
    empty.write_bytes(b"")
    assert [source.relative for source in find_sources([empty])] == ["empty.jsonl"]
    with pytest.raises(DocumentError, match="the file is empty"):
        read_document(empty)


def test_fields_that_a_document_states_give_way_to_given_ones(tmp_path, ragbed):
    (tmp_path / "mail.eml").write_text("Subject: Fees\nFrom: ann@esk\nDate: Fri, 31 May 2024 09:30:00 +0000\n\nText.")
    (tmp_path / "data.json").write_text('{"source": "Esk", "page": 3, "text": "Text of a port."}')
    (tmp_path / "about.csv").write_text("source,from\nmail.eml,Ann Lee\n")
    out, files = tmp_path / "idx", (tmp_path / "mail.eml", tmp_path / "data.json")
    ragbed.json("index", *files, "--out", out, "--embedder", "none", "--metadata", tmp_path / "about.csv")
    for where, found in (("from = Ann Lee", "mail.eml"), ("date >= 2024-05", "mail.eml"), ("own_page = 3", "data.json"),
                         ("own_source = esk", "data.json")):
        hits = ragbed.json("search", "text", "--index", out, "--retriever", "bm25", "--where", where)["hits"]
        assert [hit["document"] for hit in hits] == [found]
    assert ragbed.json("index", *files, "--out", out, "--embedder", "none")["documents"] == 2
    hits = ragbed.json("search", "text", "--index", out, "--retriever", "bm25", "--where", "from = ann@esk")["hits"]
    assert [hit["document"] for hit in hits] == ["mail.eml"]
