"""Documents as they are served: the passage marked where it stands, on pictures of pages too, and nothing guessed."""
import re
from html import unescape
from urllib.parse import quote

import httpx2 as httpx
import pymupdf
import pytest
from embedders import Lengths
from patience import SECONDS
from serving import direct, served
from test_pdf_parsing import line, pdf

from ragbed.documents.types import Document, Page
from ragbed.retrieval import Index, IndexSettings, build_index, index_documents

FARES = [line(100, "Fares", 20), line(200, "A crossing costs 12 crowns."), line(400, "Dogs travel for 3 crowns.")]
FLEET = [line(100, "Fleet", 20), line(300, "The Petrel carries 240 passengers.")]
HOSTILE = "<script>alert(1)</script><img src=//evil.test/x onerror=alert(1)>\u202e"


@pytest.fixture(autouse=True)
def _apart(own_cache):
    """Where files were is remembered for the test alone."""


@pytest.fixture
def opened(serve, tmp_path, monkeypatch):
    """Serves an index; returns a client of it, and the index."""
    running = []

    def start(**changes):
        monkeypatch.setattr("ragbed.retrieval.index.open_embedder", lambda *given: Lengths())
        model = serve([])
        server = served([direct(tmp_path / "index", f"{model.url}#m", **changes)], tmp_path / "traffic")
        client = httpx.Client(base_url=server.__enter__(), timeout=SECONDS)
        running.append((server, client))
        return client, Index.open(tmp_path / "index", Lengths())

    yield start
    for server, client in running:
        client.close()
        server.__exit__(None, None, None)


def shown(client, chunk, **more):
    reply = client.get(f"/documents/{quote(chunk.document, safe='')}", params={"chunk": chunk.id, **more})
    assert reply.status_code == 200
    policy = reply.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'self'; img-src 'self' data:;")
    assert "sandbox" in policy
    assert "script" not in policy
    return reply.text


def marked(page):
    return [unescape(text) for text in re.findall(r"<mark[^>]*>(.*?)</mark>", page)]


def of_pdf(tmp_path, *pages, **settings):
    (tmp_path / "files").mkdir(exist_ok=True)
    (tmp_path / "files" / "guide.pdf").write_bytes(pdf(*pages))
    build_index([tmp_path / "files"], tmp_path / "index", IndexSettings(**settings), embedder=Lengths())


def holding(index, text):
    return next(chunk for chunk in index.chunks if text in chunk.content)


