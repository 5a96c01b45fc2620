"""The review page in a real Chromium: by keys alone, blind, inert, and durable at every verdict."""
import json
import os

import pytest
from chromium import CONTRASTS, SETTLED, settle, visiting
from reviewed import ATTACK, HOSTILE, ITEMS_MADE, REPORT, quoted, serving, write_made_set
from test_review import kept

from ragbed.documents.types import Chunk, Document
from ragbed.experiments.guests.review.items import Evidence, Item, open_set

pytestmark = pytest.mark.slow


@pytest.fixture
def visit(browser):
    """Opens the page of a server; at the end nothing may have been complained of, nor any other host asked."""
    visits = visiting(browser, lambda url, page: url.startswith(page.partition("?")[0]),
                      "ERR_CONNECTION_REFUSED")  # which a killed server causes
    visit = next(visits)
    yield lambda url, reviewer=None, **options: visit(
        f"{url}{f'?reviewer={reviewer}' if reviewer else ''}", settled=bool(reviewer), **options)
    next(visits, None)


def press(page, *keys):
    for key in keys:
        settle(page, lambda key=key: page.keyboard.press(key))


@pytest.fixture
def folder(tmp_path):
    return write_made_set(tmp_path / "set")


def test_items_are_reviewed_by_keys_alone_and_nobody_sees_what_others_decided(visit, folder, ragbed):
    with serving(folder) as (url, _):
        page = visit(url)
        page.keyboard.type("Ana")
        page.keyboard.press("Enter")
        page.wait_for_selector(SETTLED, state="attached")
        first = page.locator("#question").inner_text()
        press(page, "a")
        assert page.locator("#done").inner_text() == "1 of 4 reviewed"
        press(page, "u")
        assert (page.locator("#question").inner_text(), page.locator(".verdict").inner_text()) == (
            first, "Not reviewed by you yet")
        press(page, "a")
        page.keyboard.press("d")
        press(page, "1")
        page.keyboard.press("d")
        page.keyboard.press("7")
        page.keyboard.type("too long ago")
        press(page, "Enter")
        page.keyboard.press("n")
        page.keyboard.type("see the table")
        press(page, "Control+Enter")
        page.keyboard.press("e")
        page.keyboard.press("Control+A")
        page.keyboard.type("How many worked there?")
        press(page, "Control+Enter")
        assert page.locator("#said").text_content() == "Accepted with edits. All 4 items are reviewed."
        assert page.locator(".was").first.inner_text().startswith("Before your edit: ")
        other = visit(url, "Ben")
        assert (other.locator("#done").inner_text(), other.locator(".verdict").inner_text()) == (
            "0 of 4 reviewed", "Not reviewed by you yet")
        press(other, "a", "ArrowRight", "a")
    ana = [kept(folder)["Ana"][id] for id in open_set(str(folder)).items]
    assert [(one.decision, one.reason, one.question, one.note) for one in ana] == [
        ("accept", "", "", ""), ("reject", "wrong answer", "", ""), ("reject", "too long ago", "", ""),
        ("accept", "", "How many worked there?", "see the table")]
    # Ben accepted the first and third item, Ana the first: they agree on 1 of 2. The third is disputed, and an error
    # with the second and the edited fourth.
    found = ragbed.json("review", folder, "--summary")
    (pair,) = found["agreement"]["pairs"]
    assert (pair["n"], pair["agree"], pair["kappa"]) == (2, 0.5, 0.0)
    assert (found["disputed"], found["label_error"]["errors"], found["label_error"]["share"]) == (1, 3, 0.75)


def test_a_kill_after_a_verdict_takes_nothing(visit, folder):
    with serving(folder, "--reviewer", "Ana") as (url, process):
        page = visit(url.partition("?")[0], "Ana")
        press(page, "a")
        process.kill()
        process.wait()
        settle(page, lambda: page.keyboard.press("a"))
        assert "does not respond" in page.locator("#trouble").inner_text()
        page.close()
    with serving(folder) as (url, _):
        assert visit(url, "Ana").locator("#done").inner_text() == "1 of 4 reviewed"


def test_the_evidence_is_marked_and_in_view(visit, tmp_path):
    """With RAGBED_PICTURE=docs/review.png, that picture is made anew."""
    with serving(write_made_set(tmp_path / "aster-ferries")) as (url, _):
        page = visit(url, "Ana", viewport={"width": 1200, "height": 740})
        for _ in ITEMS_MADE:
            for box in page.locator(".document > .text").all():
                mark, whole = box.locator("mark").first.bounding_box(), box.bounding_box()
                assert whole["y"] <= mark["y"] <= mark["y"] + mark["height"] <= whole["y"] + whole["height"]
            if page.locator("#next").is_enabled():
                press(page, "ArrowRight")
        press(page, *["ArrowLeft"] * 2, "a", "ArrowLeft", "ArrowLeft")
        assert page.locator("#place").inner_text() == "1 / 4"
        if "RAGBED_PICTURE" in os.environ:
            page.screenshot(path=os.environ["RAGBED_PICTURE"])


