"""The page of `ragbed serve` in a real Chromium: asking, sources, feedback, earlier threads, keys, hostile text."""
import os
import sqlite3
import threading

import pytest
from aster import BRIEF, FERRY, UNSAID, configurations, index_of_aster, model
from chromium import CONTRASTS, SETTLED, settle
from reviewed import ATTACK
from serving import direct, index_of
from streamed import delta, ending, streamed

from ragbed.experiments.guests.serving.api_keys import Keys
from ragbed.experiments.guests.serving.app import create_app
from ragbed.experiments.guests.serving.middleware import GateSettings
from ragbed.strategies import REFUSAL

pytestmark = pytest.mark.slow
HOSTILE = (f'</script><script>{ATTACK}</script><img src="http://127.0.0.1:9/x" onerror="{ATTACK}"> '
           f'[x](javascript:{ATTACK}) <a href="javascript:{ATTACK}">x</a> \ue0000\ue001 `<b>` **<i>bold</i>**')


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return index_of_aster(tmp_path_factory.mktemp("aster"))


def ask(page, question, answers=1):
    """Ask, and wait for the answers."""
    before = int(page.locator("html").get_attribute("data-settled"))
    page.locator("#question").fill(question)
    page.keyboard.press("Enter")
    page.wait_for_function("(n) => Number(document.documentElement.dataset.settled) >= n", arg=before + answers)


def in_view(page, inner):
    box = inner.bounding_box()
    return box["y"] >= 0 and box["y"] + box["height"] <= page.viewport_size["height"]


def test_an_answer_comes_as_it_is_written_and_its_marks_open_the_documents_at_their_passages(page_of, index):
    """With RAGBED_PICTURE=docs/serve.png, that picture is made anew."""
    goes_on = threading.Event()

    def held(body):
        *first, last = [piece for piece in model(body)["pieces"] if b"content" in piece]
        return {"pieces": [*first[:6], goes_on, *first[6:], last, *ending()]}

    page = page_of(held, lambda url: configurations(index, url), viewport={"width": 1280, "height": 760})
    assert page.locator("#cards .card").count() == 2
    assert "0.62" in page.locator("#cards .chosen").inner_text()
    page.locator("#question").fill(FERRY)
    page.keyboard.press("Enter")
    page.get_by_text("The Petrel took the").wait_for()
    assert page.locator(".tools").count() == 0
    settle(page, goes_on.set)
    assert page.locator(".words").inner_text().endswith("by four votes to one 3.")
    assert page.locator(".words li").all_inner_texts() == [
        "it makes 14 knots, two more than the Cormorant did 1", "it needs 18 % less fuel on the same crossing 1"]
    page.locator(".words .chip").first.click()
    source = page.frame_locator("#pane iframe")
    source.locator("rect").first.wait_for()
    picture = source.locator("figure:has(rect) img").first
    picture.evaluate("(image) => image.decode()")
    assert picture.evaluate("(image) => image.naturalWidth") == 960  # of 480 points
    assert in_view(page, source.locator("rect").first)
    if "RAGBED_PICTURE" in os.environ:
        page.screenshot(path=os.environ["RAGBED_PICTURE"])
    page.locator(".words .chip").last.click()
    source.locator("mark").first.wait_for()
    assert "approved with four votes to one" in source.locator("mark").last.inner_text()
    assert in_view(page, source.locator("mark").first)
    assert source.locator("main").bounding_box()["y"] < 0  # it is far down in its document
    page.locator(".took").click()
    assert page.locator(".path li b").all_inner_texts() == ["Search", "Answer"]
    assert "700 tokens read, 12 written" in page.locator(".path").inner_text()


def test_two_configurations_answer_side_by_side(page_of, index, tmp_path):
    page = page_of(model, lambda url: configurations(index, url))
    page.locator("#which").click()
    page.locator("#choose .compare").click()
    page.keyboard.press("Escape")
    ask(page, BRIEF, answers=2)
    ask(page, FERRY, answers=2)
    assert page.locator(".label").all_inner_texts() == [
        "direct · exact match 0.62", "chain_of_thought · exact match 0.68"] * 2
    left, right = page.locator(".turn").last.locator(".answer").evaluate_all(
        "(all) => all.map((one) => one.getBoundingClientRect().toJSON())")
    assert left["top"] == right["top"]
    assert left["right"] <= right["left"]
    with sqlite3.connect(tmp_path / "traffic" / "traffic.sqlite") as database:
        asked = database.execute("SELECT configuration, place, question FROM turns").fetchall()
    assert sorted(asked) == [("chain_of_thought", 0, BRIEF), ("chain_of_thought", 1, FERRY),
                             ("direct", 0, BRIEF), ("direct", 1, FERRY)]


