"""The report in a real Chromium: it opens offline under its own policy, stays inert, and fits phone, paper and dark."""
import pymupdf
import pytest
from chromium import CONTRASTS, opened, settle
from report_runs import Run, shop

from ragbed.experiments import Support, SupportLabel
from ragbed.experiments.metrics import estimate_share

ATTACK = "document.title='PWNED'"
HOSTILE = (f'</script><script>{ATTACK}</script><img src="http://127.0.0.1:9/x" onerror="{ATTACK}">'
           f'<a href="javascript:{ATTACK}">x</a><style>*{{display:none}}</style><p style="color:red">'
           "\u202e\ud800\x00&#x202e;")


def attack():
    """Every text of the run attacks; besides it, a text of one long line, and one that runs from right to left."""
    run = Run("a", "b", "c", "d", "e")
    for one in run.cells:
        one["reasoning"] += HOSTILE
    run.summary.update({"run": HOSTILE, "notes": [HOSTILE], "published": ["mrceval_2"], "views": [
        {"name": "depth", "title": HOSTILE, "header": [HOSTILE] * 14, "keys": 2, "main": 3, "shaded": [0.0, 1.0],
         "notes": [HOSTILE], "rows": [[HOSTILE, "a", 9, *[estimate_share(at, 10) for at in range(11)]]]}]})
    line, hebrew = "<b>" + "x" * 1_000_000, "שלום עולם"
    for id, text in ((HOSTILE, HOSTILE), ("line", line), ("rtl", hebrew), ("&text=<b>#?q=", "odd")):
        run.ask(id, text, text, options=((HOSTILE, text),), sub_questions=(text,), sub_answers=(text,),
                tags={HOSTILE: (HOSTILE,)})
        for name in "ab":
            passages = [run.passage(1, f"{text} {name}", source=HOSTILE, format="html"),
                        run.passage(2, f"{name} {text}")]
            run.answer(name, id, f"{text[:200_000]} [1]", 0.0, passages, HOSTILE, cited=(1, 2), notes=(HOSTILE,),
                       support=Support(judge=HOSTILE, sentences=(SupportLabel(text=text, level=None, note=HOSTILE),)))
    return run


@pytest.fixture(scope="module")
def shop_url(tmp_path_factory):
    return shop().write(tmp_path_factory.mktemp("shop")).as_uri()


@pytest.fixture(scope="module")
def attack_url(tmp_path_factory):
    return attack().write(tmp_path_factory.mktemp("attack"), HOSTILE).as_uri()


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, pytest.param(1280, marks=pytest.mark.slow)])
def test_neither_a_phone_nor_a_desk_needs_sideways_scrolling(visit, attack_url, width):
    page = visit(attack_url, viewport={"width": width, "height": 800}, is_mobile=width < 500)
    for number in (1, 2, 3, 4):
        row = opened(page, number)
        row.locator(".trace > summary").first.click()
        row.locator(".steps").first.wait_for()
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    page.locator(".prompt").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_long_line_begins_and_can_be_shown_further(visit, attack_url):
    row = opened(visit(attack_url), 2)
    passage = row.locator(".passage").nth(1)
    text = passage.locator(":scope > .text")
    assert len(text.text_content()) == 6_000
    passage.locator(".more-text").click()
    assert len(text.text_content()) == 300_000
    assert passage.locator(".cut").inner_text() == "700,005 further characters are left out here."


@pytest.mark.slow
def test_hostile_text_is_only_ever_text(visit, attack_url):
    page = visit(attack_url)
    settle(page, lambda: page.fill("[name=text]", "<script>"))
    for number in (1, 4):
        row = opened(page, number)
        for details in ("trace", "rest", "scores", "part"):
            for summary in row.locator(f".{details} > summary").all():
                summary.click()
        row.locator(".steps .prompt").first.wait_for()
    assert page.locator("#questions").locator("img, iframe, style, script, link, b").count() == 0
    assert page.locator("#questions [href]:not([href^='#'])").count() == 0
    assert "</script><script>" in page.locator(".question[open] .answer").first.text_content()
    assert "⟨U+202E⟩⟨U+D800⟩⟨U+0000⟩&#x202e;" in page.locator(".question[open] .passage > .text").first.text_content()
    page.emulate_media(color_scheme="dark")


def test_paper_holds_what_fits_the_filter_opened(visit, shop_url, tmp_path):
    page = visit(f"{shop_url}#questions?right=1&wrong=2")
    page.wait_for_selector("html[data-printable]", state="attached")
    page.pdf(path=tmp_path / "report.pdf")
    with pymupdf.open(tmp_path / "report.pdf") as document:
        text = "\n".join(page.get_text() for page in document)
    assert "2 of 6 questions (right: 1; wrong: 2); all are printed open." in " ".join(text.split())
    assert [words in text for words in (
        "Where is the capital?", "moved from Zanzibar", "Which moon is blue?", "Which river is longest?")] == [
        True, True, True, False]
    assert page.locator(".question[open]").count() == 0


def test_without_script_the_figures_are_there_and_one_line_says_what_is_not(visit, shop_url):
    page = visit(shop_url, java_script_enabled=False)
    assert page.locator("noscript").inner_text().startswith("JavaScript is off")
    assert page.locator("table").first.is_visible()
    assert not page.locator("#filter").is_visible()
    assert page.locator("#questions").inner_text() == "Questions"


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_signs_and_shades_stand_out_from_what_is_behind_them(visit, shop_url, attack_url, scheme):
    for url, those in ((shop_url, "#list [class^=mark-]"), (attack_url, ".heat tbody td[class]")):
        page = visit(url, color_scheme=scheme)
        contrasts = page.locator(those).evaluate_all(CONTRASTS)
        assert len(contrasts) > 9
        assert min(contrasts) >= 4.5
