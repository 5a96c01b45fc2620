"""An index folder is whole or not at all: kills, damage, other versions and other embedders."""
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from embedders import Lengths
from patience import SECONDS

from ragbed.documents import DocumentError, IndexFolderError, ModelError, find_sources
from ragbed.retrieval import Flat, Hnsw, Index, VectorIndex, build_index
from ragbed.retrieval.storage.folder import replacing, write_errors
from ragbed.retrieval.storage.manifest import read_manifest, write_manifest

pytestmark = pytest.mark.usefixtures("own_cache")
FILES = ["chunks.parquet", "documents.parquet", "manifest.json", "vectors.faiss"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    (folder / "pages").mkdir()
    (folder / "pages" / "one.txt").write_text("text of one")
    build_index([folder / "pages"], folder / "index", embedder=Lengths())
    return folder


@pytest.fixture
def index(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)
    return tmp_path / "index"


def test_the_folder_holds_what_the_manifest_says(index: Path) -> None:
    assert sorted(path.name for path in index.iterdir()) == FILES
    manifest = Index.open(index, Lengths()).manifest
    assert (manifest.documents, manifest.chunks, manifest.windows, manifest.kind) == (1, 1, 1, Flat())
    assert sorted(manifest.files) == sorted(set(FILES) - {"manifest.json"})
    assert list(index.parent.glob(".index*")) == []


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("place", [0.1, 0.9])
def test_one_changed_bit_is_found_and_the_file_named(index: Path, name: str, place: float) -> None:
    data = bytearray((index / name).read_bytes())
    data[int(len(data) * place)] ^= 1
    (index / name).write_bytes(data)
    with pytest.raises(IndexFolderError, match=rf"{name} is damaged|made by another version") as caught:
        Index.open(index, Lengths())
    assert "\n" not in str(caught.value)
    build_index([index.parent / "pages"], index, embedder=Lengths())
    Index.open(index, Lengths())


@pytest.mark.parametrize("name", FILES[:2] + FILES[3:])
def test_a_missing_file_is_named(index: Path, name: str) -> None:
    (index / name).unlink()
    with pytest.raises(IndexFolderError, match=rf"{name} is missing"):
        Index.open(index, Lengths())


def test_a_folder_that_is_no_index_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(IndexFolderError, match="is not an index; make one with `ragbed index SOURCES --out"):
        Index.open(tmp_path)
    with pytest.raises(IndexFolderError, match="does not exist"):
        Index.open(tmp_path / "nowhere")


def _entries(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("files", [
    {"manifest.json": '{"name": "a web app"}', "sw.js": "let x"}, {"manifest.json": '{"name": "a web app"}'},
    {"manifest.json": '{"name": "a data set"}', "documents.parquet": "PAR1"}, {"manifest.json": "not JSON"},
    {"manifest.json": '["sha256", "version", "embedder", "files"]'}, {"vectors.faiss": "x"}, {"note.txt": ""},
])
def test_a_folder_of_something_else_is_refused_and_left_as_it_is(tmp_path: Path, files: dict[str, str]) -> None:
    (tmp_path / "page.txt").write_text("text")
    for folder in (tmp_path / "app", tmp_path / ".index.old"):
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_text(content)
    before = _entries(tmp_path)
    for out in ("app", "index"):
        with pytest.raises(IndexFolderError, match="is not empty and not an index; name another folder"):
            build_index([tmp_path / "page.txt"], tmp_path / out, embedder=Lengths())
    assert [entry for entry in _entries(tmp_path) if not entry.startswith("cache")] == before


def test_what_somebody_put_into_an_index_folder_is_not_lost(index: Path) -> None:
    (index / "pages").mkdir()
    (index / "pages" / "one.txt").write_text("the only copy")
    before = _entries(index)
    with pytest.raises(IndexFolderError, match="is an index, but also contains pages, which would be lost"):
        build_index([index / "pages"], index, embedder=Lengths())
    assert _entries(index) == before


def test_a_damaged_manifest_does_not_keep_an_index_from_being_built_anew(index: Path) -> None:
    for content in ("", "[" * 100_000, '{"sha256": ' + "[" * 900 + "]" * 900 + ', "version": 2}', "[]"):
        (index / "manifest.json").write_text(content)
        with pytest.raises(IndexFolderError, match=r"manifest\.json is damaged; rebuild the index") as caught:
            Index.open(index, Lengths())
        assert "\n" not in str(caught.value)
        build_index([index.parent / "pages"], index, embedder=Lengths())
        assert Index.open(index, Lengths()).manifest.documents == 1


def test_an_index_behind_a_link_is_replaced_and_the_link_stays(index: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "current"
    link.symlink_to(index, target_is_directory=True)
    for name in ("two", "three"):
        (tmp_path / "pages" / f"{name}.txt").write_text(f"text of {name}")
        build_index([tmp_path / "pages"], link, embedder=Lengths())
    assert [Index.open(path, Lengths()).manifest.documents for path in (link, index)] == [3, 3]
    assert (link.is_symlink(), _entries(link.parent), sorted(path.name for path in index.iterdir())) == (
        True, ["current"], FILES)
    os.rename(index, tmp_path / ".index.old")
    assert Index.open(link, Lengths()).manifest.documents == 3


def test_another_version_is_refused(index: Path) -> None:
    body = json.loads((index / "manifest.json").read_bytes())
    (index / "manifest.json").write_text(json.dumps({**body, "version": 3}))
    with pytest.raises(IndexFolderError, match="was made by another version of ragbed; rebuild it"):
        Index.open(index, Lengths())


def test_another_embedder_is_refused_by_name(index: Path) -> None:
    other = Lengths()
    other.name, other.identity = "other", "other-1"
    with pytest.raises(IndexFolderError, match=r"was made with embedder lengths .*, not with other"):
        Index.open(index, other)


def test_an_embedder_that_is_not_here_is_told_before_the_first_search(index: Path) -> None:
    opened = Index.open(index)
    with pytest.raises(ModelError, match="embedding model lengths was not found"):
        opened.check_embedder()


@pytest.mark.parametrize("kind", [Flat(), Hnsw()])
def test_a_full_disk_is_one_line_and_leaves_the_old_content(index: Path, kind: Flat | Hnsw) -> None:
    resource = pytest.importorskip("resource")
    vectors = VectorIndex.build(np.eye(500, dtype=np.float32), kind)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def write() -> None:
        with replacing(index) as fresh, write_errors(index):
            vectors.write(fresh)

    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, limits[1]))
    try:
        with pytest.raises(IndexFolderError, match=r"index cannot be written: File too large$"):
            write()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert Index.open(index, Lengths()).manifest.documents == 1
    assert list(index.parent.glob(".index*")) == []


@pytest.mark.slow
def test_a_kill_at_any_moment_leaves_an_index_that_opens(index: Path) -> None:
    for delay in (0.02, 0.06, 0.12):
        child = subprocess.Popen([sys.executable, __file__, str(index)], stdout=subprocess.PIPE,
                                 env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)})
        assert child.stdout is not None
        assert child.stdout.readline() == b"building\n"
        time.sleep(delay)
        child.send_signal(signal.SIGKILL)
        assert child.wait(SECONDS) == -signal.SIGKILL
        child.stdout.close()
        assert Index.open(index, Lengths()).manifest.documents in {1, 2}
        build_index([index.parent / "pages"], index, embedder=Lengths())