def test_in_an_ab_test_an_answer_says_what_gave_it_once_it_is_rated(page_of, index, tmp_path):
    page = page_of(model, lambda url: configurations(index, url), explore=0.5)
    assert page.locator("#which bdi").inner_text() == "A/B test"
    for _ in range(3):
        page.locator("#new").click()
        ask(page, BRIEF)
        with sqlite3.connect(tmp_path / "traffic" / "traffic.sqlite") as database:
            drawn, probability = database.execute(
                "SELECT configuration, probability FROM turns ORDER BY rowid DESC LIMIT 1").fetchone()
        assert probability == 0.5
        assert page.locator(".label").inner_text() == "A/B test: rate the answer to see what gave it"
        page.locator(".took").click()
        assert "Configuration" not in page.locator(".trace").inner_text()
        page.keyboard.press("Escape")
        page.locator("[data-thumb=up]").click()
        page.locator(".label bdi").wait_for()
        assert page.locator(".label").inner_text().startswith(f"{drawn} · exact match")
    page.locator("#which").click()
    assert page.locator("#choose .card", has=page.locator(".compare")).locator("strong").all_inner_texts() == [
        "chain_of_thought"]  # not direct next to direct
    page.locator("#choose label", has_text="chain_of_thought").click()
    assert page.locator("#which bdi").inner_text() == "chain_of_thought"


def test_what_people_say_of_an_answer_is_kept_and_there_again_with_the_conversation(page_of, index, tmp_path):
    page = page_of(model, lambda url: configurations(index, url)[:1])
    ask(page, BRIEF)
    page.get_by_role("button", name="Bad answer").click()
    page.get_by_label("Comment").fill("It leaves the island line out")
    page.get_by_role("button", name="Save").click()
    page.locator(".comment .soft", has_text="Saved").wait_for()
    ask(page, FERRY)
    page.get_by_role("button", name="Good answer").last.click()
    page.wait_for_selector('[data-thumb="up"][aria-pressed="true"]')
    page.get_by_role("button", name="New conversation").click()
    assert page.locator(".turn").count() == 0
    settle(page, page.get_by_role("button", name=BRIEF, exact=True).click)
    page.locator(".turn").nth(1).wait_for()
    assert page.locator(".turn .asked").all_inner_texts() == [BRIEF, FERRY]
    assert page.locator('[aria-pressed="true"]').evaluate_all("(all) => all.map((one) => one.dataset.thumb)") == [
        "down", "up"]
    assert page.get_by_label("Comment").first.input_value() == "It leaves the island line out"
    ask(page, UNSAID)
    again = page_of.opened(page.server, f"/?{page.url.partition('?')[2]}")
    assert again.locator(".turn .asked").all_inner_texts() == [BRIEF, FERRY, UNSAID]
    with sqlite3.connect(tmp_path / "traffic" / "traffic.sqlite") as database:
        assert sorted(database.execute("SELECT thumb, comment FROM feedback")) == [
            ("down", "It leaves the island line out"), ("up", "")]


def test_refusals_failures_and_what_was_stopped_look_like_it_and_can_be_asked_again(page_of, index, tmp_path):
    waits = threading.Event()
    lines = iter([{"status": 400, "error": {"message": "the model is gone"}},
                  {"pieces": [delta(content="The Petrel"), waits, *ending()]}])
    page = page_of(lambda body: next(lines, None) or model(body), lambda url: configurations(index, url)[:1])
    ask(page, UNSAID)
    answer = page.locator(".answer").last
    assert "failed" in answer.get_attribute("class")
    assert "the model or the search failed (http_400)" in answer.inner_text()  # only the log has the details
    page.get_by_role("button", name="Try again").click()
    page.get_by_text("The Petrel", exact=True).wait_for()
    settle(page, page.get_by_role("button", name="Stop").click)
    assert "You stopped this answer." in page.locator(".answer").last.inner_text()
    waits.set()
    with sqlite3.connect(tmp_path / "traffic" / "traffic.sqlite") as database:  # what nobody waits for ends
        while database.execute("SELECT count(*) FROM turns WHERE ended IS NULL").fetchone() != (0,):
            page.wait_for_timeout(50)
    settle(page, page.get_by_role("button", name="Try again").last.click)
    answer = page.locator(".answer").last
    assert "refused" in answer.get_attribute("class")
    assert "Not in the documents" in answer.inner_text()