def test_hostile_items_are_only_ever_text(visit, tmp_path):
    document = Document("d", HOSTILE, HOSTILE, f"<p>{HOSTILE}</p>", HOSTILE + REPORT.plain)
    item = Item(HOSTILE, HOSTILE, (HOSTILE,), options=(HOSTILE, "other"), tags={HOSTILE: HOSTILE},
                evidence=(quoted(document, HOSTILE), quoted(document, HOSTILE, "html"), Evidence(
                    HOSTILE, "plain", 3, 9, HOSTILE)), chunks=(Chunk.of(document, "html", 0, 40),))
    with serving(write_made_set(tmp_path / "set", (item,), (document,))) as (url, _):
        page = visit(url, "%3Cimg src=x onerror=alert(1)%3E")
        assert page.locator("main").locator("img, script, a, style, iframe").count() == 0
        assert f"<script>{ATTACK}</script>" in page.locator("#question").inner_text()
        assert "⟨U+202E⟩⟨U+0007⟩&#x202e;" in page.locator("#question").inner_text()
        page.keyboard.press("e")
        assert page.locator("dialog textarea").first.input_value().startswith("</script>")
        press(page, "Control+Enter")
    (review,) = kept(tmp_path / "set")["<img src=x onerror=alert(1)>"].values()
    assert (review.decision, review.edited) == ("accept", False)


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_it_fits_a_phone_can_be_read_and_shows_where_the_focus_is(visit, folder, scheme):
    with serving(folder) as (url, _):
        page = visit(url, "Ana", color_scheme=scheme, viewport={"width": 390, "height": 800}, is_mobile=True)
        press(page, "ArrowRight")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        words = page.locator("h1, #done, .verdict, .key, .sign, mark, dd, dt, footer button, .where")
        assert min(words.evaluate_all(CONTRASTS)) >= 4.5
        reached = []
        for _ in range(16):
            page.keyboard.press("Tab")
            reached.append(page.evaluate(
                "[document.activeElement.id, getComputedStyle(document.activeElement).outlineStyle]"))
        assert {"next", "undo", "help", "accept", "reject", "edit", "note"} <= {id for id, _ in reached}
        assert {style for id, style in reached if id} == {"solid"}
        assert page.evaluate("[...document.querySelectorAll('button')].every((one) => one.innerText.trim() "
                             "|| one.ariaLabel)")


def test_passages_of_a_bad_answer_become_evidence_only_if_a_person_chooses_them(visit, tmp_path, ragbed):
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "terms.txt").write_text("The warranty lasts 24 months from delivery. Repairs take two weeks.")
    ragbed("index", pages, "--out", tmp_path / "idx", "--embedder", "none")
    span = {"document": "terms.txt", "format": "plain", "start": 0, "end": 43}
    (tmp_path / "asked.jsonl").write_text(json.dumps({
        "id": "down", "question": "How long do repairs take?", "tags": {"feedback": "down", "given": "24 months [1]"},
        "candidates": [span, {**span, "start": 44, "end": 67}]}))
    with serving(tmp_path / "asked.jsonl", "--index", tmp_path / "idx") as (url, _):
        page = visit(url, "Ana")
        page.keyboard.press("a")
        boxes = page.locator("fieldset input")
        assert [box.is_checked() for box in boxes.all()] == [False, False]
        if "RAGBED_SHOTS" in os.environ:
            for width in (1280, 390):
                page.set_viewport_size({"width": width, "height": 860})
                page.screenshot(path=f"{os.environ['RAGBED_SHOTS']}/review-{width}.png")
        boxes.nth(1).check()
        page.locator("textarea[aria-label=Answer]").fill("two weeks")
        page.keyboard.press("Control+Enter")
        page.wait_for_selector(".verdict.accept")
        if "RAGBED_SHOTS" in os.environ:
            page.set_viewport_size({"width": 1280, "height": 860})
            page.screenshot(path=f"{os.environ['RAGBED_SHOTS']}/review-after.png")
    ragbed("review", tmp_path / "asked.jsonl", "--export", tmp_path / "reviewed.jsonl")
    line = json.loads((tmp_path / "reviewed.jsonl").read_text())
    assert (line["answers"], line["gold_documents"]) == (["two weeks"], [{**span, "start": 44, "end": 67}])
