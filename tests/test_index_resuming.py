"""A build that is killed goes on where it stopped, and the index before it can be searched all the while."""
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from embedders import Lengths
from patience import SECONDS

from ragbed.documents import Document
from ragbed.documents.paths import cache_dir
from ragbed.retrieval import Index, IndexSettings, build_index, index_documents
from ragbed.retrieval.building import index_writer
from ragbed.retrieval.storage.folder import replacing

pytestmark = pytest.mark.usefixtures("own_cache")
FILES = 40
SETTINGS = IndexSettings(titled=False)


@pytest.fixture
def index(tmp_path):
    """An index of one file, beside a folder that has grown to many."""
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "page-0.txt").write_text("the first page of them all")
    build_index([tmp_path / "pages"], tmp_path / "index", SETTINGS, embedder=Lengths())
    for number in range(1, FILES):
        (tmp_path / "pages" / f"page-{number}.txt").write_text(f"page {number} " + "word " * number)
    return tmp_path / "index"


def killed(index: Path, stage: str, done: int) -> None:
    """Run a build in a process of its own, and kill it when a stage has come so far."""
    child = subprocess.Popen([sys.executable, __file__, str(index), stage, str(done)],
                             stdout=subprocess.PIPE, text=True,
                             env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)})
    assert child.stdout is not None
    for line in child.stdout:
        said, count = line.split()
        if said == stage and int(count) >= done:
            break
    child.send_signal(signal.SIGKILL)
    assert child.wait(SECONDS) == -signal.SIGKILL
    child.stdout.close()


def left_beside(index: Path) -> list[str]:
    return [path.name for path in index.parent.glob(".index*")]


@pytest.mark.slow
@pytest.mark.parametrize(("stage", "done", "parsed", "embedded"), [
    pytest.param("parse", 20, (1, FILES - 20), FILES - 1, marks=pytest.mark.slow),
    ("embed", 20, (0, FILES - 20), FILES - 10), pytest.param("write", 0, (0, 0), 0, marks=pytest.mark.slow)])
def test_what_was_parsed_and_embedded_before_a_kill_is_not_done_again(index, stage, done, parsed, embedded):
    killed(index, stage, done)
    assert Index.open(index, Lengths()).manifest.documents == 1
    assert len(left_beside(index)) == 1
    embedder = Lengths()
    report = build_index([index.parent / "pages"], index, SETTINGS, embedder=embedder)
    assert (report.documents, report.windows) == (FILES, FILES)
    assert parsed[0] <= report.parsed <= parsed[1]
    assert len(embedder.seen) == report.embedded_now <= embedded
    opened = Index.open(index, Lengths())
    assert [opened.source_of(hit.chunk.document) for hit in opened.search(["x" * 26], 1)[0]] == ["page-0.txt"]
    assert (left_beside(index), list((cache_dir() / "building").iterdir())) == ([], [])
    build_index([index.parent / "pages"], index.parent / "other", SETTINGS, embedder=Lengths())  # undisturbed
    resumed, other = ({path.name: path.read_bytes() for path in folder.iterdir()}
                      for folder in (index, index.parent / "other"))
    assert resumed == other


def test_what_a_kill_left_is_removed_also_where_nothing_changed(index):
    build_index([index.parent / "pages"], index, SETTINGS, embedder=Lengths())
    inode = index.stat().st_ino
    (index.parent / ".index.old").mkdir()
    with suppress(KeyboardInterrupt), replacing(index) as fresh:
        shutil.copytree(fresh, left := fresh.with_name(f"{fresh.name}left"))
        raise KeyboardInterrupt
    assert left.is_dir()
    build_index([index.parent / "pages"], index, SETTINGS, embedder=Lengths())
    assert (index.stat().st_ino, left_beside(index)) == (inode, [])


def test_an_interrupt_keeps_what_was_done_and_leaves_nothing_beside_the_index(index):
    def interrupt(stage: str, done: int, total: int | None) -> None:
        if stage == "parse" and done == 30:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_index([index.parent / "pages"], index, SETTINGS, interrupt, Lengths())
    assert (left_beside(index), Index.open(index, Lengths()).manifest.documents) == ([], 1)
    assert build_index([index.parent / "pages"], index, SETTINGS, embedder=Lengths()).parsed <= FILES - 30


@pytest.mark.slow
def test_a_file_that_changed_since_the_kill_is_parsed_again(index):
    killed(index, "write", 0)
    (index.parent / "pages" / "page-7.txt").write_text("another seventh page")
    assert build_index([index.parent / "pages"], index, SETTINGS, embedder=Lengths()).parsed == 1
    opened = Index.open(index, Lengths())
    assert any(document.plain.strip() == "another seventh page" for document in opened.documents())


def test_windows_are_embedded_before_the_last_document_has_come(tmp_path, monkeypatch):
    monkeypatch.setattr(index_writer, "BLOCK", 8)
    embedder = Lengths()
    waiting: list[int] = []

    def documents():
        for number in range(100):
            waiting.append(number - len(embedder.seen))
            text = f"document {number} " + "x" * number
            yield Document(str(number), f"{number}.txt", str(number), text, text)

    index_documents(documents(), tmp_path / "index", SETTINGS, embedder=embedder)
    assert max(waiting) < 9
    opened = Index.open(tmp_path / "index", Lengths())
    assert [document.id for document in opened.documents()] == [str(number) for number in range(100)]
    for number in (0, 7, 8, 99):
        (hit,) = opened.search([opened.chunks[number].content], 1)[0]
        assert hit.score == pytest.approx(1)


if __name__ == "__main__":
    out, last, most = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])

    def tell(stage: str, done: int, total: int | None) -> None:
        print(stage, done, flush=True)
        if stage == last and done >= most:
            time.sleep(60)  # the kill comes before anything else is done

    index_writer.BLOCK = 10
    build_index([out.parent / "pages"], out, SETTINGS, tell, Lengths(0.05))