def test_a_filter_limits_what_is_searched_and_comes_back_with_the_conversation(page_of, index):
    page = page_of(lambda body: model(body) if "118 people" in str(body) else streamed(REFUSAL),
                   lambda url: configurations(index, url)[:1])
    assert page.locator("#filter").is_hidden()
    page.get_by_role("button", name="Filter").click()
    page.keyboard.type("yaer >= 2022")
    ask(page, BRIEF)
    assert "where: yaer >= 2022: unknown field 'yaer'" in page.locator(".answer").inner_text()
    page.locator("#where").fill("source = minutes* or page > 99")
    settle(page, page.get_by_role("button", name="Try again").click)
    answer = page.locator(".turn").last
    assert answer.locator(".within").inner_text() == "Searched only source = minutes* or page > 99"
    assert "Not in the documents" in answer.inner_text()  # the report is not searched
    page.locator("#where").press("Escape")
    assert page.locator("#filter").is_hidden()
    ask(page, BRIEF)
    answer = page.locator(".turn").last
    assert answer.locator(".within").count() == 0
    assert "118 people" in answer.inner_text()
    page.get_by_role("button", name="Filter").click()
    page.locator("#where").fill("page >= 2 and (format = html or page = 2)")
    ask(page, BRIEF)
    page.locator("#where").fill("")
    settle(page, page.locator("#list [data-thread]").click)
    page.locator(".turn").nth(2).wait_for()
    assert page.locator(".within").all_inner_texts() == [
        "Searched only page > 99 or source = minutes*", "Searched only (format = html or page = 2) and page >= 2"]
    assert page.locator("#where").input_value() == "(format = html or page = 2) and page >= 2"
    page.said.clear()  # the browser tells of the rejected filter


def test_where_keys_are_wanted_the_page_asks_for_one_and_sources_open_too(page_of, index):
    keys = Keys(["ana 0123456789abcdef"])
    page = page_of(model, lambda url: configurations(index, url)[:1], lambda serving: create_app(
        serving, GateSettings(keys=keys)), settled="dialog[open]")
    page.locator("#key-field").fill("wrong-wrong-wrong")
    page.keyboard.press("Enter")
    page.get_by_text("Unknown key.").wait_for()
    page.locator("#key-field").fill("0123456789abcdef")
    page.keyboard.press("Enter")
    page.wait_for_selector(SETTLED, state="attached")
    ask(page, FERRY)
    page.locator(".words .chip").first.click()
    picture = page.frame_locator("#pane iframe").locator("figure:has(rect) img").first
    picture.evaluate("(image) => image.decode()")
    with page.context.expect_page() as tab:
        page.get_by_label("Open in a new tab").click()
    tab.value.locator("rect").first.wait_for()
    page.get_by_role("button", name="Sign out").click()
    page.locator("#key[open]").wait_for()
    assert page.context.cookies() == []
    page.said.clear()  # the browser tells of each 401


def test_everything_can_be_done_by_keys(page_of, index):
    page = page_of(model, lambda url: configurations(index, url))
    page.locator("#talk").focus()
    page.keyboard.press("/")
    page.keyboard.type("Which ferry replaced")
    page.keyboard.press("Shift+Enter")
    settle(page, lambda: (page.keyboard.type("the Cormorant?"), page.keyboard.press("Enter")))
    assert page.locator(".asked").inner_text() == "Which ferry replaced\nthe Cormorant?"
    focused = "document.activeElement"
    page.keyboard.press("Shift+Tab")
    assert "took" in page.evaluate(f"{focused}.className")
    page.locator(".words .chip").first.focus()
    page.keyboard.press("Enter")
    page.frame_locator("#pane iframe").locator("rect").first.wait_for()
    assert page.evaluate(f"{focused}.id") == "pane"
    page.keyboard.press("Escape")
    assert page.locator("#pane").is_hidden()
    assert page.evaluate(f"{focused}.className") == "chip"
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    assert page.locator("#peek").inner_text().startswith("aster-2025.pdf")
    page.locator("#new").focus()
    page.keyboard.press("Enter")
    ask(page, BRIEF)
    page.locator("#list li").nth(1).wait_for()
    page.locator("#list [data-thread]").first.focus()
    page.keyboard.press("ArrowDown")
    settle(page, lambda: page.keyboard.press("Enter"))
    assert page.locator(".asked").inner_text().startswith("Which ferry")


