"""Documents that are damaged or hostile: each is named with its reason, and the others are read."""
import io
import os
import random
import signal
import time
from contextlib import closing
from pathlib import Path
from threading import Timer

import pymupdf
import pytest

from ragbed.documents import Document, DocumentError, find_sources, parse_document, read_documents
from ragbed.documents.numbers import find_values
from ragbed.documents.workers import Worker
from ragbed.retrieval.lexical.tokens import normalise
from ragbed.strategies.normalizing import normalize_answer


def pdf(text: str = "Some words", **options: object) -> bytes:
    file = pymupdf.open()
    for _ in range(3):
        page = file.new_page()
        if text:
            page.insert_text((72, 72), text)
    buffer = io.BytesIO()
    file.save(buffer, **options)
    return buffer.getvalue()


def results(folder: Path, **settings: float) -> dict[str, str]:
    """For each file its reason, or its text."""
    read = read_documents(find_sources([folder]), **settings)  # type: ignore[arg-type]
    return {item.source: item.reason if isinstance(item, DocumentError) else item.plain.strip() for item in read}


@pytest.mark.slow
def test_every_bad_document_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    whole = pdf()
    files = {
        "truncated.pdf": whole[:len(whole) // 2], "nearly.pdf": whole[:-30], "not.pdf": b"hello", "zero.pdf": b"",
        "encrypted.pdf": pdf(encryption=pymupdf.PDF_ENCRYPT_AES_256, user_pw="u", owner_pw="o"),
        "scanned.pdf": pdf(""), "zero.html": b"", "binary.html": random.Random(1).randbytes(9_000),
        "image.html": b"\x89PNG\r\n\x1a\n\0\0", "blank.txt": b" \n\n", "empty.html": b"<script>x</script>",
        "wrong.html": '<meta charset="utf-8"><p>한국어 문서입니다'.encode("cp949"), "good.pdf": whole,
        "good.html": b"<p>fine"}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    assert results(tmp_path) == {
        "truncated.pdf": "a truncated PDF: its end is missing", "nearly.pdf": "a truncated PDF: its end is missing",
        "not.pdf": "not a PDF: it has no PDF header", "zero.pdf": "the file is empty (0 bytes)",
        "encrypted.pdf": "encrypted: it needs a password",
        "scanned.pdf": "no text: its pages are probably scanned; `ragbed index --ocr` recognises it",
        "zero.html": "the file is empty (0 bytes)", "binary.html": "binary data, not text",
        "image.html": "is a PNG image, not text", "blank.txt": "holds no text", "empty.html": "holds no text",
        "wrong.html": "한국어 문서입니다", "good.pdf": "\n\n".join(["Some words"] * 3), "good.html": "fine"}


def test_a_file_above_the_limit_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"x" * 1_001)
    (tmp_path / "b.txt").write_bytes(b"x" * 1_000)
    assert results(tmp_path, max_bytes=1_000) == {"a.txt": "larger than the limit of 1,000 bytes", "b.txt": "x" * 1_000}


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="this user reads every file")
def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "a.txt").chmod(0)
    assert results(tmp_path) == {"a.txt": "cannot be read: Permission denied"}


@pytest.mark.slow
def test_a_pdf_that_hangs_costs_itself_only_and_the_next_is_read(tmp_path: Path) -> None:
    """A page that draws a form, which draws a form, ten times at each of twelve levels."""
    (tmp_path / "a_bomb.pdf").write_bytes(form_bomb(levels=12, times=10))
    (tmp_path / "b.html").write_text("<p>fine")
    late = "not parsed: it took longer than 1 seconds"
    assert results(tmp_path, deadline=1.0, workers=1) == {"a_bomb.pdf": late, "b.html": "fine"}