def test_a_search_goes_on_while_the_index_is_replaced(index: Path) -> None:
    opened = Index.open(index, Lengths())
    (index.parent / "pages" / "two.txt").write_text("text of two, longer")
    build_index([index.parent / "pages"], index, embedder=Lengths())
    threads = [threading.Thread(target=opened.search, args=(["a query"], 2)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (hits,) = opened.search(["a query"], 2)
    assert [opened.source_of(hit.chunk.document) for hit in hits] == ["one.txt"]
    assert opened.document(hits[0].chunk.document).plain.strip() == "text of one"


def test_a_second_build_of_one_folder_is_refused_while_the_first_goes_on(index: Path) -> None:
    refused: list[str] = []

    def progress(stage: str, done: int, total: int | None) -> None:
        with pytest.raises(IndexFolderError, match="is being built by another process; wait for it") as caught:
            build_index([index.parent / "pages"], index, embedder=Lengths())
        refused.append(str(caught.value))

    (index.parent / "pages" / "two.txt").write_text("text of two")
    build_index([index.parent / "pages"], index, progress=progress, embedder=Lengths())
    assert refused
    build_index([index.parent / "pages"], index, embedder=Lengths())


@pytest.mark.slow
def test_a_reader_never_takes_a_replaced_index_for_a_damaged_one(index: Path) -> None:
    other = index.parent / "other"
    (index.parent / "pages" / "one.txt").write_text("text of another length")
    build_index([index.parent / "pages"], other, embedder=Lengths())
    contents = [{path.name: path.read_bytes() for path in folder.iterdir()} for folder in (index, other)]
    ended = threading.Event()

    def replace() -> None:
        for turn in range(30):
            with replacing(index) as fresh:
                for name, content in contents[turn % 2].items():
                    (fresh / name).write_bytes(content)
            time.sleep(0.01)
        ended.set()

    writer = threading.Thread(target=replace)
    writer.start()
    opened = 0
    while not ended.is_set():
        assert Index.open(index, Lengths()).manifest.documents == 1
        opened += 1
    writer.join()
    assert opened > 1


if __name__ == "__main__":
    target = Path(sys.argv[1])
    print("building", flush=True)
    for turn in range(10_000):
        (target.parent / "pages" / "two.txt").write_text(f"turn {turn}")
        build_index([target.parent / "pages"], target, embedder=Lengths())


def test_a_link_may_stand_where_the_old_index_is_set_aside(index: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (tmp_path / ".index.old").symlink_to(other, target_is_directory=True)
    build_index([tmp_path / "pages"], index, embedder=Lengths())
    assert (other.is_dir(), (tmp_path / ".index.old").is_symlink()) == (True, False)
    assert Index.open(index, Lengths()).manifest.documents == 1


@pytest.mark.parametrize("content", [b"", b"PAR1 and no more", b"PAR1" + bytes(200) + b"PAR1", "columns", "nulls"])
@pytest.mark.parametrize(("name", "column"), [("chunks.parquet", "content"), ("documents.parquet", "header")])
def test_a_table_damaged_under_a_fitting_hash_is_one_line(index: Path, name: str, column: str,
                                                          content: bytes | str) -> None:
    if content == "columns":
        pyarrow.parquet.write_table(pyarrow.table({"id": ["x"], "windows": [1]}), index / name)
    elif content == "nulls":
        table = pyarrow.parquet.read_table(index / name)
        place, values = table.column_names.index(column), pyarrow.nulls(len(table), pyarrow.large_string())
        pyarrow.parquet.write_table(table.set_column(place, column, values), index / name)
    else:
        assert isinstance(content, bytes)
        (index / name).write_bytes(content)
    manifest = read_manifest(index)
    (index / "manifest.json").unlink()
    write_manifest(manifest, index)

    def read() -> tuple[object, ...]:
        opened = Index.open(index, Lengths())
        return list(opened.metadata()), list(opened.texts()), opened.documents(), opened.search(["text"], 1)

    with pytest.raises(IndexFolderError, match=rf"{name} is not a Parquet file of an index; rebuild the index"):
        read()


def test_what_others_keep_beside_an_index_is_theirs(index: Path) -> None:
    for name in (".index.new-anything", ".index.old"):
        (index.parent / name).mkdir()
        (index.parent / name / "notes.txt").write_text("mine")
        os.utime(index.parent / name, (0, 0))
    (index.parent / "pages" / "one.txt").write_text("another text")
    with pytest.raises(IndexFolderError, match=r"\.index\.old is not empty and not an index"):
        build_index([index.parent / "pages"], index, embedder=Lengths())
    (index.parent / ".index.old" / "notes.txt").rename(index.parent / "notes.txt")
    build_index([index.parent / "pages"], index, embedder=Lengths())
    assert (index.parent / ".index.new-anything" / "notes.txt").read_text() == "mine"


def test_an_index_among_the_documents_is_not_read_as_one(index: Path) -> None:
    folder = index.parent
    assert [source.relative for source in find_sources([folder])] == ["pages/one.txt"]
    (folder / "manifest.json").write_text("{}")  # other programs also write such a file
    assert [source.relative for source in find_sources([folder])] == ["manifest.json", "pages/one.txt"]
    with pytest.raises(DocumentError, match="index: an index, not a folder of documents; name the documents"):
        find_sources([index])