def test_nothing_that_a_model_or_a_document_says_is_more_than_text(page_of, tmp_path):
    name = "<img src=x onerror=alert(1)>.html"
    pages = {name: f"<title>{HOSTILE.replace('<', '&lt;')}</title><p>Oslo {HOSTILE.replace('<', '&lt;')} {HOSTILE}</p>"}
    index = index_of(tmp_path, pages)
    page = page_of(lambda body: streamed(f"{HOSTILE} [1] 🦊[1]"), lambda url: [direct(index, f"{url}#m")])
    ask(page, f"Oslo? {HOSTILE}")
    words = page.locator(".words")
    assert f"<script>{ATTACK}</script>" in words.inner_text()
    assert words.locator("script, img, a, i, iframe").count() == 0
    assert words.locator(".chip").all_inner_texts() == ["1", "1"]
    assert words.locator("strong, code").all_inner_texts() == ["<b>", "<i>bold</i>"]
    words.locator(".chip").first.hover()
    assert name in page.locator("#peek").inner_text()
    words.locator(".chip").first.click()
    source = page.frame_locator("#pane iframe")
    source.locator("mark").first.wait_for()
    assert source.locator("script, img, a, i, b").count() == 0
    assert "<script>" in source.locator("main").inner_text()
    page.locator(".took").click()
    page.locator(".path summary").click()
    settle(page, page.locator("#list [data-thread]").first.click)
    assert page.locator(".words .chip").count() == 2
    assert page.locator("main img, main script, #pane img, #list img").count() == 0


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_it_fits_a_phone_and_can_be_read(page_of, index, scheme):
    page = page_of(model, lambda url: configurations(index, url), color_scheme=scheme,
                   viewport={"width": 390, "height": 780}, is_mobile=True, reduced_motion="reduce")
    readable = ("#title, h2, h3, strong, .soft, .mean, .words p, .words li, .chip, .number, .source, .took, .label, "
                "#list [data-thread]")
    assert min(page.locator(readable).evaluate_all(CONTRASTS)) >= 4.5
    ask(page, FERRY)
    ask(page, UNSAID)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.locator(".chip").first.click()
    page.frame_locator("#pane iframe").locator("rect").first.wait_for()
    assert page.locator("#pane").bounding_box() == {"x": 0, "y": 0, "width": 390, "height": 780}
    page.locator("#pane-close").click()
    page.locator("#menu").click()
    assert page.locator("#list [data-thread]").inner_text() == FERRY
    page.keyboard.press("Escape")
    page.wait_for_function("getComputedStyle(document.getElementById('threads')).visibility === 'hidden'")
    assert min(page.locator(readable).evaluate_all(CONTRASTS)) >= 4.5


@pytest.mark.parametrize("width", [1280, 390])
def test_calls_of_tools_are_steps_while_they_are_made_and_in_the_trace(page_of, index, width):
    """With RAGBED_PICTURE=FOLDER, pictures of them are made there."""
    goes_on, attack = threading.Event(), HOSTILE.replace('"', "'")
    table = "SELECT vessel, price FROM board_minutes_july_2025"
    turns = iter([streamed(f'grep: {{"pattern": "Cormorant|Petrel"}}\nsql: {{"query": "{table}"}}'),
                  streamed(f'open: {{"document": "{attack}"}}\nlist'),
                  {"pieces": [goes_on, delta(content="finish"), *ending()]},
                  streamed("<Answer>The Petrel cost 2,900,000 euros [4].</Answer>")])
    tools = {"kind": "agent", "tools": ["grep", "sql", "open", "list"], "protocol": "text"}
    page = page_of(lambda body: next(turns), lambda url: [direct(index, f"{url}#m", "agent", reasoning=tools)],
                   viewport={"width": width, "height": 780})

    def picture(name):
        if "RAGBED_PICTURE" in os.environ:
            page.screenshot(path=f"{os.environ['RAGBED_PICTURE']}/{name}-{width}.png")

    page.locator("#question").fill("What did the ferry that replaced the Cormorant cost?")
    page.keyboard.press("Enter")
    page.get_by_text("Called list").wait_for()
    grep, sql, opened, listed = page.locator(".progress li", has_text="Called").all()
    assert grep.inner_text() == "Called grep\nCormorant|Petrel\n4 passages in 2 documents"
    assert sql.inner_text() == f"Called sql\n{table}\n1 passage in 1 document"
    assert "failed" in opened.get_attribute("class")
    assert opened.locator("q").inner_text() == f"{attack[:200]}…"
    assert "there is no document" in opened.locator(".soft").inner_text()
    assert listed.inner_text().startswith("Called list\n2 documents. - aster-2025.pdf")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    picture("steps")
    settle(page, goes_on.set)
    assert page.locator(".took").inner_text().startswith("4 tool calls · 4 calls")
    page.locator(".took").click()
    steps = page.locator(".path li.tool, .path li.failed")
    assert steps.locator("b").all_inner_texts() == ["grep", "sql", "open", "list"]
    for result in steps.locator("summary").all():
        result.click()
    assert "Petrel | 2900000" in steps.nth(1).inner_text()
    assert attack[200:220] in steps.nth(2).inner_text()
    assert page.locator("#pane img, #pane script, .progress img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    picture("trace")
    page.locator("#pane-close").click()
    page.locator(".words .chip").click()
    page.frame_locator("#pane iframe").locator("mark").first.wait_for()
