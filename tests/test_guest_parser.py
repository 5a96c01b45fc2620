"""An installed distribution adds a parser for its own file type."""
import sys
from pathlib import Path

import pytest

from ragbed import guests
from ragbed.documents import DocumentError, parse_document, read_document
from ragbed.documents.sources import parsers_by_suffix
from ragbed.retrieval.building import source_plan

MODULE = '''
import strangers_words
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
    (site / "strangers_words.py").write_text("WORDS = 1\n")
    (site / "notes-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: notes\nVersion: 1\n")
    (site / "notes-1.dist-info" / "entry_points.txt").write_text("[ragbed.guests]\nnotes = strangers_notes:GUEST\n")
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PYTHONPATH", str(site))
    for cached in (guests.installed, parsers_by_suffix, source_plan._parser_version):
        cached.cache_clear()
    yield tmp_path
    monkeypatch.undo()
    for name in ("strangers_notes", "strangers_words"):  # their files are gone after this test
        sys.modules.pop(name, None)
    for cached in (guests.installed, parsers_by_suffix, source_plan._parser_version):
        cached.cache_clear()


def test_its_files_are_read_in_the_worker_process_and_sanitised(notes):
    (notes / "first.note").write_text("Ferries leave at noon.")
    document = read_document(notes / "first.note")
    assert (document.title, document.plain) == ("first.note", "# first.note\n\nFerries leave at noon.\n\n")
    assert "script" not in document.html


@pytest.mark.parametrize(("data", "reason"), [
    (b"\xff", "strangers_notes:parse: strangers_notes.py:11: UnicodeDecodeError"),
    (b"number", "strangers_notes:parse returned int; return HTML as text, or a Document")])
def test_its_failures_name_the_file_the_parser_and_the_line(notes, data, reason):
    with pytest.raises(DocumentError, match=reason) as failed:
        parse_document(data, "a.note")
    assert failed.value.source == "a.note"


def test_an_index_holds_them(notes, ragbed):
    (notes / "first.note").write_text("Ferries leave at noon.")
    made = ragbed.json("index", notes / "first.note", "--out", notes / "idx", "--embedder", "none")
    assert made["documents"] == 1


def test_files_are_parsed_again_after_a_change_of_the_parser_or_of_a_module_that_it_imports(notes, ragbed):
    (notes / "first.note").write_text("Ferries leave at noon.")
    command = ("index", notes / "first.note", "--out", notes / "idx", "--embedder", "none")
    parsed = []
    for name, text in [("strangers_words", "WORDS = 1\n"), ("strangers_words", "WORDS = 2\n"),
                       ("strangers_words", "WORDS = 2\n"), ("strangers_notes", MODULE + "# changed\n")]:
        (notes / "site" / f"{name}.py").write_text(text)
        source_plan._parser_version.cache_clear()
        parsed.append(ragbed.json(*command)["parsed"])
    assert parsed == [1, 1, 0, 1]


@pytest.mark.parametrize("changed", [
    "documents/parsers/pdf_rows.py", "documents/parsers/text.py", "documents/sources.py",
    "experiments/guests/office/number_formats.py", "experiments/guests/office/word.py",
    "experiments/guests/formats/pages.py", "experiments/guests/formats/text_recognition.py"])
def test_the_version_of_the_parsers_depends_on_every_module_that_they_use(changed, monkeypatch):
    before, read = source_plan.parser_version(), Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + b"#" * path.as_posix().endswith(changed))
    source_plan._parser_version.cache_clear()
    assert source_plan.parser_version() != before
    source_plan._parser_version.cache_clear()
