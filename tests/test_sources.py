"""What `find_sources` lists, skips and names."""
import json
import os
import subprocess
from dataclasses import asdict
from pathlib import Path

import pytest

from ragbed.documents import (
    Document,
    DocumentError,
    digest,
    find_sources,
    parse_document,
    read_documents,
    unread_files,
)
from ragbed.documents.errors import BenchmarkError
from ragbed.documents.rows import read_csv, read_rows, read_spreadsheet_text, read_text


def write(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"text of {name}", encoding="utf-8")


@pytest.mark.parametrize(("names", "given", "found"), [
    ("b.txt a/z.html a/a.MD c.pdf", [""], ["a/a.MD", "a/z.html", "b.txt", "c.pdf"]),
    (".hidden.txt .git/x.txt seen.txt data.bin noise", [""], ["seen.txt"]),
    ("x/1.txt x/deep/2.txt x/3.html y/4.txt", ["x/**/*.txt"], ["1.txt", "deep/2.txt"]),
    ("x/1.txt x/deep/2.txt y/4.txt", ["*/*.txt"], ["x/1.txt", "y/4.txt"]),
    ("p/docs/a.txt q/docs/a.txt q/docs/b.txt", ["p/docs", "q/docs"], ["b.txt", "p/docs/a.txt", "q/docs/a.txt"]),
    ("a.txt", ["", "a.txt"], ["a.txt"])], ids=["folder", "hidden", "deep glob", "flat glob", "equal names", "twice"])
def test_files_are_listed_in_order_each_once_by_its_place_below_what_was_given(
        tmp_path: Path, names: str, given: list[str], found: list[str]) -> None:
    write(tmp_path, *names.split())
    assert [source.relative for source in find_sources([f"{tmp_path}/{one}" for one in given])] == found


def test_a_file_of_unknown_type_that_is_named_itself_is_reported(tmp_path: Path) -> None:
    write(tmp_path, "report.doc")
    (source,) = find_sources([tmp_path / "report.doc"])
    (error,) = read_documents([source])
    assert isinstance(error, DocumentError)
    assert str(error).startswith("report.doc: unknown type .doc; known are .html")


def test_files_that_no_parser_reads_are_named(tmp_path: Path) -> None:
    write(tmp_path, "a/memo.doc", "a/NOISE", "a/.hidden.bin", "a/.git/x.bin", "a/b.txt", "other.png")
    (tmp_path / "a/closed.bin").mkdir()
    assert unread_files([tmp_path / "a", tmp_path / "other.png"]) == ["NOISE", "memo.doc"]
    assert unread_files([tmp_path]) == ["a/NOISE", "a/memo.doc", "other.png"]


def test_links_that_lead_outside_are_named_and_not_followed(tmp_path: Path) -> None:
    write(tmp_path, "secret/s.txt", "docs/a.txt")
    (tmp_path / "docs/out.txt").symlink_to(tmp_path / "secret/s.txt")
    (tmp_path / "docs/folder").symlink_to(tmp_path / "secret")
    (tmp_path / "docs/same.txt").symlink_to(tmp_path / "docs/a.txt")
    (tmp_path / "docs/broken.txt").symlink_to(tmp_path / "docs/gone.txt")
    problems = {source.relative: source.problem for source in find_sources([tmp_path / "docs"])}
    assert problems == {
        "a.txt": None, "same.txt": None,
        "broken.txt": "a link to a file that does not exist",
        "folder": "a link to a folder, which is not followed",
        "out.txt": "a link that leads outside the folder, which is not followed"}


def test_names_are_composed_so_that_ids_agree_across_machines(tmp_path: Path) -> None:
    write(tmp_path, "\u1112\u1161\u11ab.txt")
    (document,) = read_documents(find_sources([tmp_path]))
    assert not isinstance(document, DocumentError)
    assert document.source == "한.txt"
    assert document.id == digest("한.txt")