@pytest.mark.slow
@pytest.mark.parametrize("format", ["html", pytest.param("plain", marks=pytest.mark.slow)])
def test_the_words_of_a_passage_are_boxed_on_the_picture_of_its_page(opened, tmp_path, format):
    size = 400 if format == "html" else 60
    of_pdf(tmp_path, FARES, FLEET, formats=(format,), chunker={"kind": "fixed", "size": size})
    client, index = opened()
    page = shown(client, holding(index, "Petrel carries"))
    begun, figure = page.split('<figure id="page=1">')[1].split("<figure>", 1)
    assert "<rect" not in begun  # the page before is shown, without a mark
    assert '<g id="page=2">' in figure
    assert "could be found" not in page
    boxes = [tuple(map(float, box)) for box in re.findall(
        r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"', figure)]
    # Written at (72, 300), where its baseline is: the box of that line begins a point to the left, and holds the line.
    x, _y, width, _height = next(box for box in boxes if box[1] < 300 < box[1] + box[3])
    assert x == 71.0
    assert round(width) == round(pymupdf.get_text_length("The Petrel carries 240 passengers.") + 2)
    png = client.get("/documents/" + re.search(r'src="([^"]+/pages/2.png[^"]*)"', figure)[1])
    assert (png.status_code, png.headers["content-type"]) == (200, "image/png")
    assert pymupdf.Pixmap(png.content).width == 1190  # of A4's 595 points


@pytest.mark.slow
def test_pages_that_stand_on_their_side_or_are_damaged_are_served(opened, tmp_path):
    of_pdf(tmp_path, FARES, FLEET)
    file = pymupdf.open(tmp_path / "files" / "guide.pdf")
    file[0].set_rotation(90)
    file.update_stream(file[1].get_contents()[0], b"q 1 0 0 1 0 0 cm /None Do (")
    file.new_page().insert_text((72, 300), "Tickets are sold on board.")
    (tmp_path / "files" / "guide.pdf").write_bytes(file.tobytes())
    build_index([tmp_path / "files"], tmp_path / "index", embedder=Lengths())
    client, index = opened()
    page = shown(client, holding(index, "12 crowns"))
    boxes = [list(map(float, box)) for box in re.findall(
        r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"', page)]
    # What was written at (72, 200) of a page of 595 x 842 points stands at (842 - 200, 72), and runs down.
    assert [box[1] for box in boxes if box[0] < 842 - 200 < box[0] + box[2] < box[0] + box[3]] == [71.0]
    for number in (1, 2, 3):
        assert client.get(f"/documents/{index.chunks[0].document}/pages/{number}.png").status_code == 200


@pytest.mark.slow
def test_a_file_that_is_another_now_is_not_shown_for_the_one_that_was_indexed(opened, tmp_path):
    of_pdf(tmp_path, FARES, FLEET)
    (tmp_path / "files" / "guide.pdf").write_bytes(pdf(FLEET, FARES))
    client, index = opened()
    page = shown(client, holding(index, "Petrel carries"))
    assert "<img" not in page
    assert "The Petrel carries 240 passengers." in marked(page)
    assert '<mark id="page=1">' in page
    assert client.get(f"/documents/{index.chunks[0].document}/pages/1.png").status_code == 404


@pytest.mark.slow
def test_what_stands_on_a_page_twice_is_not_marked_and_said_to_be_missing(opened, tmp_path):
    of_pdf(tmp_path, [line(300, "12"), line(200, "Once more, with words between"), line(500, "12")],
           chunker={"kind": "fixed", "size": 3})
    client, index = opened()
    page = shown(client, next(chunk for chunk in index.chunks if chunk.content.strip() == "12"))
    assert "The passage could not be highlighted on the image of its page." in page
    assert "<rect" not in page


def test_a_passage_is_marked_by_its_offsets_in_code_points(opened, tmp_path):
    (tmp_path / "a.html").write_text("<h1>𝒜 🦊</h1><p>Before &amp; <b>be&lt;hind</b> it.</p><p>Afterwards.</p>")
    build_index([tmp_path / "a.html"], tmp_path / "index", IndexSettings(
        formats=("html", "plain"), chunker={"kind": "fixed", "size": 14}), embedder=Lengths())
    client, index = opened()
    for chunk in index.chunks:
        whole = index.document(chunk.document).text(chunk.format)
        before, inside = whole[:chunk.start], whole[chunk.start:chunk.end]
        if chunk.format == "html":  # in which a span may begin or end within a tag, or a reference to a character
            begun = re.search(r"<[^<>]*\Z|&\w*\Z", before)
            inside = unescape(re.sub(r"<[^<>]*(>|\Z)", "", (begun[0] if begun else "") + inside))
        assert "".join("".join(marked(shown(client, chunk))).split()) == "".join(inside.lstrip("#").split())


def test_no_markup_of_a_document_is_taken_over_but_its_own_tags(opened, tmp_path):
    html = f"<p onclick=x>{HOSTILE}<td style=x colspan=\"2\">A & b < c"
    document = Document(f"a/../{HOSTILE}?#", HOSTILE, HOSTILE, html, f"{HOSTILE}plain", (Page(1, 0, 0),))
    index_documents([document], tmp_path / "index", IndexSettings(formats=("html", "plain")), embedder=Lengths())
    client, index = opened()
    for chunk in index.chunks:
        page = shown(client, chunk)
        tags = set(re.findall(r"<(\w+)", page.partition("<body>")[2]))
        assert tags <= {"header", "h1", "p", "main", "mark", "td", "div"}
        assert "⟨U+202E⟩" in page
        assert not re.search(r"<[^>]*\b(?:on\w+|style|src)\s*=", page)


@pytest.mark.slow
def test_what_is_not_in_the_index_is_a_readable_404(opened, tmp_path):
    of_pdf(tmp_path, FARES)
    client, index = opened()
    chunk = index.chunks[0]
    for address in (f"/documents/{chunk.document}?chunk=gone", f"/documents/other?chunk={chunk.id}", "/documents/",
                    "/documents/%2e%2e%2fmanifest.json", "/documents/other/pages/1.png",
                    f"/documents/{chunk.document}?chunk=%00%ff", f"/%64ocuments/{chunk.document}"):
        reply = client.get(address)
        assert (reply.status_code, "not in the index" in reply.text) == (404, True)
    assert client.get(f"/documents/{chunk.document}/pages/2.png").status_code == 404
    assert client.get(f"/documents/{chunk.document}").text.count("<figure") == 1
    for number, status in ((1, 200), (10**20, 200), (0, 422), (-1, 422)):
        assert client.get(f"/documents/{chunk.document}?chunk={chunk.id}&page={number}").status_code == status