def form_bomb(levels: int, times: int) -> bytes:
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
               "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 99 99] /Contents 4 0 R "
               "/Resources << /XObject << /F 5 0 R >> >> >>", _stream("", "/F Do " * times)]
    for level in range(levels):
        inner = "(x) Tj" if level == levels - 1 else "/F Do " * times
        objects.append(_stream("/Type /XObject /Subtype /Form /BBox [0 0 99 99] /Resources << /XObject << "
                               f"/F {6 + level} 0 R >> >>", inner))
    objects.append(_stream("/Type /XObject /Subtype /Form /BBox [0 0 9 9]", "0 0 m 9 9 l S"))
    body, offsets = "%PDF-1.4\n", []
    for number, text in enumerate(objects, 1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{text}\nendobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    return (f"{body}xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer\n"
            f"<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n").encode()


def _stream(entries: str, data: str) -> str:
    return f"<< {entries} /Length {len(data)} >>\nstream\n{data}\nendstream"


@pytest.mark.slow
def test_a_parser_that_is_killed_is_named_and_the_next_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<p>fine")
    (tmp_path / "b.html").write_text("<table>" + "<tr><td>1</td><td>2</td></tr>" * 150_000)
    quick, slow = find_sources([tmp_path])
    with closing(Worker(deadline=30, max_bytes=100_000_000)) as worker:
        assert isinstance(worker.parse(quick), Document)
        assert worker.process is not None
        Timer(0.3, os.kill, (worker.process, signal.SIGKILL)).start()
        died = worker.parse(slow)
        assert isinstance(died, DocumentError)
        assert died.reason == "not parsed: its process ended with SIGKILL"
        assert isinstance(worker.parse(quick), Document)
        os.kill(worker.process, signal.SIGKILL)
        assert isinstance(worker.parse(quick), Document)


def test_a_parser_is_given_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RAGBED_API_KEY", "OPENAI_API_KEY", "HF_TOKEN", "MLFLOW_TRACKING_PASSWORD", "client_secret"):
        monkeypatch.setenv(name, "sk-canary-0123456789")
    (tmp_path / "page.txt").write_text("Words.")
    with closing(Worker(deadline=30, max_bytes=1_000)) as worker:
        assert isinstance(worker.parse(find_sources([tmp_path])[0]), Document)
        assert b"sk-canary" not in Path(f"/proc/{worker.process}/environ").read_bytes()


def test_stopping_early_ends_the_workers_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<p>fine")
    (tmp_path / "b_slow.html").write_text("<table>" + "<tr><td>1</td><td>2</td></tr>" * 150_000)
    reading = read_documents(find_sources([tmp_path]), workers=2)
    assert isinstance(next(reading), Document)
    began = time.monotonic()
    reading.close()  # type: ignore[attr-defined]
    assert time.monotonic() - began < 4


def test_order_is_that_of_the_sources_however_long_each_takes(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number:02}.html").write_text(f"<p>{number} " + "<b>x</b> " * (3_000 if number % 7 == 0 else 1))
    sources = find_sources([tmp_path])
    read = list(read_documents(sources, workers=3))
    assert [item.source for item in read] == [source.relative for source in sources]


@pytest.mark.parametrize("read", [lambda text: parse_document(text.encode(), "a.txt"), normalize_answer, normalise,
                                  find_values])
def test_a_run_of_marks_without_end_is_read_at_once(read):
    begun = time.perf_counter()
    read("3 e" + "\u0316\u0301" * 100_000)
    assert time.perf_counter() - begun < 5


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_given_as_settings_cassette_or_metadata_is_one_line(tmp_path, ragbed):
    os.mkfifo(pipe := tmp_path / "pipe.yaml")
    (tmp_path / "a.txt").write_text("text")
    for asked in (["run", pipe], ["run", "--replay", pipe], ["cassette", "show", pipe],
                  ["index", tmp_path / "a.txt", "--out", tmp_path / "i", "--metadata", pipe]):
        ragbed.refuses(*asked, says=["a pipe or a device, not a file"])


def test_a_file_too_large_to_be_read_whole_is_one_line_without_being_read(tmp_path, ragbed):
    (tmp_path / "a.txt").write_text("text")
    for name, says in (("big.csv", "larger than 2,000,000,000 bytes; split it, or save it as JSON Lines"),
                       ("big.json", "larger than 2,000,000,000 bytes; split it, or save it as JSON Lines"),
                       ("big.jsonl", "big.jsonl, line 2: longer than 268,435,456 bytes")):
        (big := tmp_path / name).write_text("[\n" if name == "big.json" else '{"source": "a.txt"}\n')
        os.truncate(big, 10_000_000_000)  # its blanks take no room on the disk
        ragbed.refuses("index", tmp_path / "a.txt", "--out", tmp_path / "i", "--metadata", big, says=[says])
