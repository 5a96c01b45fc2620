"""An installed distribution adds a parser for its own file type."""
import pytest

from ragbed import guests
from ragbed.documents import DocumentError, parse_document, read_document
from ragbed.documents.sources import parsers_by_suffix

MODULE = '''
from ragbed.guests import Guest

GUEST = Guest("notes", {"parser": {".note": "strangers_notes:parse"}})


def parse(data, source):
    if data == b"number":
        return 7
    return f"<h1>{source}</h1><p>{data.decode('ascii')}</p><script>alert()</script>"
'''


@pytest.fixture
def notes(tmp_path, monkeypatch):
    """A folder with an installed guest, which reads `.note`."""
    site = tmp_path / "site"
    (site / "notes-1.dist-info").mkdir(parents=True)
    (site / "strangers_notes.py").write_text(MODULE)
    (site / "notes-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: notes\nVersion: 1\n")
    (site / "notes-1.dist-info" / "entry_points.txt").write_text("[ragbed.guests]\nnotes = strangers_notes:GUEST\n")
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PYTHONPATH", str(site))
    for cached in (guests.installed, parsers_by_suffix):
        cached.cache_clear()
    yield tmp_path
    monkeypatch.undo()
    for cached in (guests.installed, parsers_by_suffix):
        cached.cache_clear()


def test_its_files_are_read_in_the_worker_process_and_sanitised(notes):
    (notes / "first.note").write_text("Ferries leave at noon.")
    document = read_document(notes / "first.note")
    assert (document.title, document.plain) == ("first.note", "# first.note\n\nFerries leave at noon.\n\n")
    assert "script" not in document.html


@pytest.mark.parametrize(("data", "reason"), [
    (b"\xff", "strangers_notes:parse: strangers_notes.py:10: UnicodeDecodeError"),
    (b"number", "strangers_notes:parse returned int; return HTML as text, or a Parsed")])
def test_its_failures_name_the_file_the_parser_and_the_line(notes, data, reason):
    with pytest.raises(DocumentError, match=reason) as failed:
        parse_document(data, "a.note")
    assert failed.value.source == "a.note"


def test_an_index_holds_them(notes, ragbed):
    (notes / "first.note").write_text("Ferries leave at noon.")
    made = ragbed.json("index", notes / "first.note", "--out", notes / "idx", "--embedder", "none")
    assert made["documents"] == 1