@pytest.mark.skipif(os.name == "nt", reason="Windows names are Unicode")
def test_a_name_that_is_not_utf8_is_shown_escaped(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("coffee")
    (document,) = read_documents(find_sources([tmp_path]))
    assert not isinstance(document, DocumentError)
    assert document.source == "caf\\xe9.txt"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    (source,) = find_sources([tmp_path / "pipe.txt"])
    assert source.problem == "not a regular file"
    assert find_sources([tmp_path]) == []
    for read in (read_text, read_spreadsheet_text, read_csv, read_rows):
        with pytest.raises(BenchmarkError, match="a pipe or a device, not a file"):
            list(read(tmp_path / "pipe.txt"))


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="this user reads every folder")
def test_an_unreadable_folder_below_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    write(tmp_path, "docs/a.txt", "docs/closed/b.txt", "docs/listed/c.txt")
    (tmp_path / "docs/closed").chmod(0)
    (tmp_path / "docs/listed").chmod(0o400)
    try:
        problems = {source.relative: source.problem for source in find_sources([tmp_path / "docs"])}
    finally:
        (tmp_path / "docs/closed").chmod(0o700)
        (tmp_path / "docs/listed").chmod(0o700)
    denied = "cannot be read: Permission denied"
    assert problems == {"a.txt": None, "closed": denied, "listed/c.txt": denied}


def test_a_glob_follows_no_link_that_a_folder_refuses(tmp_path: Path) -> None:
    write(tmp_path, "secret/s.txt", "docs/a.txt", "docs/deep/b.txt")
    (tmp_path / "docs/out.txt").symlink_to(tmp_path / "secret/s.txt")
    (tmp_path / "docs/folder").symlink_to(tmp_path / "secret")
    (tmp_path / "docs/deep/loop").symlink_to(tmp_path / "docs")
    followed = "a link to a folder, which is not followed"
    outside = "a link that leads outside the folder, which is not followed"
    shallow = {source.relative: source.problem for source in find_sources([f"{tmp_path}/docs/*/*.txt"])}
    assert shallow == {"deep/b.txt": None, "folder": followed}
    deep = {source.relative: source.problem for source in find_sources([f"{tmp_path}/docs/**/*.txt"])}
    assert deep == {"a.txt": None, "deep/b.txt": None, "out.txt": outside, "folder": followed, "deep/loop": followed}


@pytest.mark.parametrize(("given", "line"), [
    ("", "'': an empty name; name a file or a folder"), ("~nobodyx/y", "~nobodyx/y: no such file or folder"),
    ("a\0b", "a\0b: no such file or folder"), ("nothing", "nothing: no such file or folder"),
    ("nowhere/*.txt", "nowhere/*.txt: matches no file")])
def test_a_name_that_leads_to_no_file_is_one_line(given: str, line: str) -> None:
    with pytest.raises(DocumentError) as caught:
        find_sources([given])
    assert str(caught.value) == line


def test_folders_nested_a_thousand_deep_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "docs/a.txt")
    monkeypatch.chdir(tmp_path / "docs")
    for _ in range(1_100):
        os.mkdir("d")
        os.chdir("d")
    Path("deep.txt").write_text("text of the deepest")
    os.chdir(tmp_path)
    try:
        found = find_sources([tmp_path / "docs"])
        assert [source.relative.rsplit("/", 1)[-1] for source in found] == ["a.txt", "deep.txt"]
        assert [document.plain for document in read_documents(found)] == ["text of docs/a.txt", "text of the deepest"]
        with pytest.raises(DocumentError, match=r"nested too deep for a pattern; name the folder itself"):
            find_sources([f"{tmp_path}/docs/**/*.txt"])
    finally:
        subprocess.run(["rm", "-rf", str(tmp_path / "docs")], check=True)  # shutil.rmtree, pytest's, calls itself too


def test_a_file_that_is_too_large_is_told_from_its_size_before_a_byte_is_read(tmp_path: Path) -> None:
    write(tmp_path, "good.txt", "vast.txt")
    os.truncate(tmp_path / "vast.txt", 8 << 40)
    (tmp_path / "link.txt").symlink_to("vast.txt")
    said = "larger than the limit of 100,000,000 bytes"
    assert {source.relative: source.problem for source in find_sources([tmp_path])} == {
        "good.txt": None, "link.txt": said, "vast.txt": said}
    assert [source.problem for source in find_sources([tmp_path / "vast.txt"])] == [said]


def test_a_document_that_went_through_json_is_the_same_and_can_be_a_key():
    document = parse_document(b"# Ferry\n\nIt leaves at 9:40.", "ferry.md")
    read = Document.from_json(json.loads(json.dumps(asdict(document))))
    assert {document: "known"}[read] == "known"
