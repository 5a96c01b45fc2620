"""Hostile PDF pages cost whoever asks for them a few seconds, and other clients nothing; no process outlives ragbed."""
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2 as httpx
import pytest
from embedders import Lengths
from patience import SECONDS, until
from serving import direct, served
from test_bad_documents import form_bomb
from test_serving_faults import process

from ragbed.documents.types import digest
from ragbed.experiments.guests.serving import page_images
from ragbed.retrieval import Index, build_index


def page(drawing, extra=(), resources="/Pattern << /P 6 0 R >>"):
    """A PDF of one page with a few words, and this drawing."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
               "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << "
               f"/Font << /H 5 0 R >> {resources} >> >>",
               stream("", f"BT /H 11 Tf 72 700 Td (A crossing costs 12 crowns.) Tj ET {drawing}"),
               "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>", *extra]
    body = "".join(f"{number} 0 obj\n{text}\nendobj\n" for number, text in enumerate(objects, 1))
    return f"%PDF-1.7\n{body}trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\n%%EOF\n".encode()


def stream(entries, data):
    return f"<< {entries} /Length {len(data)} >>\nstream\n{data}\nendstream"


def tiling(inner):
    """A pattern that is filled with the next one, or a square."""
    return stream("/PatternType 1 /PaintType 1 /TilingType 1 /BBox [0 0 99 99] /XStep .01 /YStep .01 /Resources "
                  f"<< /Pattern << /P {inner} 0 R >> >>", f"/Pattern cs /P scn {'0 0 99 99 re f ' * 9}")


ENDLESS = page("/Pattern cs /P scn 0 0 595 842 re f", [*map(tiling, range(7, 12)), tiling(99)])
HUGE = page("q 500 0 0 500 0 0 cm /I Do Q", [stream("/Type /XObject /Subtype /Image /Width 60000 /Height 60000 "
            "/BitsPerComponent 8 /ColorSpace /DeviceRGB", "x")], "/XObject << /I 6 0 R >>")
FINE = page("0 0 9 9 re f")


@pytest.fixture
def opened(serve, tmp_path, monkeypatch, own_cache):
    """A client of a server with these files, and the index."""
    monkeypatch.setattr("ragbed.retrieval.index.open_embedder", lambda *given: Lengths())
    monkeypatch.setattr(page_images, "_DRAW_SECONDS", 2.0)
    for name, data in (("endless.pdf", ENDLESS), ("fine.pdf", FINE), ("huge.pdf", HUGE)):
        (tmp_path / name).write_bytes(data)
    build_index(sorted(tmp_path.glob("*.pdf")), tmp_path / "index", embedder=Lengths())
    with served([direct(tmp_path / "index", f"{serve([]).url}#m")], tmp_path / "traffic") as url, \
            httpx.Client(base_url=url, timeout=SECONDS) as client:
        index = Index.open(tmp_path / "index", Lengths())
        yield client, {index.document(chunk.document).source: f"/documents/{chunk.document}" for chunk in index.chunks}


@pytest.mark.slow
def test_a_page_that_draws_endlessly_is_given_up_and_other_pages_are_drawn_meanwhile(opened):
    client, at = opened
    with ThreadPoolExecutor(1) as threads:
        slow = threads.submit(client.get, at["endless.pdf"] + "/pages/1.png")
        while client.get("/health").status_code == 200 and not slow.done():
            assert client.get(at["fine.pdf"]).status_code == 200
    late = slow.result()
    assert (late.status_code, late.headers["content-type"]) == (422, "image/svg+xml")
    assert "This page cannot be drawn: it took longer than 2 seconds." in late.text
    begun = time.monotonic()
    assert client.get(at["endless.pdf"] + "/pages/1.png").status_code == 422
    assert time.monotonic() - begun < 1.5  # it is not tried again at once
    again = client.get(at["endless.pdf"]).text
    assert "The pages are shown as text, because they cannot be drawn: it took longer than 2 seconds." in again
    assert "A crossing costs 12 crowns." in re.sub("<[^>]+>", "", again)
    assert client.get(at["fine.pdf"] + "/pages/1.png").status_code == 200


@pytest.mark.slow
def test_a_picture_too_large_for_memory_is_an_error_or_a_page_and_the_server_goes_on(opened):
    client, at = opened
    assert client.get(at["huge.pdf"] + "/pages/1.png").status_code in (200, 422)
    assert "12 crowns" in client.get(at["huge.pdf"]).text or "<figure" in client.get(at["huge.pdf"]).text
    assert client.get(at["fine.pdf"] + "/pages/1.png").status_code == 200


@pytest.mark.slow
def test_a_document_whose_words_cannot_be_found_in_time_is_shown_as_text(opened, monkeypatch):
    client, at = opened
    monkeypatch.setattr(page_images, "_DRAW_SECONDS", 0.0)
    shown = client.get(at["fine.pdf"])
    assert shown.status_code == 200
    assert "The pages are shown as text, because they cannot be drawn: it took longer than 0 seconds." in shown.text
    assert "A crossing costs 12 crowns." in re.sub("<[^>]+>", "", shown.text)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
def test_processes_that_draw_end_with_a_server_that_is_killed(tmp_path, own_cache):
    (tmp_path / "endless.pdf").write_bytes(ENDLESS)
    build_index([tmp_path / "endless.pdf"], tmp_path / "index")
    at = f"/documents/{digest('endless.pdf')}/pages/1.png"
    with process(tmp_path / "index", "http://127.0.0.1:9/v1", tmp_path / "traffic") as (server, url), \
            ThreadPoolExecutor(1) as threads:
        asked = threads.submit(httpx.get, url + at, timeout=SECONDS)
        killed(server, after=0.5, asked=asked)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
def test_processes_that_parse_end_with_an_index_command_that_is_killed(tmp_path, own_cache):
    (tmp_path / "bomb.pdf").write_bytes(form_bomb(12, 10))
    with subprocess.Popen([sys.executable, "-m", "ragbed", "index", str(tmp_path / "bomb.pdf"), "--out",
                           str(tmp_path / "index")], stderr=subprocess.DEVNULL) as building:
        killed(building, after=1)


def killed(process, after, asked=None):
    """Kill a process when its children have been busy for some seconds, and check that they end too."""
    def busy():
        assert not (asked and asked.done()), asked.result().text
        return [child for child in children(process.pid) if seconds(child) > after]

    were_busy = until(busy)
    process.kill()
    process.wait()
    until(lambda: not any(seconds(child) for child in were_busy))


def children(pid):
    return [int(child) for tasks in Path(f"/proc/{pid}/task").glob("*/children") for child in tasks.read_text().split()]


def seconds(pid):
    """Return the processor time of a process; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except FileNotFoundError:
        return 0.0
    return 0.0 if fields[0] == "Z" else int(fields[11]) / os.sysconf("SC_CLK_TCK")
