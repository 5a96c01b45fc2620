"""Which files a benchmark is read from, for every kind: hidden copies are none, and a path that is none is one line."""
import shutil
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from convert_detectiveqa import paragraphs_of

from documents import BenchmarkError
from documents.rows import read_rows
from experiments import BENCHMARKS
from experiments.benchmarks.base import files_below

DATA = Path(__file__).parent / "data"
KINDS = sorted(folder.name for folder in DATA.iterdir() if folder.name in BENCHMARKS)


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def ids(kind, path):
    return [question.id for question in BENCHMARKS[kind](path=str(path)).load().questions]


def test_hidden_copies_and_notes_of_other_programs_are_not_read(tmp_path, kind):
    folder = tmp_path / "here"
    shutil.copytree(DATA / kind, folder)
    for file in [file for file in folder.rglob("*") if file.is_file()]:
        for place in (folder / ".ipynb_checkpoints", file.parent / ".ipynb_checkpoints"):
            place.mkdir(exist_ok=True)
            shutil.copy(file, place / f"{file.stem}-checkpoint{file.suffix}")
        file.with_name(f"._{file.name}").write_bytes(b"\x00\x05\x16\x07\x00\x02\x00\x00Mac OS X        \xb6\xff")
    assert ids(kind, folder) == ids(kind, DATA / kind)


def test_a_folder_or_file_may_itself_be_hidden(tmp_path, kind):
    folder = tmp_path / ".cache" / ".data"
    shutil.copytree(DATA / kind, folder)
    assert ids(kind, folder) == ids(kind, DATA / kind)


@pytest.mark.parametrize(("path", "says"), [
    ("a" * 5000, "'aaaa.*aa...': no path that can be read: File name too long"),
    ("a\0b", r"'a\\x00b': no path that can be read: embedded null byte"), ("", "an empty path"), (" ", "an empty path"),
    ("~nobody-is-called-so/x", "no path that can be read: Could not determine home directory")])
def test_a_path_that_is_none_is_one_line(kind, path, says):
    with pytest.raises(BenchmarkError, match=says) as refused:
        ids(kind, path)
    assert len(str(refused.value)) < 200
    assert "\n" not in str(refused.value)


def test_a_hidden_file_that_is_named_is_read(tmp_path):
    (tmp_path / ".one.jsonl").write_text('{"a": 1}\n')
    assert [row.fields for file in files_below(tmp_path / ".one.jsonl") for row in read_rows(file)] == [{"a": 1}]
    with pytest.raises(BenchmarkError, match=r"no \.parquet, \.jsonl, \.json file in it"):
        files_below(tmp_path)


def test_pages_of_a_novel_are_read_without_hidden_ones(tmp_path):
    for name in ("2.html", "1.html", "._1.html"):
        (tmp_path / name).write_text(f"<p>{name}</p>")
    assert paragraphs_of(tmp_path) == ["1.html", "2.html"]


@pytest.mark.parametrize(("content", "says"), [
    ('{"a": 1, "b": {"c": 1, "c": 2}}', "the key 'c' is given twice"), ('{"a": 1, "a": 1}', "the key 'a' is given"),
    ('{"a": ' + "[" * 100_000, "nested beyond reason"), ('{"a": "\\ud83d"}', "surrogates not allowed"),
    ('{"a": ' + "9" * 5000 + "}", "4300 digits")])
@pytest.mark.parametrize("name", ["x.jsonl", "x.json"])
def test_json_that_cannot_be_meant_is_refused(tmp_path, name, content, says):
    (tmp_path / name).write_text(content)
    with pytest.raises(BenchmarkError, match=rf"{name}(, line 1)?: .*{says}"):
        list(read_rows(tmp_path / name))


def test_text_of_a_parquet_file_that_is_not_utf_8_is_refused(tmp_path):
    texts = pyarrow.array([b"fine", b"\xff\xfe"]).cast(pyarrow.string(), safe=False)
    pyarrow.parquet.write_table(pyarrow.table({"question": texts}), tmp_path / "x.parquet")
    with pytest.raises(BenchmarkError, match=r"x\.parquet: cannot be read as Parquet: 'utf-8' codec can't decode"):
        list(read_rows(tmp_path / "x.parquet"))
